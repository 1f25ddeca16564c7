// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package survey_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/survey"
)

// The machine of one node: whom it asks, what it makes of answers and of silence, and what it serves.

func member(i int) gossip.NodeID {
	return gossip.NodeID{Address: gossip.Address{Host: fmt.Sprintf("n%d", i), Port: 1}, UID: gossip.UID(i)}
}

// bench steps the machine of the first node.
type bench struct {
	*survey.Machine
	t     *testing.T
	now   time.Duration
	state *gossip.State
}

// newBench returns the machine of a node that knows members: those up to n answer questions, and one more runs
// an earlier version.
func newBench(t *testing.T, n int) *bench {
	b := &bench{Machine: survey.New(member(1)), t: t, state: gossip.New(gossip.ClusterID{Born: 7, Nonce: 1})}
	b.edit(func(e *gossip.Edit) {
		for i := 1; i <= n+1; i++ {
			services := []uint16{uint16(component.ServiceSharding), uint16(survey.Service)}
			if i > n {
				services = services[:1]
			}
			require.True(t, e.Join(gossip.Member{Node: member(i), Services: services}))
			require.True(t, e.SetStatus(member(i), gossip.Up, e.LastUpNumber()+1))
		}
	})
	return b
}

func (b *bench) edit(do func(*gossip.Edit)) {
	b.state = b.state.Edit(member(1), do)
	b.step(component.Changed{State: b.state, Self: member(1)})
}

// step feeds an input and returns the effects.
func (b *bench) step(in machine.Input) []machine.Effect {
	var out machine.Outbox
	b.Step(machine.Now{Mono: machine.Instant(b.now), Wall: time.Unix(0, int64(b.now))}, in, &out)
	return out.Effects()
}

// finished returns what was published among effects.
func finished(effects []machine.Effect) (all []survey.Finished) {
	for _, e := range effects {
		if p, ok := e.(machine.Publish); ok {
			if f, ok := p.Event.(survey.Finished); ok {
				all = append(all, f)
			}
		}
	}
	return all
}

// sent returns the questions that were sent, and that for this node.
func sent(effects []machine.Effect) map[gossip.NodeID]survey.Question {
	all := map[gossip.NodeID]survey.Question{}
	for _, e := range effects {
		switch e := e.(type) {
		case machine.Send:
			all[e.To] = e.Message.(survey.Question)
		case survey.Inspection:
			all[e.From] = e.Question
		}
	}
	return all
}

func question() survey.Question { return survey.Question{Type: survey.TypeShards, Kind: "k"} }

// Everybody is asked that can be, and answers are put together; a second answer, one of who was not
// asked, and one to another question do not count.
func TestAnswersAreCollected(t *testing.T) {
	b := newBench(t, 3)
	effects := b.step(survey.Ask{ID: 5, Limit: time.Second, Question: question()})
	asked := sent(effects)
	require.Len(t, asked, 3)
	require.Empty(t, finished(effects))
	require.Empty(t, finished(b.step(machine.Received{From: member(9), Message: survey.Answer{ID: asked[member(2)].ID}})))
	require.Empty(t, finished(b.step(machine.Received{From: member(2), Message: survey.Answer{ID: 99}})))
	require.Empty(t, finished(b.step(machine.Received{From: member(2), Message: survey.Answer{ID: asked[member(2)].ID, Drained: true}})))
	require.Empty(t, finished(b.step(machine.Received{From: member(2), Message: survey.Answer{ID: asked[member(2)].ID}})))
	require.Empty(t, finished(b.step(survey.InspectionResult{To: member(1), Answer: survey.Answer{ID: asked[member(1)].ID}})))
	all := finished(b.step(machine.Received{From: member(3), Message: survey.Answer{ID: asked[member(3)].ID, Fault: survey.FaultOther, Detail: "is broken"}}))
	require.Len(t, all, 1)
	require.EqualValues(t, 5, all[0].ID)
	require.Equal(t, []survey.NodeAnswer{
		{Node: member(1), Answer: survey.Answer{ID: asked[member(1)].ID}}, {Node: member(2), Answer: survey.Answer{ID: asked[member(2)].ID, Drained: true}},
	}, all[0].Answers)
	require.Equal(t, []survey.Missing{
		{Node: member(3), Why: "is broken"}, {Node: member(4), Why: "runs a version that cannot be asked", Unasked: true},
	}, all[0].Missing)
}

