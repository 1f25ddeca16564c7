// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package recall_test

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
	"github.com/quorate/quorate/sharding/internal/recall"
)

// What is taken over from the sets of a former number of shards, rule by rule: a desk that serves the only shard of a
// kind, which had two shards before.

// taking returns a desk that has read its set, which is empty, and the index, which tells of two shards before.
func taking(t *testing.T, cfg recall.Config) (*recall.Desk, *recall.Outbox) {
	t.Helper()
	d, out := recall.New(cfg, protocol.Layout{Shards: 1}), &recall.Outbox{}
	d.Step(1, recall.Serve{}, out)
	d.Step(1, recall.Opened{Set: own, Session: 1}, out)
	out.Reset()
	d.Step(1, recall.Opened{Session: 2, IDs: []string{"1", "2"}}, out)
	return d, out
}

// answer opens the sets that are to be opened, one after the other, with ids.
func answer(d *recall.Desk, now machine.Instant, out *recall.Outbox, ids map[recall.Set][]string) {
	for len(out.Open) > 0 {
		o := out.Open[0]
		out.Open = out.Open[1:]
		d.Step(now, recall.Opened{Set: o.Set, Session: o.Session, IDs: ids[o.Set]}, out)
	}
}

// asks lets time pass until the desk asks, and returns the question.
func asks(t *testing.T, d *recall.Desk, now *machine.Instant, out *recall.Outbox) protocol.Take {
	t.Helper()
	for out.Ask = nil; len(out.Ask) == 0; {
		*now = max(*now+1, d.Wake(*now))
		d.Step(*now, recall.Tick{}, out)
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
	d, out := taking(t, cfg)
	now, id := machine.Instant(1), formerly(1, 0)
	answer(d, now, out, map[recall.Set][]string{{Number: 1, Of: 2}: {id}})
	q := asks(t, d, &now, out)
	require.Equal(t, []protocol.ShardID{0}, q.Shards)
	d.Step(now, protocol.Asked{Take: q}, out)
	require.Equal(t, protocol.Given{Number: q.Number, IDs: []string{id}}, out.Give[0].Given)
	give := out.Give[0].Given
	out.Reset()
	d.Step(now, give, out)
	require.Equal(t, []recall.Named{{IDs: []string{id}}}, out.Start)
	require.Equal(t, []recall.Change{{Set: own, Session: 1, Remember: []string{id}}}, out.Change)
	require.Empty(t, asks(t, d, &now, out).Gone, "it is not written yet")
	out.Reset()
	d.Step(now, recall.Changed{Set: own, Session: 1}, out)
	q = asks(t, d, &now, out)
	require.Equal(t, []string{id}, q.Gone)
	d.Step(now, protocol.Asked{Take: q}, out)
	require.Equal(t, []string{id}, out.Change[0].Forget)
	require.Equal(t, recall.Set{Number: 1, Of: 2}, out.Change[0].Set)
	change := out.Change[0]
	out.Reset()
	d.Step(now, recall.Changed{Set: change.Set, Session: change.Session}, out)
	require.Equal(t, []recall.Change{{Session: 2, Forget: []string{"2"}}}, out.Change)
	d.Step(now, recall.Changed{Session: 2}, out)
	q = asks(t, d, &now, out)
	out.Reset()
	d.Step(now, protocol.Asked{Take: q}, out)
	require.True(t, out.Give[0].Given.Over)
	d.Step(now, out.Give[0].Given, out)
	require.Equal(t, []uint16{0}, out.Over)
	require.Equal(t, machine.Never, d.Wake(now))
	require.EqualValues(t, 1, d.Stats().Taken)
}

// Until the first answer nothing may be written, and the one who is asked may not serve the first shard yet: the
// question is repeated soon. Later one that is lost costs nothing, and waits for its whole time.
func TestTheFirstQuestionIsRepeatedSoon(t *testing.T) {
	d, out := taking(t, config())
	now := machine.Instant(1) // It has asked.
	var after []time.Duration
	q := asks(t, d, &now, out)
	for first := q; q.Number == first.Number; q = asks(t, d, &now, out) {
		after = append(after, now.Sub(1)/time.Millisecond)
	}
	require.Equal(t, []time.Duration{20, 60, 140, 300, 620, 1260}, after)
	require.Equal(t, machine.Instant(1).Add(2*time.Second), now, "another question")
	d.Step(now, protocol.Given{Number: q.Number}, out)
	second := asks(t, d, &now, out)
	began := now
	require.Greater(t, asks(t, d, &now, out).Number, second.Number)
	require.Equal(t, began.Add(2*time.Second), now, "it is not repeated")
}

// An answer to an earlier question means nothing: since then the entity may have been forgotten.
func TestOnlyTheLastQuestionIsAnswered(t *testing.T) {
	d, out := taking(t, config())
	now, id := machine.Instant(1), formerly(0, 0)
	first := asks(t, d, &now, out)
	second := asks(t, d, &now, out)
	for second.Number == first.Number { // It is repeated.
		second = asks(t, d, &now, out)
	}
	out.Reset()
	d.Step(now, protocol.Given{Number: first.Number, IDs: []string{id}}, out)
	require.Empty(t, out.Start)
	d.Step(now, protocol.Given{Layout: 1, Number: second.Number, IDs: []string{id}}, out)
	require.Empty(t, out.Start, "of another layout")
	d.Step(now, protocol.Given{Number: second.Number, IDs: []string{id}}, out)
	require.Len(t, out.Start, 1)
}

// A shard that stops takes nothing over: its next home does.
func TestAShardThatStopsTakesNothingOver(t *testing.T) {
	d, out := taking(t, config())
	now := machine.Instant(1)
	q := asks(t, d, &now, out)
	d.Step(now, recall.Settle{}, out)
	out.Reset()
	d.Step(now, protocol.Given{Number: q.Number, IDs: []string{formerly(0, 0)}}, out)
	require.Empty(t, out.Start)
	require.Empty(t, out.Change)
	require.Empty(t, asks(t, d, &now, out).Shards)
}

// Of a layout that is in force only the sets of shards that are retired are taken over: the others are served.
func TestOnlyRetiredShardsAreTakenOver(t *testing.T) {
	cfg := config()
	cfg.Calls = 8
	before, present := protocol.Layout{Shards: 2}, protocol.Layout{Number: 1, Shards: 1}
	d, out := recall.New(cfg, before), &recall.Outbox{}
	d.Step(1, recall.Layouts{InForce: []protocol.Layout{before, present}}, out)
	d.Step(1, recall.Serve{Shard: present.Shard(0)}, out)
	answer(d, 1, out, map[recall.Set][]string{{}: {"2"}})
	require.Empty(t, out.Open, "none is retired")
	require.Equal(t, []string{"1"}, out.Change[0].Remember)
	out.Reset()
	d.Step(2, recall.Retired{Shard: before.Shard(1)}, out)
	require.Len(t, out.Open, 1)
	require.Equal(t, recall.Set{Number: 1, Of: 2}, out.Open[0].Set)
	answer(d, 2, out, nil)
	d.Step(3, recall.Layouts{InForce: []protocol.Layout{present}}, out)
	require.Len(t, out.Open, 1, "the layout is not in force any more")
	require.Equal(t, recall.Set{Number: 0, Of: 2}, out.Open[0].Set)
}

// What was given and is still there after a while is given again: the answer may have been lost, or the shard have
// moved.
func TestWhatWasGivenIsGivenAgain(t *testing.T) {
	d, out := taking(t, config())
	now, id := machine.Instant(1), formerly(1, 0)
	answer(d, now, out, map[recall.Set][]string{{Number: 1, Of: 2}: {id}})
	given := func() []string {
		q := asks(t, d, &now, out)
		out.Give = nil
		d.Step(now, protocol.Asked{Take: q}, out)
		return out.Give[0].Given.IDs
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
	d, out := taking(t, config())
	now, id := machine.Instant(1), formerly(0, 3)
	q := asks(t, d, &now, out)
	d.Step(now, protocol.Given{Number: q.Number}, out)
	d.Step(now, recall.Forget{ID: id}, out)
	require.Equal(t, 1, d.Status(0).Held)
	require.False(t, d.Quiet(0))
	out.Reset()
	q = asks(t, d, &now, out)
	require.Equal(t, []string{id}, q.Gone)
	at := now
	again := asks(t, d, &now, out)
	require.Equal(t, 2*time.Second, now.Sub(at))
	out.Reset()
	d.Step(now, protocol.Given{Number: again.Number, Gone: []string{id}}, out)
	require.Equal(t, []recall.Change{{Set: own, Session: 1, Forget: []string{id}}}, out.Change)
	require.Zero(t, d.Status(0).Held)
}

// An entity that is given up while a set of a former layout may have it stays if one has, and is forgotten if none has.
func TestWhoIsGivenUpIsLookedForInFormerSets(t *testing.T) {
	cfg := config()
	cfg.First = true
	d, out := taking(t, cfg)
	now, old, fresh := machine.Instant(1), formerly(0, 3), formerly(0, 4)
	q := asks(t, d, &now, out)
	d.Step(now, protocol.Given{Number: q.Number}, out)
	d.Step(now, recall.Remember{ID: old}, out)
	require.Equal(t, []string{old}, out.Change[0].Remember)
	d.Step(now, recall.Remember{ID: fresh}, out)
	d.Step(now, recall.GiveUp{ID: fresh}, out)
	d.Step(now, recall.Changed{Set: own, Session: 1}, out)
	require.Equal(t, []recall.Named{{IDs: []string{old}}}, out.Kept)
	d.Step(now, recall.GiveUp{ID: old}, out)
	require.Equal(t, 2, d.Status(0).Held)
	q = asks(t, d, &now, out)
	require.Empty(t, q.Gone, "the former sets keep what they have, though the present one has it")
	out.Reset()
	d.Step(now, protocol.Given{Number: q.Number, IDs: []string{old}}, out)
	require.Equal(t, []recall.Named{{IDs: []string{old}}}, out.Start)
	require.Equal(t, 1, d.Status(0).Held)
	q = asks(t, d, &now, out)
	out.Reset()
	d.Step(now, protocol.Given{Number: q.Number, Over: true}, out)
	require.Zero(t, d.Status(0).Held)
	for len(out.Change) == 0 {
		now = now.Add(time.Millisecond)
		d.Step(now, recall.Changed{Set: own, Session: 1}, out)
	}
	require.Equal(t, []string{fresh}, out.Change[0].Forget)
	require.NotContains(t, out.Change[0].Forget, old)
}

// The answer goes to who has asked, and not before the index is read.
func TestQuestionsWaitForTheIndex(t *testing.T) {
	d, out := recall.New(config(), protocol.Layout{Shards: 1}), &recall.Outbox{}
	asker := gossip.NodeID{Address: gossip.Address{Host: "a", Port: 1}, UID: 1}
	d.Step(1, recall.Serve{}, out)
	d.Step(1, protocol.Asked{From: asker, Take: protocol.Take{Number: 7}}, out)
	require.Empty(t, out.Give)
	d.Step(2, recall.Opened{Session: 2}, out)
	require.Empty(t, out.Give, "it does not tell of the number of shards")
	d.Step(3, recall.Changed{Session: 2}, out)
	require.Equal(t, []recall.Give{{To: asker, Given: protocol.Given{Number: 7, Over: true}}}, out.Give)
}

// An entity that waits for the store is refused after the limit also where nothing can be written, since nobody says
// that the index tells of the number of shards.
func TestWhoWaitsForTheIndexIsRefused(t *testing.T) {
	cfg := config()
	cfg.First = true
	d, out := recall.New(cfg, protocol.Layout{Shards: 1}), &recall.Outbox{}
	d.Step(1, recall.Serve{}, out)
	d.Step(1, recall.Opened{Set: own, Session: 1}, out)
	now := machine.Instant(1)
	d.Step(now, recall.Remember{ID: "a"}, out)
	for len(out.Unkept) == 0 {
		require.Less(t, now.Sub(1), cfg.Limit+3*time.Second)
		asks(t, d, &now, out)
	}
	require.Equal(t, []string{"a"}, out.Unkept[0].IDs)
	require.Contains(t, out.Unkept[0].Why, "the first shard")
	require.False(t, d.Status(0).Listed)

	d.Step(now, recall.Remember{ID: "b"}, out)
	d.Step(now, recall.Opened{Session: 2, Err: errors.New("down")}, out) // The first shard is here, and its store does not answer.
	for out.Unkept = nil; len(out.Unkept) == 0; {
		require.Less(t, now.Sub(1), 3*cfg.Limit)
		asks(t, d, &now, out)
	}
	require.Equal(t, "the store is asked in vain for the numbers of shards that it has: down", out.Unkept[0].Why)
}

// What is wrong with a former set, or with the index, is said of the first shard.
func TestWhatIsWrongWithWhatIsTakenOver(t *testing.T) {
	d, out := recall.New(config(), protocol.Layout{Shards: 1}), &recall.Outbox{}
	d.Step(1, recall.Serve{}, out)
	d.Step(1, recall.Opened{Session: 2, Err: errors.New("down")}, out)
	require.Equal(t, "the numbers of shards that it has: down", d.Status(0).FormerWhy)
	d.Step(machine.Instant(time.Second), recall.Tick{}, out)
	d.Step(machine.Instant(time.Second), recall.Opened{Session: out.Open[len(out.Open)-1].Session}, out)
	change := out.Change[0]
	out.Reset()
	d.Step(machine.Instant(time.Second), recall.Changed{Session: change.Session, Full: change.Remember}, out)
	require.Equal(t, "the numbers of shards that it has: it has no room", d.Status(0).FormerWhy)
	require.Empty(t, out.Open, "it is asked again after a pause")
	require.Empty(t, out.Change)
	d, out = taking(t, config())
	require.Equal(t, 2, d.Status(0).Former)
	d.Step(1, recall.Opened{Set: out.Open[0].Set, Session: out.Open[0].Session, Err: errors.New("garbage")}, out)
	require.Equal(t, "shard 0 of 2: garbage", d.Status(0).FormerWhy)
}

// A set that was opened out of turn, since something was to be taken out of it, is not opened again when its turn
// comes, also when the index does not have its number of shards any more by then.
func TestASetThatIsOpenedOutOfTurn(t *testing.T) {
	cfg := config()
	cfg.Calls = 3 // Of which one opens sets.
	d, out := recall.New(cfg, protocol.Layout{Shards: 1}), &recall.Outbox{}
	d.Step(1, recall.Serve{}, out)
	d.Step(1, recall.Opened{Set: own, Session: 1}, out)
	out.Reset()
	d.Step(1, recall.Opened{Session: 2, IDs: []string{"1", "2", "3"}}, out)
	slow := out.Open[0]
	require.Equal(t, recall.Set{Of: 2}, slow.Set)
	var gone []string
	for i := range 20 {
		gone = append(gone, formerly(1, i))
	}
	out.Reset()
	d.Step(1, protocol.Asked{Take: protocol.Take{Number: 1, Gone: gone}}, out)
	answer(d, 1, out, nil)
	require.Equal(t, 1, d.Status(0).Former, "the slow one")
	require.Equal(t, []recall.Change{{Session: 2, Forget: []string{"3"}}}, out.Change)
	d.Step(2, recall.Changed{Session: 2}, out)
	d.Step(3, recall.Opened{Set: slow.Set, Session: slow.Session}, out)
	require.Zero(t, d.Status(0).Former)
	require.Empty(t, out.Open)
}

// A set that is not called any more is closed, and so is one whose answer comes when nobody waits for it.
func TestSetsAreClosed(t *testing.T) {
	d, out := opened(t, config())
	out.Reset()
	d.Step(2, recall.End{}, out)
	require.ElementsMatch(t, []recall.Close{{Set: own, Session: 1}, {Session: 2}}, out.Close)
	out.Reset()
	d.Step(3, recall.Opened{Set: own, Session: 1}, out)
	require.Equal(t, []recall.Close{{Set: own, Session: 1}}, out.Close)
}

// The first shard, with which the index ends, stays until the other shards of its node that have something to write
// may. (A node that left soon after its first remembered entity waited for its leave-timeout.)
func TestTheFirstShardStaysWhileOthersHaveToWrite(t *testing.T) {
	d, out := recall.New(config(), protocol.Layout{Shards: 2}), &recall.Outbox{}
	id := ""
	for i := 0; id == "" || protocol.HashOf(id)%2 == 0; i++ {
		id = fmt.Sprint("e", i)
	}
	d.Step(1, recall.Serve{}, out)
	d.Step(1, recall.Serve{Shard: 1}, out)
	d.Step(1, recall.Remember{Shard: 1, ID: id}, out)
	for _, o := range out.Open {
		if !o.Set.IsIndex() {
			d.Step(1, recall.Opened{Set: o.Set, Session: o.Session}, out)
		}
	}
	d.Step(1, recall.Settle{}, out)
	d.Step(1, recall.Settle{Shard: 1}, out)
	require.False(t, d.Quiet(0))
	require.False(t, d.Quiet(1))
	require.Empty(t, out.Settled)
	changed, settled := 0, []protocol.ShardID(nil)
	for now := machine.Instant(2); now < machine.Instant(10*time.Second) && len(settled) < 2; now = now.Add(10 * time.Millisecond) {
		asks, gives, opens, changes := slices.Clone(out.Ask), slices.Clone(out.Give), slices.Clone(out.Open), slices.Clone(out.Change)
		settled = append(settled, out.Settled...)
		out.Reset()
		for _, o := range opens {
			d.Step(now, recall.Opened{Set: o.Set, Session: o.Session}, out)
		}
		for _, c := range changes {
			changed++
			d.Step(now, recall.Changed{Set: c.Set, Session: c.Session}, out)
		}
		for _, a := range asks {
			d.Step(now, protocol.Asked{Take: a}, out)
		}
		for _, g := range gives {
			d.Step(now, g.Given, out)
		}
		d.Step(now, recall.Tick{}, out)
	}
	require.ElementsMatch(t, []protocol.ShardID{0, 1}, settled)
	require.Equal(t, 2, changed, "the index, and the set")
}
