// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package remembering_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/remembering"
)

// What is taken over from the sets of a former number of shards, rule by rule: a machine that serves the only shard of
// a kind, which had two shards before.

// taking returns a machine that has read its set, which is empty, and the index, which tells of two shards before.
func taking(t *testing.T, cfg remembering.Config) (*remembering.Machine, *remembering.Outbox) {
	t.Helper()
	m, out := remembering.New(cfg, protocol.Layout{Shards: 1}), &remembering.Outbox{}
	m.Step(1, remembering.Serve{}, out)
	m.Step(1, remembering.Opened{Set: own, Session: 1}, out)
	out.Reset()
	m.Step(1, remembering.Opened{Session: 2, IDs: []string{"1", "2"}}, out)
	return m, out
}

// answer opens the sets that are to be opened, one after the other, with ids.
func answer(m *remembering.Machine, now machine.Instant, out *remembering.Outbox, ids map[remembering.Set][]string) {
	for len(out.Open) > 0 {
		o := out.Open[0]
		out.Open = out.Open[1:]
		m.Step(now, remembering.Opened{Set: o.Set, Session: o.Session, IDs: ids[o.Set]}, out)
	}
}

// asks lets time pass until the machine asks, and returns the question.
func asks(t *testing.T, m *remembering.Machine, now *machine.Instant, out *remembering.Outbox) protocol.ExportRequest {
	t.Helper()
	for out.Ask = nil; len(out.Ask) == 0; {
		*now = max(*now+1, m.Wake(*now))
		m.Step(*now, remembering.Tick{}, out)
	}
	return out.Ask[0]
}

// before returns an entity of a shard of two.
func formerly(s uint32, i int) string {
	for n := 0; ; n++ {
		if id := fmt.Sprint("f", n); uint32(protocol.HashOf(id)%2) == s {
			if i--; i < 0 {
				return id
			}
		}
	}
}

// An entity of a former set begins, without a message, and is written to its present set before it is taken out of the
// former one. Then the index tells of one number of shards, and nothing is asked any more.
func TestWhatIsTakenOverBegins(t *testing.T) {
	cfg := config()
	cfg.Calls = 4
	m, out := taking(t, cfg)
	now, id := machine.Instant(1), formerly(1, 0)
	answer(m, now, out, map[remembering.Set][]string{{Number: 1, Of: 2}: {id}})
	q := asks(t, m, &now, out)
	require.Equal(t, []protocol.ShardID{0}, q.Shards)
	m.Step(now, protocol.Asked{Request: q}, out)
	require.Equal(t, protocol.ExportReply{Number: q.Number, IDs: []string{id}}, out.Answer[0].Given)
	give := out.Answer[0].Given
	out.Reset()
	m.Step(now, give, out)
	require.Equal(t, []remembering.Entities{{IDs: []string{id}}}, out.Start)
	require.Equal(t, []remembering.Change{{Set: own, Session: 1, Remember: []string{id}}}, out.Change)
	require.Empty(t, asks(t, m, &now, out).Gone, "it is not written yet")
	out.Reset()
	m.Step(now, remembering.Changed{Set: own, Session: 1}, out)
	q = asks(t, m, &now, out)
	require.Equal(t, []string{id}, q.Gone)
	m.Step(now, protocol.Asked{Request: q}, out)
	require.Equal(t, []string{id}, out.Change[0].Forget)
	require.Equal(t, remembering.Set{Number: 1, Of: 2}, out.Change[0].Set)
	change := out.Change[0]
	out.Reset()
	m.Step(now, remembering.Changed{Set: change.Set, Session: change.Session}, out)
	require.Equal(t, []remembering.Change{{Session: 2, Forget: []string{"2"}}}, out.Change)
	m.Step(now, remembering.Changed{Session: 2}, out)
	q = asks(t, m, &now, out)
	out.Reset()
	m.Step(now, protocol.Asked{Request: q}, out)
	require.True(t, out.Answer[0].Given.Over)
	m.Step(now, out.Answer[0].Given, out)
	require.Equal(t, []uint16{0}, out.Over)
	require.Equal(t, machine.Never, m.Wake(now))
	require.EqualValues(t, 1, m.Stats().Taken)
}

