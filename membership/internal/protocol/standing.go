// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// footing computes this node's standing. The node hosts only while
//
//	now - q <= fence,  q = the latest t such that this node together with those
//	                   whose contact is at least t wins in every set of the base
//
// where a contact is the moment, by this node's own clock, at which it sent the
// last heartbeat that was answered with standing. Clocks of two nodes are never
// compared.
// With a strategy that may let a side without a majority survive the node hosts,
// besides, only while now - p <= margin, where p is the earliest contact of all voters
// that are not down. See [core.margin].
type footing struct {
	*core

	answers    *answers
	monitoring *heartbeats
	strategies *strategies
	resolver   *resolver
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
	q, ok := lastWin(f.self, f.panel(), f.answers.contact)
	if !ok || !f.surveyed.reaches {
		return 0
	}
	until := q.Add(f.cfg.Fence)
	if !f.strategies.majorityOnly() {
		until = min(until, f.undecidedUntil())
	}
	return until
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
	panel := f.panel()
	if !f.strategies.majorityOnly() {
		panel = f.livingOf(panel)
	}
	if !hasVoters(panel) {
		return true
	}
	q, ok := lastWin(f.self, panel, f.answers.known)
	return ok && f.now.Mono <= q.Add(f.cfg.Fence)
}

func (f *footing) livingOf(base gossip.Base) gossip.Base {
	living := make(gossip.Base, 0, len(base))
	for _, voters := range base {
		living = append(living, slices.DeleteFunc(slices.Clone(voters), func(n gossip.NodeID) bool { return !f.lives(n) }))
	}
	return living
}

// panel returns the sets of voters whose answers this node's standing rests on: the base
// while every node monitors every other, otherwise this node and the voters that it
// monitors, which are a sample of the base. The sample makes the fence an assumption
// about timing at such sizes instead of a certainty; see also [surveyor.reachesMajority].
func (f *footing) panel() gossip.Base {
	if !f.monitorsSome() {
		return f.surveyed.base
	}
	panel := make([]gossip.NodeID, 0, len(f.monitoring.targets)+1)
	for _, node := range append([]gossip.NodeID{f.self}, f.monitoring.targets...) {
		if member := f.state.Member(node); member != nil && f.isVoter(member) {
			panel = append(panel, node)
		}
	}
	slices.SortFunc(panel, gossip.NodeID.Compare)
	return gossip.Base{panel}
}

// lastWin returns the latest moment t such that self and the nodes whose contact is not
// earlier than t win in the base. It returns false if there is no such moment, and
// [machine.Never] if self wins alone.
func lastWin(self gossip.NodeID, base gossip.Base, contact map[gossip.NodeID]machine.Instant) (machine.Instant, bool) {
	moments := []machine.Instant{machine.Never}
	for _, voters := range base {
		for _, v := range voters {
			if at, ok := contact[v]; ok && v != self {
				moments = append(moments, at)
			}
		}
	}
	slices.SortFunc(moments, func(a, b machine.Instant) int { return cmp.Compare(b, a) })
	for _, t := range slices.Compact(moments) {
		wins := base.Wins(func(n gossip.NodeID) bool {
			at, ok := contact[n]
			return n == self || ok && at >= t
		})
		if wins {
			return t, true
		}
	}
	return 0, false
}
