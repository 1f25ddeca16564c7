// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// keepLost keeps the side of a view.
func keepLost(view downing.View) downing.Decision {
	d := downing.Decision{Verdict: downing.KeepSide, Reason: "the witness keeps it"}
	for _, m := range view.Side().Lost() {
		d.Down = append(d.Down, m.Node)
	}
	return d
}

// answers lets each node's strategy answer in its own way, after a delay; a node
// without one fails at once.
func answers(l *loop, delay time.Duration, by map[gossip.Address]func(downing.View) any) {
	l.calls = func(n *node, c machine.Call) {
		answer, ok := by[n.id.Address]
		l.after(delay, func() {
			called := machine.Called{ID: c.ID, Err: errors.New("the witness is away")}
			if ok {
				called = machine.Called{ID: c.ID, Result: answer(viewOf(c))}
			}
			n.step(called)
		})
	}
}

// decisions returns the verdicts of a node about who must go.
func (n *node) verdicts() map[string]string {
	all := map[string]string{}
	for _, d := range n.decisions {
		if d.Topic == "downing" && d.Subject != "strategy" {
			all[d.Subject+" "+d.Verdict] = d.Reason
		}
	}
	return all
}

// The leader's strategy cannot answer. The members of its side are asked one after
// the other, and the first decision that keeps the contract is carried out.
func TestAnotherMemberDecidesWhereTheLeaderCannot(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(5, calledStrategy(downing.Class{Pure: true}))
	answers(l, 10*time.Millisecond, map[gossip.Address]func(downing.View) any{
		address(3): func(downing.View) any { return "nonsense" },
		address(4): func(v downing.View) any { return keepLost(v) },
	})
	nodes[4].dead = true
	took := l.untilFenced(20*time.Second, nodes[4].id)
	require.Less(t, took, 17*time.Second)
	said := nodes[0].verdicts()
	require.Contains(t, said[nodes[0].id.String()+" unanswered"], "the witness is away")
	require.Contains(t, said[nodes[1].id.String()+" unanswered"], "the witness is away")
	require.Contains(t, said[nodes[2].id.String()+" unanswered"], "answered with a string")
	require.Contains(t, said[nodes[3].id.String()+" answered"], "the witness keeps it")
	require.Contains(t, said, nodes[4].id.String()+" down")
	require.Equal(t, 3, l.sent["AskDowning"])
	require.Equal(t, 3, l.sent["DowningAnswer"])
	for _, n := range nodes[:4] {
		require.Nil(t, n.stopping)
		require.True(t, n.hosts())
	}
}

// A member that does not answer is given up in time, and a later answer is refused.
// Where a rule with the same promise is at hand it steps in soon.
func TestMembersThatAreAskedHaveLittleTime(t *testing.T) {
	for majorityOnly, limit := range map[bool]time.Duration{true: 25 * time.Second, false: 60 * time.Second} {
		l := newLoop(t)
		nodes := l.cluster(4, calledStrategy(downing.Class{Pure: true, MajorityOnly: majorityOnly}))
		answers(l, 4*time.Second, nil)
		var late []protocol.DowningAnswer
		l.drop = func(_, _ gossip.NodeID, message any) bool {
			answer, ok := message.(protocol.DowningAnswer)
			if ok {
				late = append(late, answer)
			}
			return ok
		}
		nodes[3].dead = true
		l.run(limit)
		require.NotEmpty(t, late)
		if majorityOnly {
			require.True(t, nodes[0].sees(3, gossip.Up), "keep-majority decides")
			require.Equal(t, 1, l.sent["AskDowning"])
		} else {
			require.NotNil(t, nodes[0].stopping, "the side goes after down-own-side-after")
			require.Greater(t, l.sent["AskDowning"], 2)
		}
		before := nodes[1].machine.Refusals(protocol.RefusedUnsolicited)
		nodes[1].dead = false
		nodes[1].step(machine.Received{From: nodes[2].id, Message: late[0]})
		if nodes[1].stopping == nil {
			require.Equal(t, before+1, nodes[1].machine.Refusals(protocol.RefusedUnsolicited))
		}
	}
}

