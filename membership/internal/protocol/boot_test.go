// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// together starts n nodes at the same moment; the first three are seed nodes.
func (l *loop) together(n int) []*node {
	l.t.Helper()
	nodes := make([]*node, n)
	for i := range n {
		nodes[i] = l.start(i+1, gossip.UID(i+1))
	}
	for _, n := range nodes {
		n.step(protocol.Join{Seeds: []gossip.Address{address(1), address(2), address(3)}})
	}
	return nodes
}

// A node that asked before there was a cluster hears of the cluster as soon as there is
// one, instead of with its next question a second later. covers F8.
func TestWhoAskedTooEarlyIsToldOfTheCluster(t *testing.T) {
	l := newLoop(t)
	l.together(10)
	took := l.until(10*time.Second, func() bool { return l.allUp(10) })
	require.Less(t, took, l.youngest()+500*time.Millisecond, "nobody waited for the time of the next question")
}

// Nodes that join together become up in one edit, not in one for each of those
// whose sign of life came first. covers F8.
func TestNodesThatJoinTogetherBecomeUpTogether(t *testing.T) {
	l := newLoop(t)
	nodes := l.together(30)
	took := l.until(10*time.Second, func() bool { return l.allUp(30) })
	t.Logf("30 nodes: %v", took)
	require.Less(t, took, l.youngest()+1500*time.Millisecond)
	gen := nodes[0].machine.State().Config().Gen
	require.LessOrEqual(t, gen, uint64(3), "the first node alone, the others, and perhaps a straggler")
}

// A node that dies while it joins holds nobody back for long.
func TestANodeThatDiesWhileItJoinsHoldsNobodyBackForLong(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(3)
	l.drop = func(_, to gossip.NodeID, message any) bool {
		_, welcome := message.(protocol.Welcome)
		return welcome && to.Address == address(4)
	}
	l.join(4)
	l.until(5*time.Second, func() bool { return nodes[0].machine.State().ByAddress(address(4)) != nil })
	l.nodes[address(4)].dead = true
	l.join(5)
	took := l.until(5*time.Second, func() bool {
		m := nodes[0].machine.State().ByAddress(address(5))
		return m != nil && m.Status == gossip.Up
	})
	require.Less(t, took, time.Second)
}

// A node of a large cluster exchanges messages with some of the others, not with all:
// with nodes that it monitors, with nodes that monitor it, with a few that it has
// drawn or heard, and with the relays. Each of them is a connection. Relays, which are
// the five oldest, talk to all. covers F8, I28.
func TestANodeOfALargeClusterTalksToFew(t *testing.T) {
	const size = 60
	l := newLoop(t)
	peers := map[gossip.NodeID]map[gossip.NodeID]bool{}
	l.drop = func(from, to gossip.NodeID, _ any) bool {
		if peers[from] == nil {
			peers[from] = map[gossip.NodeID]bool{}
		}
		if to.UID != 0 {
			peers[from][to] = true
		}
		return false
	}
	relays := func(n gossip.NodeID) bool {
		oldest := l.nodes[n.Address].machine.State().ByAge("")
		return slices.ContainsFunc(oldest[:min(len(oldest), 5)], func(m *gossip.Member) bool { return m.Node == n })
	}
	count := func() (all, most int) {
		for n, to := range peers {
			all += len(to)
			if n.Address != address(1) && n.Address != address(2) && n.Address != address(3) && !relays(n) {
				most = max(most, len(to))
			}
		}
		return all, most
	}
	l.together(size)
	took := l.until(10*time.Second, func() bool { return l.allUp(size) })
	all, most := count()
	t.Logf("%v until %d are up, %d peers a node, at most %d but for the seed nodes", took, size, all/size, most)
	require.Less(t, l.sent["GossipDelta"]/size, 35, "news of who has seen a state does not bring more of it back")
	require.Less(t, all/size, 40)
	require.Less(t, most, 60)
	clear(peers)
	l.run(10 * time.Second)
	all, most = count()
	t.Logf("at rest %d peers a node, at most %d", all/size, most)
	require.Less(t, all/size, 36)
	require.Less(t, most, 40)
}

// Drawn contacts are exchanged one by one, and lost ones at once, so that news goes
// on to reach everybody. covers F8.
func TestNewsReachesAllOfALargeClusterAfterManyWereLost(t *testing.T) {
	const size, lost = 30, 9
	l := newLoop(t)
	nodes := l.together(size)
	l.until(10*time.Second, func() bool { return l.allUp(size) })
	l.run(65 * time.Second)
	for _, n := range nodes[size-lost:] {
		n.dead = true
	}
	l.until(40*time.Second, func() bool { return l.allUp(size - lost) })
}

// News from an unknown member is not taken, but tells that there is some: a known member
// is asked at once, and not at the next round.
func TestNewsFromAnUnknownMemberMakesANodeAsk(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(3)
	l.run(10 * time.Second)
	stranger := gossip.NodeID{Address: address(9), UID: 9}
	state := nodes[0].machine.State()
	clear(l.sent)
	digest := state.Digest()
	for range 5 {
		nodes[1].step(machine.Received{From: stranger, Message: protocol.GossipDelta{Delta: state.DeltaTo(digest), Digest: digest}})
	}
	l.run(l.cfg.PushInterval)
	require.GreaterOrEqual(t, l.sent["GossipStatus"], 1)
	require.LessOrEqual(t, l.sent["GossipStatus"], 4, "one, and the rounds that were due anyway")
	require.Equal(t, uint64(5), nodes[1].machine.Refusals(protocol.RefusedNotMember))
}

// In a ring, a member gets its first heartbeats when it becomes a voter at the
// latest, so that it has standing as soon as it may host. covers I14, I28.
func TestARingGreetsANewVoterAtOnce(t *testing.T) {
	l := newLoop(t)
	l.cluster(16)
	asked := map[gossip.NodeID]bool{}
	l.drop = func(from, to gossip.NodeID, message any) bool {
		if _, beat := message.(protocol.Heartbeat); beat && to.Address == address(17) {
			asked[from] = true
		}
		return false
	}
	n := l.join(17)
	l.until(5*time.Second, func() bool { return n.sees(17, gossip.Up) })
	l.until(200*time.Millisecond, func() bool { return len(asked) == 9 && n.hosts() })
}
