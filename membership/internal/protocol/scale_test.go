// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// A quiet cluster costs one exchange of heartbeats a second for each two nodes, and one
// heartbeat or question a second of each node shows the fingerprint of its state. covers I28.
func TestQuietClusterSendsLittle(t *testing.T) {
	l := newLoop(t)
	l.cluster(5)
	l.run(3 * time.Second)
	shown := 0
	l.drop = func(_, _ gossip.NodeID, message any) bool {
		if fingerprintIn(message) != 0 {
			shown++
		}
		return false
	}
	clear(l.sent)
	l.run(10 * time.Second)
	require.Equal(t, 5*4*10/2, l.sent["Heartbeat"])
	require.Equal(t, 5*4*10, l.sent["HeartbeatReply"])
	require.InDelta(t, 5*10, shown, 5)
	require.Zero(t, l.sent["GossipStatus"]+l.sent["GossipDelta"]+l.sent["GossipState"])
}

// fingerprintIn returns the fingerprint that a message shows; 0: none.
func fingerprintIn(message any) gossip.Hash {
	switch m := message.(type) {
	case protocol.Heartbeat:
		return m.Fingerprint
	case protocol.HeartbeatReply:
		return m.Question.Fingerprint
	}
	return 0
}

// A setting that has everybody monitor everybody, however many that be, takes no memory ahead.
func TestMemoryFollowsWhoIsMonitored(t *testing.T) {
	l := newLoop(t)
	l.cfg.FailureDetector.MonitoredByNrOfMembers = 1 << 50
	l.cluster(20)
	clear(l.sent)
	l.run(10 * time.Second)
	require.Equal(t, 20*19*10, l.sent["HeartbeatReply"])
}

// Where heartbeats are rarer than rounds of gossip, rounds go on without them.
func TestRareHeartbeatsDoNotMakeRepairsRare(t *testing.T) {
	l := newLoop(t)
	l.cfg.GossipInterval = l.cfg.FailureDetector.HeartbeatInterval / 2
	l.cluster(3)
	clear(l.sent)
	l.run(10 * time.Second)
	require.InDelta(t, 3*20, l.sent["GossipStatus"], 3)
}

// A node that neither shows fingerprints nor looks at them, as one of a version before,
// hears all news although what was pushed to it was lost.
func TestANodeWithoutFingerprintsHearsNews(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(3)
	older := nodes[1].id
	l.alter = func(from, to gossip.NodeID, message any) any {
		if from != older && to != older {
			return message
		}
		switch m := message.(type) {
		case protocol.Heartbeat:
			m.Fingerprint = 0
			return m
		case protocol.HeartbeatReply:
			m.Question.Fingerprint = 0
			return m
		}
		return message
	}
	l.run(10 * time.Second)
	l.drop = func(_, to gossip.NodeID, message any) bool {
		_, delta := message.(protocol.GossipDelta)
		return delta && to == older
	}
	l.join(4)
	l.run(5 * time.Second)
	require.False(t, l.allUp(4))
	l.drop = nil
	l.until(2*time.Second, func() bool { return l.allUp(4) })
}

// Beyond one more than the monitors, each node sends its heartbeats to nine
// others, and a crash is still found and fenced. covers F8, I28.
func TestLargeClusterMonitorsInARing(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(16)
	clear(l.sent)
	l.run(10 * time.Second)
	require.Equal(t, 16*9*10, l.sent["HeartbeatReply"])
	for _, n := range nodes {
		require.True(t, n.hosts())
	}
	nodes[7].dead = true
	took := l.untilFenced(20*time.Second, nodes[7].id)
	t.Logf("16 nodes: %v", took)
	require.Less(t, took, 10*time.Second)
}

// covers F30: news of a removed node that comes late brings nobody back.
func TestLateGossipOfARemovedNodeIsRefused(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(3)
	old := nodes[2].machine.State()
	nodes[2].dead = true
	l.untilFenced(20*time.Second, nodes[2].id)
	before := nodes[0].machine.Refusals(protocol.RefusedNotMember)
	nodes[0].step(machine.Received{From: nodes[2].id, Message: protocol.GossipState{State: old}})
	require.Equal(t, before+1, nodes[0].machine.Refusals(protocol.RefusedNotMember))
	// The same by way of a member.
	nodes[0].step(machine.Received{From: nodes[1].id, Message: protocol.GossipState{State: old}})
	l.run(5 * time.Second)
	require.True(t, nodes[0].sees(2, gossip.Up))
}

