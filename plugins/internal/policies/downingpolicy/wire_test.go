// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package downingpolicy_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/downing/downingtest"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/internal/policies/downingpolicy"
	"github.com/quorate/quorate/plugins/internal/wire"
	"github.com/quorate/quorate/plugins/internal/wiretest"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

const rounds = 500

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x717e)) }

// decorate gives the members of a view zones, versions and roles, which random views lack.
func decorate(rnd *rand.Rand, v *downing.View) {
	members := make([]*gossip.Member, len(v.Members))
	for i, m := range v.Members {
		c := *m
		c.Zone = []string{"", "a", "b"}[rnd.IntN(3)]
		c.AppVersion = []string{"", "1.0.0", "a"}[rnd.IntN(3)]
		c.Roles = [][]string{nil, {"backend"}, {"back", "end"}, {"x"}}[rnd.IntN(4)]
		members[i] = &c
	}
	v.Members = members
	for i := range v.Unreachable {
		v.Unreachable[i].Version = 0 // The contract leaves versions out.
	}
}

func TestViewsArriveAsTheyWere(t *testing.T) {
	for seed := range uint64(rounds) {
		rnd := newRand(seed)
		views := append(downingtest.RandomSplit(rnd), downingtest.RandomView(rnd))
		for _, v := range views {
			decorate(rnd, &v)
			v.Stable, v.Unstable = 3, 5
			r, err := downingpolicy.ViewToProto(&v)
			require.NoError(t, err)
			got, err := downingpolicy.ViewFromProto(wiretest.Over(t, r, &pluginv1.DowningDecideRequest{}))
			require.NoError(t, err, "seed %d", seed)
			requireSameView(t, v, got)
		}
	}
}

// requireSameView requires that two views are equal. The wire makes an empty list of a
// missing one, which is the same.
func requireSameView(t testing.TB, want, got downing.View) {
	t.Helper()
	require.Equal(t, want.Self, got.Self)
	require.Equal(t, want.Members, got.Members)
	require.Equal(t, append([]gossip.Record{}, want.Unreachable...), got.Unreachable)
	require.Equal(t, append([]gossip.NodeID{}, want.Seen...), got.Seen)
	require.Equal(t, want.Base, got.Base)
	require.Equal(t, want.Stable, got.Stable)
	require.Equal(t, want.Unstable, got.Unstable)
}

func TestDecisionsArriveAsTheyWere(t *testing.T) {
	for seed := range uint64(rounds) {
		v := downingtest.RandomView(newRand(seed))
		d, err := downing.KeepMajority{}.DecideNow(v)
		require.NoError(t, err)
		p, err := downingpolicy.DecisionToProto(&v, &d)
		require.NoError(t, err)
		got, err := downingpolicy.DecisionFromProto(&v, wiretest.Over(t, p, &pluginv1.DowningDecideResponse{}))
		require.NoError(t, err)
		require.NoError(t, downing.Check(v, downing.Class{Pure: true, MajorityOnly: true}, got))
		if len(d.Down) == 0 {
			d.Down = nil
		}
		require.Equal(t, d, got, "seed %d", seed)
	}
}

func TestANodeThatIsNoMemberCannotBeNamed(t *testing.T) {
	v := downingtest.RandomView(newRand(1))
	_, err := downingpolicy.DecisionToProto(&v, &downing.Decision{Verdict: downing.KeepSide, Down: []gossip.NodeID{downingtest.Node(99)}})
	require.ErrorIs(t, err, wire.ErrMalformed)
	_, err = downingpolicy.DecisionFromProto(&v, &pluginv1.DowningDecideResponse{Down: []uint32{uint32(len(v.Members))}})
	require.ErrorIs(t, err, wire.ErrMalformed)
	// Cut to the eight bits of [downing.Verdict], 256 would be the verdict None.
	_, err = downingpolicy.DecisionFromProto(&v, &pluginv1.DowningDecideResponse{Verdict: 256})
	require.ErrorIs(t, err, wire.ErrMalformed)
}

// What a node sees of the largest cluster, with ten complaints about each member, has less
// than a third of the limit of a request.
func TestGreatRequestsFit(t *testing.T) {
	members := downingtest.Members(gossip.MaxMembers)
	ids := downingtest.IDs(members)
	v := downing.View{Self: ids[0], Members: members, Seen: ids, Base: gossip.Base{ids}}
	for i := range 10 * len(members) {
		v.Unreachable = append(v.Unreachable, downingtest.Complaint(members[i/10].Node, members[(i+7)%len(members)].Node))
	}
	d, err := downingpolicy.ViewToProto(&v)
	require.NoError(t, err)
	require.Less(t, proto.Size(d), plugins.MaxRequestBytes/3)
}
