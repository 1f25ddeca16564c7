// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/internal/patience/steps"
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

// crowd returns the state of a node with as many members as there may be: a node that joins, and a crowd of others.
func crowd(t *testing.T, of, joiner *node) *gossip.State {
	t.Helper()
	loaded := of.machine.State().Member(of.id).Loaded
	return of.machine.State().Edit(of.id, func(e *gossip.Edit) {
		require.True(t, e.Join(gossip.Member{Node: joiner.id, Protocol: gossip.ProtocolRange{Min: 1, Max: 4}, Loaded: loaded}))
		for i := range gossip.MaxMembers - len(of.machine.State().Members()) - 1 {
			id := gossip.NodeID{Address: gossip.Address{Host: fmt.Sprint("crowd-", i), Port: 1}, UID: gossip.UID(1000 + i)}
			require.True(t, e.Join(gossip.Member{Node: id, Protocol: gossip.ProtocolRange{Min: 1, Max: 1}, Loaded: loaded}))
		}
	})
}

// The largest message of each type that a node takes is a step in proportion to the members that a state may have,
// in what the step allocates and in what it causes: what is allocated is about what is touched. That is so for a
// member, for a node that joins and for one that looks for a cluster, from a member and from who is not known.
func TestTheLargestMessagesAreBoundedSteps(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(2)
	joiner := l.start(3, 3)
	var attempt uint64
	l.drop = func(_, _ gossip.NodeID, message any) bool {
		request, ok := message.(protocol.JoinRequest)
		if ok {
			attempt = request.Attempt
		}
		return ok
	}
	joiner.step(protocol.Join{Seeds: []gossip.Address{address(2)}})
	l.until(10*time.Second, func() bool { return attempt > 0 })
	full := crowd(t, nodes[1], joiner)
	looking := l.start(4, 4)
	looking.step(protocol.Join{Seeds: []gossip.Address{address(1)}})
	stranger := gossip.NodeID{Address: gossip.Address{Host: "stranger", Port: 1}, UID: 77}
	var uids []gossip.UID
	var listed []gossip.Address
	var voters []protocol.Voter
	var all []gossip.NodeID
	for i, m := range full.Members() {
		if all, voters = append(all, m.Node), append(voters, protocol.Voter{Node: m.Node, Data: gossip.DataID(i + 1)}); i < protocol.MaxReached {
			uids = append(uids, m.Node.UID)
		}
		if i < protocol.MaxListed {
			listed = append(listed, m.Node.Address)
		}
	}
	text := strings.Repeat("x", protocol.MaxTextBytes)
	claim := protocol.Claim{
		Record: protocol.Record{Data: 7, Promise: 1, Cluster: full.Cluster(), Stamp: protocol.Stamp{Born: 1}, Voters: voters, Previous: voters},
		Kept:   true, List: listed, Cluster: full.Cluster(), Standing: true, Voters: all,
	}
	var settings []protocol.Setting
	var differences []protocol.Difference
	for i := range protocol.MaxSettings {
		key := fmt.Sprintf("%0*d", protocol.MaxKeyBytes, i)
		settings = append(settings, protocol.Setting{Key: key, Value: text, Class: protocol.ShouldEqual})
		differences = append(differences, protocol.Difference{Key: key, Member: text, Joiner: text})
	}
	rows := []any{
		protocol.Welcome{Attempt: attempt, State: full, Warnings: differences},
		protocol.GossipState{State: full},
		protocol.GossipStatus{Digest: full.FullDigest()},
		protocol.GossipDelta{Delta: full.DeltaTo(gossip.New(full.Cluster()).Digest()), Digest: full.FullDigest()},
		protocol.Heartbeat{Sequence: 1, Fingerprint: 1, Shared: true},
		protocol.HeartbeatReply{Sequence: 1, Known: true, Standing: true, Question: protocol.Question{Sequence: 1, Fingerprint: 1}},
		protocol.AskStanding{Sequence: 1},
		protocol.GiveStanding{Sequence: 1, Known: true, Standing: true, Question: 1},
		protocol.LendStanding{Question: 1, Standing: true, Proof: time.Second, All: time.Second},
		protocol.Reached{Nodes: uids},
		protocol.InitJoin{Attempt: attempt, Claim: claim},
		protocol.InitJoinAck{Attempt: attempt, Cluster: full.Cluster(), Claim: claim},
		protocol.InitJoinNack{Attempt: attempt, Member: true, Reason: text, Claim: claim},
		protocol.AskVote{Birth: 1 << 40, Basis: protocol.Stamp{Born: 1}, Settled: true, Claim: claim},
		protocol.Vote{Birth: 1, Granted: true, Reason: text},
		protocol.JoinRequest{Attempt: attempt, Member: gossip.Member{Node: stranger, Status: gossip.Joining}, Settings: settings, Claim: claim},
		protocol.JoinRefused{Attempt: attempt, Refusal: protocol.RefusedBusy, Retry: true, Reason: text, Differences: differences},
		protocol.AskDowning{Question: 1, View: 1},
		protocol.DowningAnswer{Question: 1, Decision: downing.Decision{Down: all, Reason: text}},
		protocol.NotMember{Node: stranger, Status: gossip.Down, Downed: gossip.Cause{By: nodes[1].id, Why: text}},
		protocol.ExitingConfirmed{},
	}
	var names []string
	for _, message := range rows {
		names = append(names, reflect.TypeOf(message).Name())
		for _, from := range []gossip.NodeID{nodes[1].id, stranger} {
			for _, n := range []*node{nodes[0], joiner, looking} {
				for range 2 { // What is news is news once; then it is compared.
					var out machine.Outbox
					objects, bytes := steps.Allocated(func() {
						n.machine.Step(machine.Now{Mono: machine.Instant(l.now) + 1, Wall: l.wall.Add(l.now)}, machine.Received{From: from, Message: message}, &out)
					})
					require.LessOrEqual(t, objects, 4*gossip.MaxMembers, "%T to %s", message, n.id)
					require.LessOrEqual(t, bytes, 1024*gossip.MaxMembers, "%T to %s", message, n.id)
					require.LessOrEqual(t, len(out.Effects()), 2*gossip.MaxMembers, "%T to %s", message, n.id)
				}
			}
		}
	}
	for _, n := range []*node{nodes[0], joiner} {
		require.Len(t, n.machine.State().Members(), gossip.MaxMembers, "%s", n.id)
	}
	slices.Sort(names)
	require.Equal(t, steps.Cases(t, "machine.go", "receive"), names, "each message has a row")
}