// A member whose news spread to nobody ends instead of staying for good.
func TestMemberOfWhomNobodyHasHeardEnds(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(3)
	// Only the third seed node answers, and what it says to the others is lost.
	third := nodes[2].id
	l.drop = func(from, _ gossip.NodeID, message any) bool {
		switch message.(type) {
		case protocol.GossipDelta, protocol.GossipStatus, protocol.GossipState:
			return from == third
		}
		return false
	}
	n := l.start(4, 4)
	n.step(protocol.Join{Seeds: []gossip.Address{address(3)}})
	l.until(5*time.Second, func() bool { return n.machine.State().Member(n.id) != nil })
	nodes[2].dead = true
	l.until(30*time.Second, func() bool { return n.stopping != nil })
	require.Equal(t, component.StopJoinFailed, n.stopping.Reason)
	l.until(20*time.Second, func() bool { return l.allUp(2) })
}

func BenchmarkHeartbeatStep(b *testing.B) {
	l := newLoop(b)
	nodes := l.cluster(5)
	now := machine.Now{Mono: machine.Instant(l.now) + 1, Wall: l.wall.Add(l.now)}
	var out machine.Outbox
	in := machine.Received{From: nodes[1].id, Message: protocol.Heartbeat{Sequence: 1}}
	b.ReportAllocs()
	for b.Loop() {
		out.Reset()
		nodes[0].machine.Step(now, in, &out)
	}
}

// A step that takes news in: a member reaches another and does not, in turns. The
// edit of that member and the difference are part of the figure.
func BenchmarkGossipStep(b *testing.B) {
	l := newLoop(b)
	nodes := l.cluster(5)
	now := machine.Now{Mono: machine.Instant(l.now) + 1, Wall: l.wall.Add(l.now)}
	var out machine.Outbox
	peer, subject := nodes[1].id, nodes[2].id
	state := nodes[0].machine.State()
	b.ReportAllocs()
	for b.Loop() {
		next := state.Edit(peer, func(e *gossip.Edit) {
			if !e.Clear(subject) {
				e.Mark(subject, gossip.Unreachable)
			}
		})
		out.Reset()
		delta := protocol.GossipDelta{Delta: next.DeltaTo(state.Digest()), Digest: next.Digest()}
		nodes[0].machine.Step(now, machine.Received{From: peer, Message: delta}, &out)
		state = nodes[0].machine.State()
		if state.ReachableFrom(peer, subject) != next.ReachableFrom(peer, subject) {
			b.Fatal("the news was not taken")
		}
	}
}

// The largest state that a node takes from a member is a step in proportion to its members, in what the step allocates
// and in what it causes: what is allocated is about what is touched.
func TestTheLargestStateIsABoundedStep(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(2)
	loaded := nodes[1].machine.State().Member(nodes[1].id).Loaded
	full := nodes[1].machine.State().Edit(nodes[1].id, func(e *gossip.Edit) {
		for i := range gossip.MaxMembers - 2 {
			id := gossip.NodeID{Address: gossip.Address{Host: fmt.Sprint("crowd-", i), Port: 1}, UID: gossip.UID(1000 + i)}
			require.True(t, e.Join(gossip.Member{Node: id, Protocol: gossip.ProtocolRange{Min: 1, Max: 1}, Loaded: loaded}))
		}
	})
	n := nodes[0]
	step := func(in machine.Input) (allocated, effects int) {
		var before, after runtime.MemStats
		var out machine.Outbox
		runtime.ReadMemStats(&before)
		n.machine.Step(machine.Now{Mono: machine.Instant(l.now) + 1, Wall: l.wall.Add(l.now)}, in, &out)
		runtime.ReadMemStats(&after)
		return int(after.Mallocs - before.Mallocs), len(out.Effects())
	}
	for range 3 { // The state is news once; then it is compared.
		allocated, effects := step(machine.Received{From: nodes[1].id, Message: protocol.GossipState{State: full}})
		require.LessOrEqual(t, allocated, 4*gossip.MaxMembers)
		require.LessOrEqual(t, effects, 2*gossip.MaxMembers)
	}
	require.Len(t, n.machine.State().Members(), gossip.MaxMembers)
}
