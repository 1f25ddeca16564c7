// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// covers F28: a node that leaves is removed within a second, and others know at
// once that nothing of it runs.
func TestLeavingNodeIsRemovedGracefully(t *testing.T) {
	for leaver := range 3 {
		l := newLoop(t)
		nodes := l.cluster(3)
		checkTakeOver(l, nodes)
		nodes[1].step(protocol.Leave{Address: nodes[leaver].id.Address})
		took := l.until(10*time.Second, func() bool { return nodes[leaver].stopping != nil })
		t.Logf("node %d left within %v", leaver+1, took)
		require.Less(t, took, 3*time.Second)
		require.Equal(t, component.StopLeft, nodes[leaver].stopping.Reason)
		l.until(5*time.Second, func() bool { return l.allUp(2) })
		for i, n := range nodes {
			if i != leaver {
				require.Equal(t, []component.Fenced{{Node: nodes[leaver].id, Graceful: true}}, published[component.Fenced](n))
				require.Len(t, n.machine.State().Config().Voters, 2)
			}
		}
	}
}

// A leaving node goes on hosting until every component that held it has stopped.
func TestLeavingNodeWaitsForItsComponents(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(3)
	n := nodes[2]
	n.step(component.Busy{Component: "sharding"})
	n.step(component.Busy{Component: "singleton"})
	n.step(component.Drained{Component: "sharding"})
	require.Equal(t, uint64(1), n.machine.Refusals(protocol.RefusedUnsolicited), "it is not leaving yet")
	n.step(protocol.Leave{Address: n.id.Address})
	l.run(5 * time.Second)
	require.True(t, n.hosts())
	n.step(component.Drained{Component: "sharding"})
	l.run(time.Second)
	require.True(t, n.hosts())
	n.step(component.Drained{Component: "singleton"})
	require.False(t, n.hosts())
	took := l.until(5*time.Second, func() bool { return n.stopping != nil })
	require.Less(t, took, 2*time.Second)
}

func TestLeaveTimeoutEndsTheWaitForComponents(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(3)
	nodes[2].step(component.Busy{Component: "sharding"})
	nodes[2].step(protocol.Leave{Address: nodes[2].id.Address})
	l.run(29 * time.Second)
	require.True(t, nodes[2].hosts())
	l.run(3 * time.Second)
	require.NotNil(t, nodes[2].stopping)
	require.True(t, nodes[0].sees(2, gossip.Up))
}

// covers F28, F35: all leave together.
func TestAllNodesLeaveTogether(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(5)
	for _, n := range nodes {
		n.step(protocol.Leave{Address: n.id.Address})
	}
	took := l.until(30*time.Second, func() bool {
		for _, n := range nodes {
			if n.stopping == nil {
				return false
			}
		}
		return true
	})
	t.Logf("all left within %v", took)
	require.Less(t, took, 10*time.Second)
	for _, n := range nodes {
		require.Equal(t, component.StopLeft, n.stopping.Reason, "%v", n.id)
	}
}

func TestLastNodeLeavesAtOnce(t *testing.T) {
	l := newLoop(t)
	n := l.join(1)
	n.step(protocol.Leave{Address: n.id.Address})
	require.NotNil(t, n.stopping)
	require.Equal(t, component.StopLeft, n.stopping.Reason)
}

// covers F28: leave while joining, and before there is a cluster.
func TestLeaveBeforeUp(t *testing.T) {
	l := newLoop(t)
	l.cfg.MinNrOfMembers = 3
	nodes := []*node{l.join(1), l.join(2)}
	l.run(9 * time.Second)
	require.True(t, nodes[0].sees(2, gossip.Joining))
	nodes[1].step(protocol.Leave{Address: address(2)})
	l.until(10*time.Second, func() bool { return nodes[1].stopping != nil })
	require.Equal(t, component.StopLeft, nodes[1].stopping.Reason)
	require.True(t, nodes[0].sees(1, gossip.Joining))

	alone := l.start(9, 9)
	alone.step(protocol.Join{Seeds: []gossip.Address{address(8)}})
	alone.step(protocol.Leave{Address: address(9)})
	require.Equal(t, component.StopLeft, alone.stopping.Reason)
}

// covers F28, F29: a leaving node that dies is downed and fenced like any other.
func TestLeavingNodeThatDiesIsDowned(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(3)
	nodes[2].step(component.Busy{Component: "sharding"})
	nodes[2].step(protocol.Leave{Address: nodes[2].id.Address})
	l.run(time.Second)
	nodes[2].dead = true
	took := l.untilFenced(20*time.Second, nodes[2].id)
	require.Less(t, took, 10*time.Second)
	require.Equal(t, []component.Fenced{{Node: nodes[2].id}}, published[component.Fenced](nodes[0]))
}