// Until the first answer nothing may be written, and the one who is asked may not serve the first shard yet: the
// question is repeated soon. Later one that is lost costs nothing, and waits for its whole time.
func TestTheFirstQuestionIsRepeatedSoon(t *testing.T) {
	m, out := taking(t, config())
	now := machine.Instant(1) // It has asked.
	var after []time.Duration
	q := asks(t, m, &now, out)
	for first := q; q.Number == first.Number; q = asks(t, m, &now, out) {
		after = append(after, now.Sub(1)/time.Millisecond)
	}
	require.Equal(t, []time.Duration{20, 60, 140, 300, 620, 1260}, after)
	require.Equal(t, machine.Instant(1).Add(2*time.Second), now, "another question")
	m.Step(now, protocol.ExportReply{Number: q.Number}, out)
	second := asks(t, m, &now, out)
	began := now
	require.Greater(t, asks(t, m, &now, out).Number, second.Number)
	require.Equal(t, began.Add(2*time.Second), now, "it is not repeated")
}

// An answer to an earlier question means nothing: since then the entity may have been forgotten.
func TestOnlyTheLastQuestionIsAnswered(t *testing.T) {
	m, out := taking(t, config())
	now, id := machine.Instant(1), formerly(0, 0)
	first := asks(t, m, &now, out)
	second := asks(t, m, &now, out)
	for second.Number == first.Number { // It is repeated.
		second = asks(t, m, &now, out)
	}
	out.Reset()
	m.Step(now, protocol.ExportReply{Number: first.Number, IDs: []string{id}}, out)
	require.Empty(t, out.Start)
	m.Step(now, protocol.ExportReply{Layout: 1, Number: second.Number, IDs: []string{id}}, out)
	require.Empty(t, out.Start, "of another layout")
	m.Step(now, protocol.ExportReply{Number: second.Number, IDs: []string{id}}, out)
	require.Len(t, out.Start, 1)
}

// A shard that stops takes nothing over: its next home does.
func TestAShardThatStopsTakesNothingOver(t *testing.T) {
	m, out := taking(t, config())
	now := machine.Instant(1)
	q := asks(t, m, &now, out)
	m.Step(now, remembering.Flush{}, out)
	out.Reset()
	m.Step(now, protocol.ExportReply{Number: q.Number, IDs: []string{formerly(0, 0)}}, out)
	require.Empty(t, out.Start)
	require.Empty(t, out.Change)
	require.Empty(t, asks(t, m, &now, out).Shards)
}

// Of a layout that is in force only the sets of shards that are retired are taken over: the others are served.
func TestOnlyRetiredShardsAreTakenOver(t *testing.T) {
	cfg := config()
	cfg.Calls = 8
	before, present := protocol.Layout{Shards: 2}, protocol.Layout{Number: 1, Shards: 1}
	m, out := remembering.New(cfg, before), &remembering.Outbox{}
	m.Step(1, remembering.Layouts{InForce: []protocol.Layout{before, present}}, out)
	m.Step(1, remembering.Serve{Shard: present.Shard(0)}, out)
	answer(m, 1, out, map[remembering.Set][]string{{}: {"2"}})
	require.Empty(t, out.Open, "none is retired")
	require.Equal(t, []string{"1"}, out.Change[0].Remember)
	out.Reset()
	m.Step(2, remembering.Retired{Shard: before.Shard(1)}, out)
	require.Len(t, out.Open, 1)
	require.Equal(t, remembering.Set{Number: 1, Of: 2}, out.Open[0].Set)
	answer(m, 2, out, nil)
	m.Step(3, remembering.Layouts{InForce: []protocol.Layout{present}}, out)
	require.Len(t, out.Open, 1, "the layout is not in force any more")
	require.Equal(t, remembering.Set{Number: 0, Of: 2}, out.Open[0].Set)
}

