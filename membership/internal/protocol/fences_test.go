// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/internal/protocol"
)

func isGossip(message any) bool {
	switch message.(type) {
	case protocol.GossipStatus, protocol.GossipDelta, protocol.GossipState:
		return true
	default:
		return false
	}
}

// holdsDown tells whether n knows that another is down or gone.
func holdsDown(n *node, other gossip.NodeID) bool {
	m := n.machine.State().Member(other)
	return m == nil || m.Status == gossip.Down
}

// The fourth of five nodes accuses the fifth, takes it back, and is removed together
// with it, so that nobody else ever hears that it took it back. The third, of the side
// that goes on, never accuses the fifth. So the fifth has its standing by these two
// until the third hears that it is down, and a fence longer. That the fourth had
// accused it once says nothing.
//
// covers I1, I2, I14.
func TestAccusationOfAVoterThatIsRemovedTooIsNoCut(t *testing.T) {
	for moment := range 10 {
		l := newLoop(t)
		nodes := l.cluster(5)
		l.run(time.Duration(moment) * 100 * time.Millisecond)
		leader, third, fourth, fifth := nodes[0], nodes[2], nodes[3], nodes[4]
		checkTakeOver(l, nodes)
		goes := func(n gossip.NodeID) bool { return n == fourth.id || n == fifth.id }
		viaThird := func(from, to gossip.NodeID) bool { return from == third.id || to == third.id }
		l.drop = func(from, to gossip.NodeID, message any) bool {
			_, answers := message.(protocol.HeartbeatReply)
			return answers && (goes(from) != goes(to) && !viaThird(from, to) || from == fifth.id && to == fourth.id)
		}
		s := func() *gossip.State { return leader.machine.State() }
		l.until(10*time.Second, func() bool { return !s().ReachableFrom(fourth.id, fifth.id) })

		// No gossip crosses from now on. What else crosses goes by the third.
		l.drop = func(from, to gossip.NodeID, message any) bool {
			return goes(from) != goes(to) && (isGossip(message) || !viaThird(from, to))
		}
		l.until(30*time.Second, func() bool { return holdsDown(leader, fifth.id) })
		require.True(t, fourth.machine.State().ReachableFrom(fourth.id, fifth.id), "it took the accusation back")
		require.True(t, third.machine.State().ReachableFrom(third.id, fifth.id), "it never accused")
		require.True(t, fifth.hosts())
		l.drop = func(from, to gossip.NodeID, _ any) bool { return goes(from) != goes(to) }
		l.untilFenced(10*time.Second, fifth.id, fourth.id)
		require.False(t, fifth.hosts())
	}
}

// A joiner holds unreachable records of all voters about one of them, and hears nothing
// until that voter is removed: neither that all took their records back, nor that the
// voter was declared down long after. So it waits for the fence from the moment at which
// it hears of the removal.
//
// covers I1, I2, I14.
func TestWhoTheRemovalDidNotWaitForKnowsNoCuts(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(4)
	leader, fourth := nodes[0], nodes[3]
	answers := func(message any) bool { _, ok := message.(protocol.HeartbeatReply); return ok }
	l.drop = func(from, _ gossip.NodeID, message any) bool { return from == fourth.id && answers(message) }
	l.until(10*time.Second, func() bool { return len(leader.machine.State().Observers(fourth.id)) == 3 })
	joiner := l.join(5)
	checkTakeOver(l, append(nodes, joiner))
	joined := func() bool { return len(joiner.machine.State().Observers(fourth.id)) == 3 }
	l.until(time.Second, joined)

	// It is not promoted, since the leader has no word of it.
	l.drop = func(from, to gossip.NodeID, message any) bool {
		return from == joiner.id && !answers(message) || to == joiner.id && isGossip(message) || from == joiner.id && to == leader.id
	}
	l.until(2*time.Second, func() bool { return leader.machine.State().Reachable(fourth.id) })
	l.run(l.cfg.Fence)
	require.True(t, joined(), "it has not heard of it")
	require.Equal(t, gossip.Joining, leader.machine.State().Member(joiner.id).Status)
	require.True(t, fourth.hosts())

	l.cut = func(from, to gossip.Address) bool { return (from == fourth.id.Address) != (to == fourth.id.Address) }
	leader.step(protocol.Down{Address: fourth.id.Address})
	l.until(time.Second, func() bool {
		return !slices.ContainsFunc(nodes[:3], func(n *node) bool { return n.machine.State().Member(fourth.id) != nil })
	})
	l.drop = nil
	l.until(time.Second, func() bool { return joiner.machine.State().Member(fourth.id) == nil })
	require.True(t, fourth.hosts())
	l.untilFenced(10*time.Second, fourth.id)
	require.False(t, fourth.hosts())
}
