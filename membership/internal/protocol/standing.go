// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"cmp"
	"math"
	"slices"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// How long this node may host comes first ([footing.hostsUntil]), then whether it may act as
// the leader ([footing.connected]), and what both follow from: since when a majority has been
// heard ([footing.majoritySince]).

// footing computes this node's standing. The node hosts only while
//
//	now - q <= fence,  q = the latest t such that this node together with those
//	                   whose contact is at least t wins in every set of the base
//
// where a contact is the moment, by this node's own clock, at which it sent the
// last heartbeat that was answered with standing. Clocks of two nodes are never
// compared.
//
// In a cluster of more voters than a node monitors only relays have so many contacts.
// They lend their proofs, see [standingRelay]: q is the later one of this node's own and of
// what was lent to it.
//
// With a strategy that may let a side without a majority survive the node hosts,
// besides, only while now - p <= margin, where p is the earliest contact of all voters
// that are not down. See [core.margin].
type footing struct {
	*core

	answers    *answers
	strategies *strategies
	relay      *standingRelay
}

// update computes the moment up to which this node may host, and publishes it if it has
// moved. It depends on the state and the contacts alone.
func (f *footing) update() {
	if f.hosting.moved {
		f.hosting.moved = false
		f.publishStanding(f.hostsUntil())
	}
}

// hostsUntil computes the moment up to which this node may host.
func (f *footing) hostsUntil() machine.Instant {
	me := f.state.Member(f.self)
	if f.hosting.dropped || f.phase != phaseMember || me == nil || !votes(me) {
		return 0
	}
	q, ok := f.provedSince()
	if !ok {
		return 0
	}
	until := q.Add(f.cfg.Fence)
	if !f.strategies.majorityOnly() {
		until = min(until, f.undecidedUntil())
	}
	return until
}

// provedSince is the latest moment at which this node had proved a majority, and whether it
// ever has. Of a relay, which gets many answers at a time, it may be some milliseconds
// behind; then it is computed again with a later step.
func (f *footing) provedSince() (machine.Instant, bool) {
	if !f.relay.relays {
		return f.majoritySince(f.surveyed.base, f.answers.contact, f.relay.lent)
	}
	if !f.relay.prove() {
		f.moveStanding()
	}
	q := max(f.relay.own.majority, f.relay.lent.majority)
	return q, q != 0
}

// connected tells whether this node has heard a winning set of the voters within the
// fence, or there are no voters. Voters that are down count as lost votes here: otherwise
// one node that outlived all others would be a majority of one, although the others may
// have gone on without it before they ended. Only where the strategy may let a minority
// survive do they not count, and there being connected is not enough to act, see
// [footing.noDecisionPending].
//
// Every answer from a node that knows this one counts, with standing or without. Whether
// all members have seen the state that this node acts on is a question of convergence,
// and a joiner may be the only node left to lead when the last voter leaves.
func (f *footing) connected() bool {
	if f.founding() {
		// No member is up, and the first heartbeats may be under way. A node that has
		// seen the state is in this cluster and in no other.
		return f.surveyed.base.Wins(func(n gossip.NodeID) bool { return n == f.self || f.state.Seen(n) && !f.isLost(n) })
	}
	base, lent := f.surveyed.base, f.relay.lentKnown
	if !f.strategies.majorityOnly() {
		base = f.livingOf(base)
		lent.raise(lent.all, 0) // Who heard all that are not down has heard a majority of them.
	}
	if !hasVoters(base) {
		return true
	}
	q, ok := f.majoritySince(base, f.answers.known, lent)
	return ok && f.now.Mono <= q.Add(f.cfg.Fence)
}

// majoritySince is the latest moment such that this node and those heard since win in the
// base, by its own proof or one that was lent to it. It returns false if there is none.
func (f *footing) majoritySince(base gossip.Base, heard map[gossip.NodeID]machine.Instant, lent proofInstants) (machine.Instant, bool) {
	var q machine.Instant
	ok := couldWin(base, 1+len(heard))
	if ok {
		q, ok = lastWin(f.self, base, f.living(heard))
	}
	return max(q, lent.majority), ok || lent.majority != 0
}

// couldWin tells whether so many nodes are at least half of the voters of every set. In a large
// cluster most nodes hear far fewer, so that no voter need be looked up.
func couldWin(base gossip.Base, nodes int) bool {
	return !slices.ContainsFunc(base, func(voters []gossip.NodeID) bool { return 2*nodes < len(voters) })
}

func (f *footing) livingOf(base gossip.Base) gossip.Base {
	living := make(gossip.Base, 0, len(base))
	for _, voters := range base {
		living = append(living, slices.DeleteFunc(slices.Clone(voters), func(n gossip.NodeID) bool { return !f.lives(n) }))
	}
	return living
}

// lastWin returns the latest moment t such that self and the nodes whose contact is not
// earlier than t win in the base. It returns false if there is no such moment, and
// [machine.Never] if self wins alone.
func lastWin(self gossip.NodeID, base gossip.Base, contact func(gossip.NodeID) (machine.Instant, bool)) (machine.Instant, bool) {
	last, won := machine.Never, false
	moments := make([]machine.Instant, 0, 16)
	for _, voters := range base {
		if len(voters) == 0 {
			continue
		}
		moments = moments[:0]
		lowest, first := voters[0], neverHeard // The voter that decides where just half of them are in, and its moment.
		for _, v := range voters {
			at, ok := contact(v)
			switch {
			case v == self:
				at = machine.Never
			case !ok:
				at = neverHeard
			}
			if moments = append(moments, at); v.Compare(lowest) <= 0 {
				lowest, first = v, at
			}
		}
		slices.SortFunc(moments, func(a, b machine.Instant) int { return cmp.Compare(b, a) })
		half := len(moments) / 2
		at := moments[half] // More than half have been heard since then.
		if len(moments)%2 == 0 {
			at = max(at, min(moments[half-1], first))
		}
		if at == neverHeard {
			return 0, false
		}
		last, won = min(last, at), true
	}
	return last, won
}

// neverHeard is before the moment of any contact.
const neverHeard = machine.Instant(math.MinInt64)