// What was given and is still there after a while is given again: the answer may have been lost, or the shard have
// moved.
func TestWhatWasGivenIsGivenAgain(t *testing.T) {
	m, out := taking(t, config())
	now, id := machine.Instant(1), formerly(1, 0)
	answer(m, now, out, map[remembering.Set][]string{{Number: 1, Of: 2}: {id}})
	given := func() []string {
		q := asks(t, m, &now, out)
		out.Answer = nil
		m.Step(now, protocol.Asked{Request: q}, out)
		return out.Answer[0].Given.IDs
	}
	require.Equal(t, []string{id}, given())
	first := now
	require.Empty(t, given())
	for len(given()) == 0 {
		require.Less(t, now.Sub(first), 10*time.Second)
	}
	require.GreaterOrEqual(t, now.Sub(first), 5*time.Second)
}

// What a node has to forget while the taking over cannot go on is written when it is over, and a question is repeated
// until it is answered.
func TestWhatIsHeldIsWrittenInTheEnd(t *testing.T) {
	m, out := taking(t, config())
	now, id := machine.Instant(1), formerly(0, 3)
	q := asks(t, m, &now, out)
	m.Step(now, protocol.ExportReply{Number: q.Number}, out)
	m.Step(now, remembering.Forget{ID: id}, out)
	require.Equal(t, 1, m.Status(0).Held)
	require.False(t, m.Quiet(0))
	out.Reset()
	q = asks(t, m, &now, out)
	require.Equal(t, []string{id}, q.Gone)
	at := now
	again := asks(t, m, &now, out)
	require.Equal(t, 2*time.Second, now.Sub(at))
	out.Reset()
	m.Step(now, protocol.ExportReply{Number: again.Number, Gone: []string{id}}, out)
	require.Equal(t, []remembering.Change{{Set: own, Session: 1, Forget: []string{id}}}, out.Change)
	require.Zero(t, m.Status(0).Held)
}

// An entity that is given up while a set of a former layout may have it stays if one has, and is forgotten if none has.
func TestWhoIsGivenUpIsLookedForInFormerSets(t *testing.T) {
	cfg := config()
	cfg.First = true
	m, out := taking(t, cfg)
	now, old, fresh := machine.Instant(1), formerly(0, 3), formerly(0, 4)
	q := asks(t, m, &now, out)
	m.Step(now, protocol.ExportReply{Number: q.Number}, out)
	m.Step(now, remembering.Remember{ID: old}, out)
	require.Equal(t, []string{old}, out.Change[0].Remember)
	m.Step(now, remembering.Remember{ID: fresh}, out)
	m.Step(now, remembering.GiveUp{ID: fresh}, out)
	m.Step(now, remembering.Changed{Set: own, Session: 1}, out)
	require.Equal(t, []remembering.Entities{{IDs: []string{old}}}, out.Kept)
	m.Step(now, remembering.GiveUp{ID: old}, out)
	require.Equal(t, 2, m.Status(0).Held)
	q = asks(t, m, &now, out)
	require.Empty(t, q.Gone, "the former sets keep what they have, though the present one has it")
	out.Reset()
	m.Step(now, protocol.ExportReply{Number: q.Number, IDs: []string{old}}, out)
	require.Equal(t, []remembering.Entities{{IDs: []string{old}}}, out.Start)
	require.Equal(t, 1, m.Status(0).Held)
	q = asks(t, m, &now, out)
	out.Reset()
	m.Step(now, protocol.ExportReply{Number: q.Number, Over: true}, out)
	require.Zero(t, m.Status(0).Held)
	for len(out.Change) == 0 {
		now = now.Add(time.Millisecond)
		m.Step(now, remembering.Changed{Set: own, Session: 1}, out)
	}
	require.Equal(t, []string{fresh}, out.Change[0].Forget)
	require.NotContains(t, out.Change[0].Forget, old)
}

