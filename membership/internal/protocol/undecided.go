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
	return f.allSince(f.answers.contact, f.relay.lent).Add(f.undecidedMargin())
}

// allSince is the latest moment since which all voters were heard, except those that are
// down or on their way out, by this node or by one that lent it its proof:
// [machine.Never] if there is none besides this node. Up to the moment at which a node
// that monitors all others first asks a voter it takes the voter for heard. It is not
// taken so where a node monitors some of the others: others may have missed the voter for
// long.
func (f *footing) allSince(heard map[gossip.NodeID]machine.Instant, lent proofInstants) machine.Instant {
	some := f.monitorsSome()
	all := f.lastOfAll(func(n gossip.NodeID) machine.Instant {
		if some {
			return heard[n]
		}
		return max(heard[n], f.answers.expected[n])
	})
	return max(all, lent.all)
}

// heardAll is the latest moment since which all voters that are not down have answered with
// standing. A voter that never has was not heard.
func (f *footing) heardAll() machine.Instant {
	all := f.lastOfAll(func(n gossip.NodeID) machine.Instant { return f.answers.contact[n] })
	return max(all, f.relay.lent.all)
}

// noDecisionPending tells whether no other side can have decided without this node which
// nodes go, and this side is not about to. Where only majorities survive, and while a
// cluster is founded, a majority is enough.
func (f *footing) noDecisionPending() bool {
	if f.strategies.majorityOnly() || f.founding() {
		return true
	}
	return len(f.trouble()) == 0 && f.now.Mono <= f.allSince(f.answers.known, f.relay.lentKnown).Add(f.cfg.Fence)
}

// isSuspended tells whether this side has been undecided for so long that it may host
// nothing.
func (f *footing) isSuspended() bool {
	return !f.strategies.majorityOnly() && f.now.Mono > f.allSince(f.answers.known, f.relay.lentKnown).Add(f.undecidedMargin())
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