// A member decides only about what it sees itself, for the leader that it sees, by
// a strategy that decides, and one question at a time.
func TestMemberRefusesToDecideAboutWhatItDoesNotSee(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(4, calledStrategy(downing.Class{Pure: true}))
	answers(l, time.Second, map[gossip.Address]func(downing.View) any{
		address(2): func(v downing.View) any { return keepLost(v) },
	})
	var asked protocol.AskDowning
	var said []string
	l.drop = func(from, _ gossip.NodeID, message any) bool {
		if m, ok := message.(protocol.AskDowning); ok && from == nodes[0].id {
			asked = m
		}
		if m, ok := message.(protocol.DowningAnswer); ok {
			said = append(said, m.Error)
			return true
		}
		return false
	}
	ask := func(from gossip.NodeID, change func(*protocol.AskDowning)) {
		question := asked
		change(&question)
		nodes[1].step(machine.Received{From: from, Message: question})
	}
	ask(nodes[0].id, func(*protocol.AskDowning) {})
	require.Contains(t, said[len(said)-1], "another view", "nobody is lost")
	nodes[3].dead = true
	l.until(20*time.Second, func() bool { return asked.Question > 0 })
	l.run(500 * time.Millisecond) // The second member calls its strategy.
	for name, c := range map[string]struct {
		from   gossip.NodeID
		change func(*protocol.AskDowning)
		want   string
	}{
		"another view":     {nodes[0].id, func(q *protocol.AskDowning) { q.Question++; q.View++ }, "another view"},
		"another strategy": {nodes[0].id, func(q *protocol.AskDowning) { q.Question++; q.Strategy++ }, "does not decide here"},
		"not the leader":   {nodes[2].id, func(*protocol.AskDowning) {}, "the leader of the side is " + nodes[0].id.String()},
		"another question": {nodes[0].id, func(q *protocol.AskDowning) { q.Question++ }, machine.ErrBusy.Error()},
	} {
		before := len(said)
		ask(c.from, c.change)
		require.Len(t, said, before+1, name)
		require.Contains(t, said[before], c.want, name)
	}
	before := len(said)
	ask(nodes[0].id, func(*protocol.AskDowning) {})
	require.Len(t, said, before, "a question that is repeated is answered once")
	stranger := gossip.NodeID{Address: address(9), UID: 9}
	ask(stranger, func(*protocol.AskDowning) {})
	require.Equal(t, uint64(1), nodes[1].machine.Refusals(protocol.RefusedNotMember))
	require.Len(t, said, before)
	l.run(time.Second)
	require.Empty(t, said[before], "it decided")
}

// While another member decides, the view changes: the decision is not carried out.
func TestDecisionOfAnotherMemberAboutAnOldViewIsDropped(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(5, calledStrategy(downing.Class{Pure: true}))
	answers(l, 2*time.Second, map[gossip.Address]func(downing.View) any{
		address(2): func(v downing.View) any { return keepLost(v) },
	})
	nodes[4].dead = true
	l.until(20*time.Second, func() bool { return l.sent["AskDowning"] == 1 })
	l.drop = func(from, _ gossip.NodeID, _ any) bool { // The fourth node falls silent.
		return from == nodes[3].id
	}
	nodes[2].step(protocol.Down{Address: address(4)})
	l.run(2500 * time.Millisecond)
	require.Equal(t, 1, l.sent["DowningAnswer"])
	require.Equal(t, gossip.Up, nodes[0].machine.State().Member(nodes[4].id).Status)
	l.until(20*time.Second, func() bool { return nodes[0].sees(3, gossip.Up) })
}

// A witness that only the smaller side reaches keeps it. On the larger side no
// member's strategy answers, and nothing may decide in its place: it goes. covers I4.
func TestNothingDecidesInPlaceOfAStrategyThatKeepsMinorities(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(5, calledStrategy(downing.Class{Pure: true}))
	answers(l, 10*time.Millisecond, map[gossip.Address]func(downing.View) any{
		address(2): func(v downing.View) any { return keepLost(v) }, // The first node asks it.
	})
	l.cut = splitAtThree()
	checkTakeOver(l, nodes)
	l.run(60 * time.Second)
	for i, n := range nodes {
		require.Equal(t, i < 2, n.stopping == nil, "%v", n.id)
	}
	require.Positive(t, l.sent["AskDowning"])
}