// covers F24: a node that is frozen in the middle of its leave, for longer than
// the others wait for it and than it waits for its components, learns that it
// was taken for dead: it did not leave in order.
func TestNodeFrozenWhileItLeavesWasNotLetGo(t *testing.T) {
	for _, pause := range []time.Duration{15 * time.Second, time.Minute} {
		l := newLoop(t)
		nodes := l.cluster(3)
		nodes[2].step(component.Busy{Component: "sharding"})
		nodes[2].step(protocol.Leave{Address: nodes[2].id.Address})
		l.run(time.Second)
		nodes[2].freeze()
		// Nothing reaches it when it wakes: the connections have broken long ago.
		l.drop = func(_, to gossip.NodeID, _ any) bool { return to == nodes[2].id && nodes[2].frozen }
		l.run(pause)
		require.NotEmpty(t, published[component.Fenced](nodes[0]))
		nodes[2].thaw()
		l.run(3 * time.Second)
		require.NotNil(t, nodes[2].stopping)
		require.Equal(t, component.StopDowned, nodes[2].stopping.Reason, "%v: %s", pause, nodes[2].stopping.Detail)
	}
}

// covers F27: the confirmation is lost for a while.
func TestLostConfirmationIsRepeated(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(3)
	lost := 0
	l.drop = func(_, _ gossip.NodeID, message any) bool {
		if _, ok := message.(protocol.ExitingConfirmed); ok && lost < 2 {
			lost++
			return true
		}
		return false
	}
	nodes[2].step(protocol.Leave{Address: nodes[2].id.Address})
	took := l.until(10*time.Second, func() bool { return nodes[2].stopping != nil })
	require.Less(t, took, 4*time.Second)
	require.Equal(t, 2, lost)
}

// covers F29: down of self, of an unknown address, of the leader, of a joining
// member, and of each other at once.
func TestDownCommands(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(5)
	nodes[4].step(protocol.Down{Address: address(44)})
	require.Equal(t, uint64(1), nodes[4].machine.Refusals(protocol.RefusedUnknown))
	nodes[4].step(protocol.Down{Address: address(5)})
	require.Equal(t, component.StopDowned, nodes[4].stopping.Reason)
	l.until(10*time.Second, func() bool { return l.allUp(4) })
	nodes[1].step(protocol.Down{Address: address(3)})
	nodes[2].step(protocol.Down{Address: address(2)})
	l.until(20*time.Second, func() bool { return nodes[0].sees(2, gossip.Up) })
	require.NotNil(t, nodes[1].stopping)
	require.NotNil(t, nodes[2].stopping)
	l.until(10*time.Second, func() bool { return l.allUp(2) })
	nodes[3].step(protocol.Down{Address: address(4)})
	l.until(10*time.Second, func() bool { return l.allUp(1) })
	require.True(t, nodes[0].hosts())
}

// Half of the voters without the lowest of them is no majority, not even when
// the others were downed by hand: they may have gone on before that was heard.
func TestThoseWhoAreLeftWithoutAMajorityStop(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(2)
	nodes[1].step(protocol.Down{Address: address(1)})
	l.run(time.Second)
	require.NotNil(t, nodes[0].stopping)
	require.False(t, nodes[1].hosts())
	l.until(10*time.Second, func() bool { return nodes[1].stopping != nil })
	require.Equal(t, component.StopDowned, nodes[1].stopping.Reason)
}

// One of five leaves, and two others die. The leaving node, by whose vote that was decided, is cut
// off before it has seen it, and has confirmed. The two nodes that are left do not win without
// it, so they do not let the three go. They do not stay like that for ever: no other node
// could found a cluster while they answer.
func TestWhoNeedsAVoterThatHasLeftUnheardEnds(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(5)
	leaver := nodes[3]
	apart := false
	l.drop = func(from, to gossip.NodeID, message any) bool {
		_, confirms := message.(protocol.ExitingConfirmed)
		return apart && !confirms && (from == leaver.id || to == leaver.id)
	}
	nodes[2].dead, nodes[4].dead = true, true
	l.until(20*time.Second, func() bool { return statusAt(nodes[0], nodes[2]) == gossip.Down })
	apart = true
	nodes[0].step(protocol.Leave{Address: leaver.id.Address})
	l.run(5 * time.Millisecond)
	leaver.step(protocol.Leave{Address: leaver.id.Address})
	l.until(time.Minute, func() bool {
		require.False(t, nodes[0].sees(2, gossip.Up), "the three have been let go")
		return nodes[0].dead && nodes[1].dead
	})
}

// A member that leaves, and has confirmed, answers both sides of a split, and hears the news of
// neither. Each side has a majority with its vote. One at most goes on: whoever is removed, more than
// half have seen that, and the one that both sides have can have seen but one of the two.
//
// covers F14, F28, I1, I2.
func TestOneSideAtMostGoesOnByTheVoteOfAMemberThatHasConfirmed(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(5)
	leaver := nodes[4]
	low := func(a gossip.Address) bool { return slices.Contains(addresses(1, 2), a) }
	l.cut = func(from, to gossip.Address) bool {
		return from != leaver.id.Address && to != leaver.id.Address && low(from) != low(to)
	}
	l.drop = func(_, to gossip.NodeID, message any) bool { return to == leaver.id && isGossip(message) }
	leaver.step(protocol.Leave{Address: leaver.id.Address})
	for range 4000 {
		l.run(10 * time.Millisecond)
		gone := func(at, of *node) bool { return at.stopping == nil && at.machine.State().Member(of.id) == nil }
		require.False(t, gone(nodes[0], nodes[2]) && gone(nodes[2], nodes[0]), "both sides have removed each other at %v", l.now)
	}
}
