// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package joindeciderpolicy

import (
	"slices"
	"time"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/bootstrap"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/plugins/internal/wire"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

// Observations are written as columns ([ObservationsToProto]) and read with a check of each
// column ([ObservationsFromProto]); both sides demand the same of them ([validate]). Decisions
// name seed nodes by their places in one list ([seedNodes]), and both sides check decisions
// ([check]).

// Limits of the observations, as the contract has them.
const (
	maxServiceBytes = 256
	maxSeedNodes    = wire.MaxNodes
)

// ObservationsToProto returns the request for observations. The error names the observation
// that the contract cannot express.
func ObservationsToProto(o *bootstrap.Observations) (*pluginv1.JoinDeciderDecideRequest, error) {
	if err := validate(o); err != nil {
		return nil, err
	}
	r := &pluginv1.JoinDeciderDecideRequest{
		Service: o.Service, Self: textOf(o.Self), RequiredContactPoints: uint32(o.Required),
		StableMarginNanos: int64(o.StableMargin), StableNanos: int64(o.Stable),
	}
	for _, p := range o.Points {
		r.ContactPoint = append(r.ContactPoint, textOf(p.Point))
		r.AnsweredNanos = append(r.AnsweredNanos, max(int64(p.Answered), -1))
		r.SeedNodeCount = append(r.SeedNodeCount, uint32(len(p.SeedNodes)))
	}
	for _, t := range seedNodes(o) {
		r.SeedNode = append(r.SeedNode, textOf(t))
	}
	return r, nil
}

// validate reports observations that the contract does not allow.
func validate(o *bootstrap.Observations) error {
	switch {
	case len(o.Service) > maxServiceBytes:
		return wire.Malformed("service", "%d bytes, the limit is %d", len(o.Service), maxServiceBytes)
	case o.Required < 1 || o.Required > bootstrap.MaxPoints:
		return wire.Malformed("required_contact_points", "%d is not from 1 to %d", o.Required, bootstrap.MaxPoints)
	case o.StableMargin < 0 || o.Stable < 0:
		return wire.Malformed("stable_nanos", "a duration is negative")
	case len(o.Points) > bootstrap.MaxPoints:
		return wire.Malformed("contact_point", "%d contact points, the limit is %d", len(o.Points), bootstrap.MaxPoints)
	}
	seeds := seedNodes(o)
	if len(seeds) > maxSeedNodes {
		return wire.Malformed("seed_node", "%d seed nodes, the limit is %d", len(seeds), maxSeedNodes)
	}
	all := append(seeds, o.Self)
	for i, p := range o.Points {
		if i > 0 && bootstrap.Compare(o.Points[i-1].Point, p.Point) >= 0 {
			return wire.Malformed("contact_point", "%v is not behind %v", p.Point, o.Points[i-1].Point)
		}
		all = append(all, p.Point)
	}
	for _, t := range all {
		if err := addressOf(t).Validate(); err != nil {
			return wire.Malformed("contact_point", "%v", err)
		}
	}
	return nil
}

// seedNodes are the seed nodes of all contact points, in their order: decisions name them
// by their places in it.
func seedNodes(o *bootstrap.Observations) []discovery.Target {
	var all []discovery.Target
	for _, p := range o.Points {
		all = append(all, p.SeedNodes...)
	}
	return all
}

// addressOf returns the address of the node at a contact point, which has the form that
// addresses of nodes have.
func addressOf(t discovery.Target) gossip.Address { return gossip.Address{Host: t.Host, Port: t.Port} }

func textOf(t discovery.Target) string { return addressOf(t).String() }

// ObservationsFromProto returns the observations of a received request, checked.
func ObservationsFromProto(r *pluginv1.JoinDeciderDecideRequest) (bootstrap.Observations, error) {
	n := len(r.GetContactPoint())
	if n > bootstrap.MaxPoints || len(r.GetSeedNode()) > maxSeedNodes {
		return bootstrap.Observations{}, wire.Malformed("contact_point", "%d contact points and %d seed nodes, the limits are %d and %d",
			n, len(r.GetSeedNode()), bootstrap.MaxPoints, maxSeedNodes)
	}
	if err := wire.SameLength("contact_point", n, len(r.GetAnsweredNanos()), len(r.GetSeedNodeCount())); err != nil {
		return bootstrap.Observations{}, err
	}
	o := bootstrap.Observations{
		Service: r.GetService(), Required: int(r.GetRequiredContactPoints()),
		StableMargin: time.Duration(r.GetStableMarginNanos()), Stable: time.Duration(r.GetStableNanos()),
	}
	self, err := targetsFromProto("self", []string{r.GetSelf()})
	if err != nil {
		return bootstrap.Observations{}, err
	}
	o.Self = self[0]
	if o.Points, err = pointsFromProto(r); err != nil {
		return bootstrap.Observations{}, err
	}
	if err := validate(&o); err != nil {
		return bootstrap.Observations{}, err
	}
	return o, nil
}

// pointsFromProto returns the contact points, whose columns have one length.
func pointsFromProto(r *pluginv1.JoinDeciderDecideRequest) ([]bootstrap.Observed, error) {
	targets, err := targetsFromProto("contact_point", r.GetContactPoint())
	if err != nil {
		return nil, err
	}
	seeds, err := targetsFromProto("seed_node", r.GetSeedNode())
	if err != nil {
		return nil, err
	}
	var points []bootstrap.Observed
	for i, t := range targets {
		p := bootstrap.Observed{Point: t, Answered: time.Duration(r.GetAnsweredNanos()[i])}
		if p.Answered < -1 {
			return nil, wire.Malformed("answered_nanos", "%v has %d", t, p.Answered)
		}
		count := r.GetSeedNodeCount()[i]
		if uint64(count) > uint64(len(seeds)) {
			return nil, wire.Malformed("seed_node_count", "%v names %d seed nodes, %d are left", t, count, len(seeds))
		}
		if count > 0 {
			p.SeedNodes, seeds = seeds[:count:count], seeds[count:]
		}
		points = append(points, p)
	}
	if len(seeds) > 0 {
		return nil, wire.Malformed("seed_node_count", "nobody names the last %d seed nodes", len(seeds))
	}
	return points, nil
}

func targetsFromProto(field string, texts []string) ([]discovery.Target, error) {
	var targets []discovery.Target
	for _, text := range texts {
		a, err := gossip.ParseAddress(text)
		if err != nil {
			return nil, wire.Malformed(field, "%.300v", err)
		}
		targets = append(targets, discovery.Target{Host: a.Host, Port: a.Port})
	}
	return targets, nil
}

// check reports a decision that the observations do not allow.
func check(o *bootstrap.Observations, d *bootstrap.Decision) error {
	if err := d.Check(*o); err != nil {
		return wire.Malformed("action", "%v", err)
	}
	return nil
}

// DecisionToProto returns the answer for a decision about the observations, checked. The
// reason is made one line, and cut where it is too long.
func DecisionToProto(o *bootstrap.Observations, d *bootstrap.Decision) (*pluginv1.JoinDeciderDecideResponse, error) {
	if err := check(o, d); err != nil {
		return nil, err
	}
	p := &pluginv1.JoinDeciderDecideResponse{Action: pluginv1.JoinAction(d.Action), Reason: wire.Line(d.Reason, wire.MaxTextBytes)}
	seeds := seedNodes(o)
	for _, t := range d.SeedNodes {
		p.SeedNode = append(p.SeedNode, uint32(slices.Index(seeds, t))) // The check has found t among seeds.
	}
	return p, nil
}

// DecisionFromProto returns the decision in a received answer, checked.
func DecisionFromProto(o *bootstrap.Observations, p *pluginv1.JoinDeciderDecideResponse) (bootstrap.Decision, error) {
	action, seeds := p.GetAction(), seedNodes(o)
	switch {
	case action < pluginv1.JoinAction_JOIN_ACTION_NONE || action > pluginv1.JoinAction_JOIN_ACTION_FORM:
		return bootstrap.Decision{}, wire.Malformed("action", "%d does not exist", action)
	case len(p.GetSeedNode()) > len(seeds):
		return bootstrap.Decision{}, wire.Malformed("seed_node", "%d are to be joined of %d", len(p.GetSeedNode()), len(seeds))
	case len(p.GetReason()) > wire.MaxTextBytes:
		return bootstrap.Decision{}, wire.Malformed("reason", "%d bytes, the limit is %d", len(p.GetReason()), wire.MaxTextBytes)
	}
	if err := wire.Within("seed_node", p.GetSeedNode(), len(seeds)); err != nil {
		return bootstrap.Decision{}, err
	}
	d := bootstrap.Decision{Action: bootstrap.Action(action), Reason: wire.Line(p.GetReason(), wire.MaxTextBytes)}
	for _, place := range p.GetSeedNode() {
		d.SeedNodes = append(d.SeedNodes, seeds[place])
	}
	if err := check(o, &d); err != nil {
		return bootstrap.Decision{}, err
	}
	return d, nil
}
