// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package joindeciderpolicy_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/bootstrap"
	"github.com/quorate/quorate/discovery/bootstrap/bootstraptest"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/internal/policies/joindeciderpolicy"
	"github.com/quorate/quorate/plugins/internal/wire"
	"github.com/quorate/quorate/plugins/internal/wiretest"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

// Observations and decisions go over the wire and arrive as they were. Then come those that
// are refused: by bounds, and decisions that the observations do not allow. Last, reasons
// are cut, and the largest observations fit into a request.

const rounds = 500

func drawn(seed uint64) bootstrap.Observations {
	return bootstraptest.Random(rand.New(rand.NewPCG(seed, 0x10)))
}

func TestObservationsArriveAsTheyWere(t *testing.T) {
	for seed := range uint64(rounds) {
		o := drawn(seed)
		r, err := joindeciderpolicy.ObservationsToProto(&o)
		require.NoError(t, err)
		got, err := joindeciderpolicy.ObservationsFromProto(wiretest.Over(t, r, &pluginv1.JoinDeciderDecideRequest{}))
		require.NoError(t, err, "seed %d", seed)
		require.Equal(t, o, got, "seed %d", seed)
	}
}

func TestDecisionsArriveAsTheyWere(t *testing.T) {
	seen := map[bootstrap.Action]int{}
	for seed := range uint64(rounds) {
		o := drawn(seed)
		d := bootstrap.LowestAddress{}.DecideNow(o)
		seen[d.Action]++
		p, err := joindeciderpolicy.DecisionToProto(&o, &d)
		require.NoError(t, err, "seed %d", seed)
		got, err := joindeciderpolicy.DecisionFromProto(&o, wiretest.Over(t, p, &pluginv1.JoinDeciderDecideResponse{}))
		require.NoError(t, err, "seed %d", seed)
		require.Equal(t, d, got, "seed %d", seed)
	}
	require.Len(t, seen, 3, "each action was among them")
}

func target(host string, port uint16) discovery.Target {
	return discovery.Target{Host: host, Port: port}
}

// ready returns observations with which the node itself may form a cluster.
func ready() bootstrap.Observations {
	return bootstrap.Observations{
		Service: "shop", Self: target("10.0.0.1", 1), Required: 2, StableMargin: time.Second, Stable: time.Second,
		Points: []bootstrap.Observed{{Point: target("10.0.0.1", 1)}, {Point: target("10.0.0.2", 1), Answered: -1}},
	}
}

// Observations that exceed a bound of the contract are neither sent nor accepted.
func TestObservationsAreHeldAgainstBounds(t *testing.T) {
	for name, change := range map[string]func(*bootstrap.Observations){
		"service":       func(o *bootstrap.Observations) { o.Service = strings.Repeat("s", 257) },
		"self":          func(o *bootstrap.Observations) { o.Self = discovery.Target{} },
		"none required": func(o *bootstrap.Observations) { o.Required = 0 },
		"many required": func(o *bootstrap.Observations) { o.Required = bootstrap.MaxPoints + 1 },
		"margin":        func(o *bootstrap.Observations) { o.StableMargin = -1 },
		"stable":        func(o *bootstrap.Observations) { o.Stable = -1 },
		"order":         func(o *bootstrap.Observations) { o.Points[0], o.Points[1] = o.Points[1], o.Points[0] },
		"twice":         func(o *bootstrap.Observations) { o.Points[1] = o.Points[0] },
		"no port":       func(o *bootstrap.Observations) { o.Points[1].Point.Port = 0 },
		"no host":       func(o *bootstrap.Observations) { o.Points[1].SeedNodes = []discovery.Target{{Port: 1}} },
		"many points":   func(o *bootstrap.Observations) { o.Points = make([]bootstrap.Observed, bootstrap.MaxPoints+1) },
		"many seeds": func(o *bootstrap.Observations) {
			o.Points[0].SeedNodes = make([]discovery.Target, wire.MaxNodes+1)
		},
	} {
		o := ready()
		change(&o)
		_, err := joindeciderpolicy.ObservationsToProto(&o)
		require.ErrorIs(t, err, wire.ErrMalformed, name)
	}
	for name, change := range map[string]func(*pluginv1.JoinDeciderDecideRequest){
		"self":          func(r *pluginv1.JoinDeciderDecideRequest) { r.Self = "" },
		"none required": func(r *pluginv1.JoinDeciderDecideRequest) { r.RequiredContactPoints = 0 },
		"stable":        func(r *pluginv1.JoinDeciderDecideRequest) { r.StableNanos = -1 },
		"point":         func(r *pluginv1.JoinDeciderDecideRequest) { r.ContactPoint[0] = "10.0.0.1" },
		"seed":          func(r *pluginv1.JoinDeciderDecideRequest) { r.SeedNode, r.SeedNodeCount[0] = []string{"x"}, 1 },
		"columns":       func(r *pluginv1.JoinDeciderDecideRequest) { r.AnsweredNanos = r.AnsweredNanos[1:] },
		"answered":      func(r *pluginv1.JoinDeciderDecideRequest) { r.AnsweredNanos[0] = -2 },
		"count":         func(r *pluginv1.JoinDeciderDecideRequest) { r.SeedNodeCount[0] = 1 },
		"nobody's seed": func(r *pluginv1.JoinDeciderDecideRequest) { r.SeedNode = []string{"10.0.0.1:1"} },
		"order":         func(r *pluginv1.JoinDeciderDecideRequest) { r.ContactPoint[0] = r.ContactPoint[1] },
		"many points": func(r *pluginv1.JoinDeciderDecideRequest) {
			r.ContactPoint = make([]string, bootstrap.MaxPoints+1)
		},
	} {
		o := ready()
		r, err := joindeciderpolicy.ObservationsToProto(&o)
		require.NoError(t, err)
		change(r)
		_, err = joindeciderpolicy.ObservationsFromProto(r)
		require.ErrorIs(t, err, wire.ErrMalformed, name)
	}
}