// Silence has an end, with the reason for which nothing was heard.
func TestSilenceHasAnEnd(t *testing.T) {
	b := newBench(t, 4)
	effects := b.step(survey.Ask{ID: 5, Limit: time.Second, Question: question()})
	var limit machine.Arm
	for _, e := range effects {
		if a, ok := e.(machine.Arm); ok {
			limit = a
		}
	}
	require.EqualValues(t, time.Second, limit.At)
	asked := sent(effects)
	b.edit(func(e *gossip.Edit) {
		require.True(t, e.SetStatus(member(2), gossip.Down, 0))
		require.True(t, e.Remove(member(2), time.Unix(1, 0)))
	})
	b.step(survey.InspectionResult{To: member(1), Answer: survey.Answer{ID: asked[member(1)].ID}})
	b.step(machine.Received{From: member(3), Message: survey.Answer{ID: asked[member(3)].ID, Fault: survey.FaultBusy}})
	b.now = time.Second
	all := finished(b.step(machine.Fired{Timer: limit.Timer}))
	require.Len(t, all, 1)
	require.Len(t, all[0].Answers, 1)
	require.Equal(t, []survey.Missing{
		{Node: member(2), Why: "has left the cluster, or was removed"},
		{Node: member(3), Why: "serves too many questions at one time", Unasked: true},
		{Node: member(4), Why: "did not answer within 1s"},
		{Node: member(5), Why: "runs a version that cannot be asked", Unasked: true},
	}, all[0].Missing)
	require.Empty(t, finished(b.step(machine.Fired{Timer: limit.Timer})))
}

// A node asks a few questions at a time, and ends those that it has when it stops.
func TestTooManyQuestions(t *testing.T) {
	b := newBench(t, 2)
	for id := range uint64(16) {
		require.Empty(t, finished(b.step(survey.Ask{ID: id, Limit: time.Second, Question: question()})))
	}
	all := finished(b.step(survey.Ask{ID: 16, Limit: time.Second, Question: question()}))
	require.Len(t, all, 1)
	require.Len(t, all[0].Missing, 3)
	require.Equal(t, "this node asks too many questions at one time", all[0].Missing[0].Why)
	require.Len(t, finished(b.step(component.Stopping{})), 16)
}

// A question of another is served once, however often it comes, and a few at a time.
func TestWhatIsServed(t *testing.T) {
	b := newBench(t, 2)
	q := question()
	for id := range uint64(16) {
		q.ID = id
		require.Equal(t, []machine.Effect{survey.Inspection{From: member(2), Question: q}}, b.step(machine.Received{From: member(2), Message: q}))
		require.Empty(t, b.step(machine.Received{From: member(2), Message: q}))
	}
	q.ID = 16
	require.Equal(t, []machine.Effect{machine.Send{
		To: member(2), Lane: machine.LaneControl, Message: survey.Answer{ID: 16, Fault: survey.FaultBusy},
	}}, b.step(machine.Received{From: member(2), Message: q}))
	require.Equal(t, []machine.Effect{machine.Send{
		To: member(2), Lane: machine.LaneControl, Message: survey.Answer{ID: 3},
	}}, b.step(survey.InspectionResult{To: member(2), Answer: survey.Answer{ID: 3}}))
	q.ID = 17
	require.Len(t, sent(b.step(machine.Received{From: member(2), Message: q})), 1)
}

// The largest question and the largest answers are steps with an effect or none: who answers is looked for elsewhere,
// and not on the loop that answers heartbeats.
func TestTheLargestQuestionIsOneEffect(t *testing.T) {
	self, other := gossip.NodeID{Address: gossip.Address{Host: "a", Port: 1}, UID: 1}, gossip.NodeID{Address: gossip.Address{Host: "b", Port: 1}, UID: 2}
	state := gossip.New(gossip.ClusterID{Born: 1, Nonce: 1}).Edit(self, func(e *gossip.Edit) {
		for _, node := range []gossip.NodeID{self, other} {
			require.True(t, e.Join(gossip.Member{Node: node, Services: []uint16{uint16(survey.Service), uint16(protocol.Service)}}))
		}
	})
	m := survey.New(self)
	step := func(in machine.Input) int {
		var out machine.Outbox
		m.Step(machine.Now{Mono: 1}, in, &out)
		return len(out.Effects())
	}
	step(machine.Started{})
	step(component.Changed{State: state, Self: self})
	places := make([]survey.Place, 2*protocol.MaxShards)
	for i := range places {
		places[i] = survey.Place{Shard: protocol.ShardID(i), Epoch: protocol.Epoch{Born: 1, N: 1}}
	}
	for id := range uint64(100) {
		question := survey.Question{ID: id + 1, Type: survey.TypeTell, Kind: "k", Limit: time.Second, Payload: make([]byte, 1<<20), Shards: places}
		require.LessOrEqual(t, step(machine.Received{From: other, Message: question}), 2)
		require.LessOrEqual(t, step(machine.Received{From: other, Message: survey.Answer{ID: id + 1, Shards: make([]survey.Shard, 2*protocol.MaxShards)}}), 2)
	}
}