// The answer goes to who has asked, and not before the index is read.
func TestQuestionsWaitForTheIndex(t *testing.T) {
	m, out := remembering.New(config(), protocol.Layout{Shards: 1}), &remembering.Outbox{}
	asker := gossip.NodeID{Address: gossip.Address{Host: "a", Port: 1}, UID: 1}
	m.Step(1, remembering.Serve{}, out)
	m.Step(1, protocol.Asked{From: asker, Request: protocol.ExportRequest{Number: 7}}, out)
	require.Empty(t, out.Answer)
	m.Step(2, remembering.Opened{Session: 2}, out)
	require.Empty(t, out.Answer, "it does not tell of the number of shards")
	m.Step(3, remembering.Changed{Session: 2}, out)
	require.Equal(t, []remembering.Answer{{To: asker, Given: protocol.ExportReply{Number: 7, Over: true}}}, out.Answer)
}

// An entity that waits for the store is refused after the limit also where nothing can be written, since nobody says
// that the index tells of the number of shards.
func TestWhoWaitsForTheIndexIsRefused(t *testing.T) {
	cfg := config()
	cfg.First = true
	m, out := remembering.New(cfg, protocol.Layout{Shards: 1}), &remembering.Outbox{}
	m.Step(1, remembering.Serve{}, out)
	m.Step(1, remembering.Opened{Set: own, Session: 1}, out)
	now := machine.Instant(1)
	m.Step(now, remembering.Remember{ID: "a"}, out)
	for len(out.Unkept) == 0 {
		require.Less(t, now.Sub(1), cfg.Timeout+3*time.Second)
		asks(t, m, &now, out)
	}
	require.Equal(t, []string{"a"}, out.Unkept[0].IDs)
	require.Contains(t, out.Unkept[0].Why, "the first shard")
	require.False(t, m.Status(0).Listed)

	m.Step(now, remembering.Remember{ID: "b"}, out)
	m.Step(now, remembering.Opened{Session: 2, Err: errors.New("down")}, out) // The first shard is here, and its store does not answer.
	for out.Unkept = nil; len(out.Unkept) == 0; {
		require.Less(t, now.Sub(1), 3*cfg.Timeout)
		asks(t, m, &now, out)
	}
	require.Equal(t, "the store is asked in vain for the numbers of shards that it has: down", out.Unkept[0].Why)
}

// What is wrong with a former set, or with the index, is said of the first shard.
func TestWhatIsWrongWithWhatIsTakenOver(t *testing.T) {
	m, out := remembering.New(config(), protocol.Layout{Shards: 1}), &remembering.Outbox{}
	m.Step(1, remembering.Serve{}, out)
	m.Step(1, remembering.Opened{Session: 2, Err: errors.New("down")}, out)
	require.Equal(t, "the numbers of shards that it has: down", m.Status(0).FormerWhy)
	m.Step(machine.Instant(time.Second), remembering.Tick{}, out)
	m.Step(machine.Instant(time.Second), remembering.Opened{Session: out.Open[len(out.Open)-1].Session}, out)
	change := out.Change[0]
	out.Reset()
	m.Step(machine.Instant(time.Second), remembering.Changed{Session: change.Session, Full: change.Remember}, out)
	require.Equal(t, "the numbers of shards that it has: it has no room", m.Status(0).FormerWhy)
	require.Empty(t, out.Open, "it is asked again after a pause")
	require.Empty(t, out.Change)
	m, out = taking(t, config())
	require.Equal(t, 2, m.Status(0).Former)
	m.Step(1, remembering.Opened{Set: out.Open[0].Set, Session: out.Open[0].Session, Err: errors.New("garbage")}, out)
	require.Equal(t, "shard 0 of 2: garbage", m.Status(0).FormerWhy)
}

