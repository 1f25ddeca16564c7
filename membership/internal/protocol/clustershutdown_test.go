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

// allEnded reports whether all nodes have ended, and expects that they have left in order.
func allEnded(t *testing.T, nodes []*node) bool {
	t.Helper()
	for _, n := range nodes {
		if n.stopping == nil {
			return false
		}
		require.Equal(t, component.StopLeft, n.stopping.Reason, "%v: %s", n.id, n.stopping.Detail)
	}
	return true
}

// All prepare, are ready at once, and leave when one of them does, by one edit of the voters that they had.
func TestAllAreStoppedTogether(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(5)
	voters := nodes[0].machine.State().Config()
	nodes[2].step(protocol.Prepare{})
	took := l.until(5*time.Second, func() bool {
		return !slices.ContainsFunc(nodes, func(n *node) bool { return !n.sees(5, gossip.Ready) })
	})
	t.Logf("all are ready within %v", took)
	l.run(time.Minute)
	for _, n := range nodes {
		require.True(t, n.sees(5, gossip.Ready), "nobody leaves unasked")
		require.True(t, n.hosts())
		n.step(protocol.Prepare{}) // Who asks again changes nothing.
	}
	nodes[4].step(component.Busy{Component: "sharding"}) // Its leave takes a while.
	nodes[1].step(protocol.Leave{Address: nodes[1].id.Address})
	l.run(2 * time.Second)
	require.Nil(t, nodes[1].stopping, "nobody exits before all can")
	nodes[4].step(component.Drained{Component: "sharding"})
	took = l.until(5*time.Second, func() bool { return allEnded(t, nodes) })
	t.Logf("all have ended within %v", took)
	require.Equal(t, voters.Voters, nodes[0].machine.State().Config().Voters, "those who vote can start the cluster again")
}

// Who has longer to hand over keeps the votes of the others until it has, and leaves in order.
func TestAllWaitForWhoHandsOverLast(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(4)
	nodes[2].step(component.Busy{Component: "sharding"})
	nodes[0].step(protocol.Prepare{})
	l.run(2 * time.Second)
	nodes[2].step(protocol.Leave{Address: nodes[2].id.Address})
	l.run(l.cfg.LeaveTimeout - time.Second)
	for _, n := range nodes {
		require.Nil(t, n.stopping, "%v", n.id)
	}
	nodes[2].step(component.Drained{Component: "sharding"})
	l.until(2*time.Second, func() bool { return allEnded(t, nodes) })
}

// What a node says last can be read whatever its receiver knows: nobody is left to ask. (It built upon a base, a state
// that all had seen, which at times the one alone knew who ended: the others took it for dead seconds later, or gave
// up their own side.)
func TestTheLastWordBuildsUponNoBase(t *testing.T) {
	l := newLoop(t)
	last := map[gossip.NodeID]gossip.Delta{}
	l.drop = func(from, _ gossip.NodeID, message any) bool {
		if m, is := message.(protocol.GossipDelta); is {
			last[from] = m.Delta
		}
		return false
	}
	nodes := l.cluster(4)
	nodes[0].step(protocol.Prepare{})
	l.run(10 * time.Second)
	require.NotZero(t, last[nodes[0].id].From.Base, "what comes before builds upon one: it is smaller")
	nodes[0].step(protocol.Leave{Address: nodes[0].id.Address})
	l.until(5*time.Second, func() bool { return allEnded(t, nodes) })
	for _, n := range nodes {
		require.Zero(t, last[n.id].From.Base, "%v", n.id)
	}
}

// Nobody comes in while a cluster is shut down, and who was coming leaves.
func TestNobodyComesIntoAClusterThatIsShutDown(t *testing.T) {
	l := newLoop(t)
	l.cfg.MinNrOfMembers = 1
	nodes := l.cluster(3)
	late := l.join(4)
	l.until(5*time.Second, func() bool { return nodes[0].machine.State().Member(late.id) != nil })
	nodes[0].step(protocol.Prepare{})
	l.run(10 * time.Second)
	require.True(t, nodes[1].sees(3, gossip.Ready) && late.stopping != nil || nodes[1].sees(4, gossip.Ready))
	stranger := l.join(5)
	l.run(10 * time.Second)
	require.Nil(t, stranger.stopping)
	require.Nil(t, nodes[1].machine.State().Member(stranger.id))
	require.Empty(t, stranger.machine.State().Members())
}

// A node that dies meanwhile is downed, and the others are ready then.
func TestAShutdownGoesOnWithoutTheDead(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(5)
	nodes[4].dead = true
	nodes[0].step(protocol.Prepare{})
	l.run(time.Second)
	require.True(t, nodes[1].sees(5, gossip.Preparing) || nodes[1].machine.State().Shutdown() == gossip.Preparing)
	l.until(30*time.Second, func() bool { return nodes[1].sees(4, gossip.Ready) })
	nodes[3].step(protocol.Leave{Address: nodes[3].id.Address})
	nodes[2].dead = true // And one while all leave.
	l.until(time.Minute, func() bool { return allEnded(t, []*node{nodes[0], nodes[1], nodes[3]}) })
}

// Who was leaving already leaves alone; the others are ready when it is gone.
func TestAShutdownWaitsForWhoLeavesAlready(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(4)
	nodes[3].step(component.Busy{Component: "sharding"})
	nodes[3].step(protocol.Leave{Address: nodes[3].id.Address})
	l.run(time.Second)
	nodes[0].step(protocol.Prepare{})
	l.run(5 * time.Second)
	require.Equal(t, gossip.Preparing, nodes[1].machine.State().Shutdown())
	nodes[3].step(component.Drained{Component: "sharding"})
	l.until(10*time.Second, func() bool { return nodes[1].sees(3, gossip.Ready) })
	require.Equal(t, component.StopLeft, nodes[3].stopping.Reason)
	require.Len(t, nodes[1].machine.State().Config().Voters, 3)
}

// Who is not up cannot ask for it.
func TestOnlyAMemberThatIsUpBeginsAShutdown(t *testing.T) {
	alone := newLoop(t).start(9, 9)
	alone.step(protocol.Prepare{})
	require.Equal(t, uint64(1), alone.machine.Refusals(protocol.RefusedUnsolicited))
	l := newLoop(t)
	nodes := l.cluster(3)
	nodes[2].step(component.Busy{Component: "sharding"})
	nodes[2].step(protocol.Leave{Address: nodes[2].id.Address})
	nodes[2].step(protocol.Prepare{})
	require.Equal(t, uint64(1), nodes[2].machine.Refusals(protocol.RefusedUnsolicited))
	require.Equal(t, gossip.StatusNone, nodes[2].machine.State().Shutdown())
}
