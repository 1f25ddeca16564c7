// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// questionIn returns the question that a message brings with an answer; 0: none.
func questionIn(message any) uint64 {
	reply, _ := message.(protocol.HeartbeatReply)
	return reply.Question.Sequence
}

// Two nodes that monitor each other need three messages a round, not four, and both hear
// an answer in each.
func TestTwoNodesShareAnExchange(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(2)
	l.run(3 * time.Second)
	answers := map[gossip.NodeID]int{}
	l.drop = func(_, to gossip.NodeID, message any) bool {
		if _, ok := message.(protocol.HeartbeatReply); ok {
			answers[to]++
		}
		return false
	}
	clear(l.sent)
	l.run(10 * time.Second)
	require.Equal(t, 10, l.sent["Heartbeat"])
	require.Equal(t, map[gossip.NodeID]int{nodes[0].id: 10, nodes[1].id: 10}, answers)
}

// That a node is asked proves nothing to it: one whose questions are not answered loses its
// standing and accuses, although the other one asks it each second, and is answered.
func TestAnArrivalIsNoAnswer(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(2)
	begins, follows := nodes[0], nodes[1]
	l.run(3 * time.Second)
	l.drop = func(from, _ gossip.NodeID, message any) bool {
		_, answer := message.(protocol.HeartbeatReply)
		return answer && from == begins.id
	}
	l.run(l.cfg.Fence / 2)
	require.True(t, follows.hosts())
	l.run(l.cfg.Fence/2 + 100*time.Millisecond)
	require.False(t, follows.hosts())
	l.run(6 * time.Second)
	require.False(t, follows.machine.State().ReachableFrom(follows.id, begins.id))
}

// Who begins may end without a word, or be cut off: the other one asks by itself with its
// next rounds, and is as soon to find out as if it had asked all the time.
func TestWhoFollowsAsksByItselfWhenNobodyBegins(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(3)
	l.run(20 * time.Second)
	clear(l.sent)
	follows, begins := nodes[2], nodes[0]
	asked := 0
	l.drop = func(from, to gossip.NodeID, message any) bool {
		if _, heartbeat := message.(protocol.Heartbeat); heartbeat && from == follows.id && to == begins.id {
			asked++
		}
		return false
	}
	begins.dead = true
	took := l.until(6*time.Second, func() bool { return !follows.machine.State().ReachableFrom(follows.id, begins.id) })
	t.Logf("accused after %v, asked %d times", took, asked)
	require.LessOrEqual(t, took, 5*time.Second+10*time.Millisecond)
	require.GreaterOrEqual(t, asked, 3)
}

// A question or its answer that is lost costs one round: nobody is accused while every
// second one is, and all have standing all the time.
func TestALostQuestionIsAskedAgain(t *testing.T) {
	for _, what := range []struct {
		name string
		is   func(message any, to, begins gossip.NodeID) bool
	}{
		{"question", func(message any, _, _ gossip.NodeID) bool { return questionIn(message) != 0 }},
		{"answer", func(message any, to, begins gossip.NodeID) bool {
			_, answer := message.(protocol.HeartbeatReply)
			return answer && to != begins
		}},
		{"beginning", func(message any, _, _ gossip.NodeID) bool {
			beat, is := message.(protocol.Heartbeat)
			return is && beat.Shared
		}},
	} {
		t.Run(what.name, func(t *testing.T) {
			l := newLoop(t)
			nodes := l.cluster(2)
			l.run(3 * time.Second)
			n := 0
			l.drop = func(_, to gossip.NodeID, message any) bool {
				if what.is(message, to, nodes[0].id) {
					n++
				}
				return what.is(message, to, nodes[0].id) && n%2 == 0
			}
			for range 300 {
				l.run(100 * time.Millisecond)
				require.True(t, nodes[0].hosts() && nodes[1].hosts(), "after %v", l.now)
			}
			require.Positive(t, n)
			require.Empty(t, nodes[0].machine.State().Unreachable())
		})
	}
}

// Questions that never arrive with answers are asked by heartbeats, whatever the other one begins.
func TestWhoIsNotAnsweredAsksByItself(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(2)
	l.run(3 * time.Second)
	l.alter = func(_, _ gossip.NodeID, message any) any {
		if reply, ok := message.(protocol.HeartbeatReply); ok {
			reply.Question = protocol.Question{}
			return reply
		}
		return message
	}
	for range 200 {
		l.run(100 * time.Millisecond)
		require.True(t, nodes[0].hosts() && nodes[1].hosts(), "after %v", l.now)
	}
	require.Empty(t, nodes[0].machine.State().Unreachable())
}

// A node of a version before neither offers to share an exchange nor asks with its answers,
// and is asked by heartbeats, as it asks.
func TestANodeThatSharesNoExchangeIsAsked(t *testing.T) {
	for _, older := range []int{0, 1, 2} {
		l := newLoop(t)
		nodes := l.cluster(3)
		old := nodes[older].id
		l.alter = func(from, to gossip.NodeID, message any) any {
			switch m := message.(type) {
			case protocol.Heartbeat:
				m.Shared = m.Shared && from != old && to != old
				return m
			case protocol.HeartbeatReply:
				require.Falsef(t, m.Question.Sequence != 0 && (from == old || to == old) && l.now > 10*time.Second, "%v asks %v", from, to)
			}
			return message
		}
		l.run(10 * time.Second)
		clear(l.sent)
		l.run(10 * time.Second)
		require.Equal(t, 50, l.sent["Heartbeat"], "two exchanges with the older node, one between the others")
		for _, n := range nodes {
			require.True(t, n.hosts())
		}
	}
}

// A node that sends many heartbeats is asked no more often than others.
func TestManyHeartbeatsBringFewQuestions(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(2)
	questions := 0
	l.drop = func(_, _ gossip.NodeID, message any) bool {
		if questionIn(message) != 0 {
			questions++
		}
		return false
	}
	for range 1000 {
		l.send(nodes[0].id, nodes[1].id, protocol.Heartbeat{Sequence: 1, Shared: true})
		l.run(10 * time.Millisecond)
	}
	require.LessOrEqual(t, questions, 21)
}

// A node takes back an accusation by the answer that brings a question, and its own answer to
// that is by what it knew before.
func TestTheWordGivenToAQuestionIsThatOfBefore(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(3)
	begins, follows := nodes[0], nodes[2]
	cut := func(a, b gossip.Address) bool {
		return a == begins.id.Address && b == follows.id.Address || b == begins.id.Address && a == follows.id.Address
	}
	l.cut = cut
	l.until(6*time.Second, func() bool { return !begins.machine.State().ReachableFrom(begins.id, follows.id) })
	l.cut = nil
	var first *protocol.HeartbeatReply
	l.drop = func(from, to gossip.NodeID, message any) bool {
		if reply, ok := message.(protocol.HeartbeatReply); ok && first == nil && from == begins.id && to == follows.id {
			first = &reply
		}
		return false
	}
	l.until(3*time.Second, func() bool { return begins.machine.State().ReachableFrom(begins.id, follows.id) })
	require.NotNil(t, first)
	require.False(t, first.Known || first.Standing)
}
