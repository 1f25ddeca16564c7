// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"time"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// Where a strategy may let a minority survive, no number of nodes says by itself that
// a side goes on: only the strategy does, and a side that it has not asked, or that got
// no answer, may be the one that goes. What such a side may still do follows from the
// age of the oldest answer among those of all voters that are not down:
//
//	                  hosts   says that it goes on   lets nodes in, downs their
//	                                                 predecessors, leads
//	up to the fence   yes     yes                    yes
//	up to the margin  yes     yes                    no
//	older             no      no                     no
//
// Up to the fence nobody can have decided without this node, since a decision needs a
// view that was stable for at least as long. After it another side may have been kept.
// If this one let in a node that is started again there, and took the node that it was
// before for dead, it would soon miss nobody, never ask the strategy, and go on.

// margin is for how long a node may host without word of some voter that is not
// down, and for how long after the first voter of the other side cut it off its
// work waits for a new home, where a side without a majority may survive. A node of
// the side that loses may then have contact to a majority, so that the fence does
// not stop it; that it has not heard of the others for so long does. The time is
// that in which either side has come to a decision, unless its strategy is slow:
// until the decision such a side hosts nothing.
//
// The number of members counts only where a node monitors some of them, so that
// the margin is the same on both sides, which may have different numbers.
func (m *Machine) margin() time.Duration {
	bounds := m.cfg.FailureDetector.Bounds()
	n := max(len(m.state.Members()), m.cfg.FailureDetector.MonitoredByNrOfMembers+1)
	return bounds.MaxSilence - bounds.MinSilence + downing.Spread(n) + m.deps.Downing.Limit + m.cfg.Fence
}

// undecidedUntil is the moment up to which this node may host although it is not
// decided who must go. Whoever exits hosts nothing and stops answering in the
// normal course of things.
func (m *Machine) undecidedUntil() machine.Instant {
	// The zero value of an instant is longer ago than any margin.
	until := m.lastFromAll(m.footing.contact).Add(m.margin())
	if m.monitorsSome() && m.side.troubled {
		// Those whom this node does not monitor it knows from others, later by the
		// other terms of the margin at most.
		until = min(until, m.side.troubledSince.Add(m.deps.Downing.Limit+m.cfg.Fence))
	}
	return until
}

// lastFromAll is the latest moment since which all voters were heard, but for those who
// are down or on their way out: [machine.Never] if there is none besides this node.
func (m *Machine) lastFromAll(heard map[gossip.NodeID]machine.Instant) machine.Instant {
	all := machine.Never
	for _, voters := range m.panel() {
		for _, v := range voters {
			if member := m.state.Member(v); v != m.self && member != nil && member.Status < gossip.Exiting {
				all = min(all, max(heard[v], m.footing.expected[v]))
			}
		}
	}
	return all
}

// noDecisionPending tells whether nobody can have decided without this node who goes, and
// nobody here is about to. Where only majorities survive, and while a cluster is founded,
// a majority is all that it takes.
func (m *Machine) noDecisionPending() bool {
	if m.majorityOnly() || m.founding() {
		return true
	}
	return len(m.trouble()) == 0 && m.now.Mono <= m.lastFromAll(m.footing.known).Add(m.cfg.Fence)
}

// isSuspended tells whether this side has been undecided for so long that it may host
// nothing.
func (m *Machine) isSuspended() bool {
	return !m.majorityOnly() && m.now.Mono > m.lastFromAll(m.footing.known).Add(m.margin())
}

// mayLetIn tells whether nodes may become members through this one.
func (m *Machine) mayLetIn() bool { return m.goesOn() && m.noDecisionPending() }