// Both sides refuse a decision that the observations do not allow.
func TestDecisionsAreHeldAgainstTheObservations(t *testing.T) {
	form := bootstrap.Decision{Action: bootstrap.Form}
	o := ready()
	p, err := joindeciderpolicy.DecisionToProto(&o, &form)
	require.NoError(t, err)
	for name, change := range map[string]func(*bootstrap.Observations){
		"too few":         func(o *bootstrap.Observations) { o.Required = 3 },
		"another cluster": func(o *bootstrap.Observations) { o.Points[1].SeedNodes = []discovery.Target{o.Points[1].Point} },
		"too early":       func(o *bootstrap.Observations) { o.Stable-- },
	} {
		o := ready()
		change(&o)
		_, err := joindeciderpolicy.DecisionToProto(&o, &form)
		require.ErrorIs(t, err, wire.ErrMalformed, name)
		_, err = joindeciderpolicy.DecisionFromProto(&o, p)
		require.ErrorIs(t, err, wire.ErrMalformed, name)
	}
	o.Points[1].SeedNodes = []discovery.Target{o.Points[1].Point}
	for _, d := range []bootstrap.Decision{
		{Action: bootstrap.Join},
		{Action: bootstrap.Join, SeedNodes: []discovery.Target{o.Self}},
		{Action: bootstrap.Join, SeedNodes: []discovery.Target{o.Points[1].Point, o.Points[1].Point}},
		{Action: bootstrap.Form + 1},
	} {
		_, err := joindeciderpolicy.DecisionToProto(&o, &d)
		require.ErrorIs(t, err, wire.ErrMalformed, "%+v", d)
	}
	for _, p := range []*pluginv1.JoinDeciderDecideResponse{
		{Action: pluginv1.JoinAction_JOIN_ACTION_JOIN},
		{Action: pluginv1.JoinAction_JOIN_ACTION_JOIN, SeedNode: []uint32{1}},
		{Action: pluginv1.JoinAction_JOIN_ACTION_JOIN, SeedNode: []uint32{0, 0}},
		{SeedNode: []uint32{0}},
		{Action: 258}, // Cut to the eight bits of bootstrap.Action, it would be Form.
		{Reason: strings.Repeat("r", wire.MaxTextBytes+1)},
	} {
		_, err := joindeciderpolicy.DecisionFromProto(&o, p)
		require.ErrorIs(t, err, wire.ErrMalformed, "%v", p)
	}
}

// A reason that is too long is cut, not refused: it is for people, and decides nothing.
func TestLongReasonsAreCut(t *testing.T) {
	o := ready()
	p, err := joindeciderpolicy.DecisionToProto(&o, &bootstrap.Decision{Reason: "a\n" + strings.Repeat("r", wire.MaxTextBytes)})
	require.NoError(t, err)
	require.Len(t, p.GetReason(), wire.MaxTextBytes)
	require.NotContains(t, p.GetReason(), "\n")
}

// The largest observations have less than a third of the limit of a request.
func TestGreatRequestsFit(t *testing.T) {
	o := ready()
	o.Points = nil
	for i := range uint16(bootstrap.MaxPoints) {
		t := target(strings.Repeat("h", 250), i+1)
		o.Points = append(o.Points, bootstrap.Observed{Point: t, SeedNodes: []discovery.Target{t}})
	}
	r, err := joindeciderpolicy.ObservationsToProto(&o)
	require.NoError(t, err)
	require.Less(t, proto.Size(r), plugins.MaxRequestBytes/3)
}
