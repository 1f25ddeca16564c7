// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// Where a strategy may let a minority survive, no number of nodes tells by itself that a
// side goes on: only the strategy does, and a side that has not asked it, or got no
// answer, may be the one that goes. What such a side may still do depends on the age of
// the oldest answer among those of all voters that are not down:
//
//	                  hosts   says that it goes on   lets nodes in, downs their
//	                                                 predecessors, leads
//	up to the fence   yes     yes                    yes
//	up to the margin  yes     yes                    no
//	older             no      no                     no
//
// Up to the fence no side can have decided without this node, since a decision needs a
// view that was stable for at least as long. After it another side may have been kept.
// Suppose this side then let in a node that was started again, and took that node's
// earlier incarnation for dead: it would soon miss no voter, never ask the strategy, and
// go on beside the other side.

// undecidedUntil is the moment up to which this node may host while no decision has been
// taken on which nodes must go. A voter that exits hosts nothing, and stops answering as
// a matter of course.
func (f *footing) undecidedUntil() machine.Instant {
	// The zero value of an instant is longer ago than any margin.
	until := f.lastFromAll(f.answers.contact).Add(f.margin())
	if f.monitorsSome() && f.resolver.troubled {
		// Voters that this node does not monitor it hears of through others, later by at
		// most the other terms of the margin.
		until = min(until, f.resolver.troubledSince.Add(f.deps.Downing.Limit+f.cfg.Fence))
	}
	return until
}

// lastFromAll is the latest moment since which all voters were heard, except those that
// are down or on their way out: [machine.Never] if there is none besides this node.
func (f *footing) lastFromAll(heard map[gossip.NodeID]machine.Instant) machine.Instant {
	all := machine.Never
	for _, voters := range f.panel() {
		for _, v := range voters {
			if member := f.state.Member(v); v != f.self && member != nil && member.Status < gossip.Exiting {
				all = min(all, max(heard[v], f.answers.expected[v]))
			}
		}
	}
	return all
}

// noDecisionPending tells whether no other side can have decided without this node which
// nodes go, and this side is not about to. Where only majorities survive, and while a
// cluster is founded, a majority is enough.
func (f *footing) noDecisionPending() bool {
	if f.strategies.majorityOnly() || f.founding() {
		return true
	}
	return len(f.trouble()) == 0 && f.now.Mono <= f.lastFromAll(f.answers.known).Add(f.cfg.Fence)
}

// isSuspended tells whether this side has been undecided for so long that it may host
// nothing.
func (f *footing) isSuspended() bool {
	return !f.strategies.majorityOnly() && f.now.Mono > f.lastFromAll(f.answers.known).Add(f.margin())
}

// mayLetIn tells whether nodes may become members through this one.
func (f *footing) mayLetIn() bool { return f.goesOn() && f.noDecisionPending() }

// goesOn reports whether this node's cluster can be relied on to go on, as far as
// this node can prove.
func (f *footing) goesOn() bool {
	switch {
	case f.phase != phaseMember || !f.state.Yielded().IsZero():
		return false
	case f.founding():
		// A member of this cluster has entered no other.
		return f.surveyed.base.Wins(func(n gossip.NodeID) bool { return f.lives(n) && !f.isLost(n) })
	}
	return f.connected() && !f.isSuspended()
}