// A set that was opened out of turn, since something was to be taken out of it, is not opened again when its turn
// comes, also when the index does not have its number of shards any more by then.
func TestASetThatIsOpenedOutOfTurn(t *testing.T) {
	cfg := config()
	cfg.Calls = 3 // Of which one opens sets.
	m, out := remembering.New(cfg, protocol.Layout{Shards: 1}), &remembering.Outbox{}
	m.Step(1, remembering.Serve{}, out)
	m.Step(1, remembering.Opened{Set: own, Session: 1}, out)
	out.Reset()
	m.Step(1, remembering.Opened{Session: 2, IDs: []string{"1", "2", "3"}}, out)
	slow := out.Open[0]
	require.Equal(t, remembering.Set{Of: 2}, slow.Set)
	var gone []string
	for i := range 20 {
		gone = append(gone, formerly(1, i))
	}
	out.Reset()
	m.Step(1, protocol.Asked{Request: protocol.ExportRequest{Number: 1, Gone: gone}}, out)
	answer(m, 1, out, nil)
	require.Equal(t, 1, m.Status(0).Former, "the slow one")
	require.Equal(t, []remembering.Change{{Session: 2, Forget: []string{"3"}}}, out.Change)
	m.Step(2, remembering.Changed{Session: 2}, out)
	m.Step(3, remembering.Opened{Set: slow.Set, Session: slow.Session}, out)
	require.Zero(t, m.Status(0).Former)
	require.Empty(t, out.Open)
}

// A set that is not called any more is closed, and so is one whose answer comes when nobody waits for it.
func TestSetsAreClosed(t *testing.T) {
	m, out := opened(t, config())
	out.Reset()
	m.Step(2, remembering.End{}, out)
	require.ElementsMatch(t, []remembering.Close{{Set: own, Session: 1}, {Session: 2}}, out.Close)
	out.Reset()
	m.Step(3, remembering.Opened{Set: own, Session: 1}, out)
	require.Equal(t, []remembering.Close{{Set: own, Session: 1}}, out.Close)
}

// The first shard, with which the index ends, stays until the other shards of its node that have something to write
// may. (A node that left soon after its first remembered entity waited for its leave-timeout.)
func TestTheFirstShardStaysWhileOthersHaveToWrite(t *testing.T) {
	m, out := remembering.New(config(), protocol.Layout{Shards: 2}), &remembering.Outbox{}
	id := ""
	for i := 0; id == "" || protocol.HashOf(id)%2 == 0; i++ {
		id = fmt.Sprint("e", i)
	}
	m.Step(1, remembering.Serve{}, out)
	m.Step(1, remembering.Serve{Shard: 1}, out)
	m.Step(1, remembering.Remember{Shard: 1, ID: id}, out)
	for _, o := range out.Open {
		if !o.Set.IsIndex() {
			m.Step(1, remembering.Opened{Set: o.Set, Session: o.Session}, out)
		}
	}
	m.Step(1, remembering.Flush{}, out)
	m.Step(1, remembering.Flush{Shard: 1}, out)
	require.False(t, m.Quiet(0))
	require.False(t, m.Quiet(1))
	require.Empty(t, out.Flushed)
	changed, settled := 0, []protocol.ShardID(nil)
	for now := machine.Instant(2); now < machine.Instant(10*time.Second) && len(settled) < 2; now = now.Add(10 * time.Millisecond) {
		asks, gives, opens, changes := slices.Clone(out.Ask), slices.Clone(out.Answer), slices.Clone(out.Open), slices.Clone(out.Change)
		settled = append(settled, out.Flushed...)
		out.Reset()
		for _, o := range opens {
			m.Step(now, remembering.Opened{Set: o.Set, Session: o.Session}, out)
		}
		for _, c := range changes {
			changed++
			m.Step(now, remembering.Changed{Set: c.Set, Session: c.Session}, out)
		}
		for _, a := range asks {
			m.Step(now, protocol.Asked{Request: a}, out)
		}
		for _, g := range gives {
			m.Step(now, g.Given, out)
		}
		m.Step(now, remembering.Tick{}, out)
	}
	require.ElementsMatch(t, []protocol.ShardID{0, 1}, settled)
	require.Equal(t, 2, changed, "the index, and the set")
}
