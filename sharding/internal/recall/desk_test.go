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
	"pgregory.net/rapid"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/recall"
)

// The laws of a desk, over any order of inputs and answers; then the rules one by one.

func fault(_ protocol.ShardID, id string) string {
	if id == "" || id[0] == '!' {
		return "not of the shard"
	}
	return ""
}

func config() recall.Config {
	return recall.Config{
		Rate: 100, Calls: 2, Batch: 3, Limit: 5 * time.Second, RetryMin: 100 * time.Millisecond, RetryMax: 2 * time.Second, Fault: fault,
	}
}

// call is a call of the store that is under way.
type call struct {
	open   *recall.Open
	change *recall.Change
}

func (c call) shard() protocol.ShardID {
	if c.open != nil {
		return c.open.Shard
	}
	return c.change.Shard
}

// bench is a desk with its store, and with what was asked for.
type bench struct {
	t      *rapid.T
	desk   *recall.Desk
	cfg    recall.Config
	now    machine.Instant
	calls  []call
	served map[protocol.ShardID]bool
	sets   map[protocol.ShardID]map[string]bool
	asked  map[protocol.ShardID]map[string]bool // What was asked for last in this hosting.
	starts []machine.Instant
	tried  map[string]bool // Shard and id that were started since the shard was last served.
}

func (b *bench) step(in any) {
	var out recall.Outbox
	b.desk.Step(b.now, in, &out)
	for _, o := range out.Open {
		b.calls = append(b.calls, call{open: &o})
	}
	for _, c := range out.Change {
		require.LessOrEqual(b.t, len(c.Remember)+len(c.Forget), b.cfg.Batch)
		require.NotEmpty(b.t, len(c.Remember)+len(c.Forget))
		b.calls = append(b.calls, call{change: &c})
	}
	require.LessOrEqual(b.t, len(b.calls), b.cfg.Calls, "K1")
	for i, c := range b.calls {
		for _, o := range b.calls[:i] {
			// One of a hosting that has ended may still be under way.
			if c.shard() == o.shard() && c.open != nil && o.open != nil {
				require.NotEqual(b.t, c.open.Session, o.open.Session)
			}
		}
	}
	for _, n := range out.Start {
		for _, id := range n.IDs {
			require.Empty(b.t, fault(n.Shard, id), "K5")
			require.True(b.t, b.served[n.Shard])
			if last, there := b.asked[n.Shard][id]; there {
				require.True(b.t, last, "%s is started, and was forgotten", id)
			}
			b.tried[fmt.Sprint(n.Shard, id)] = true
			b.starts = append(b.starts, b.now)
		}
	}
	for _, n := range out.Kept {
		for _, id := range n.IDs {
			require.True(b.t, b.sets[n.Shard][id], "K3")
			require.True(b.t, b.asked[n.Shard][id], "K3")
		}
	}
	for _, n := range out.Unkept {
		for _, id := range n.IDs {
			require.NotEmpty(b.t, n.Why)
			if !b.tried[fmt.Sprint(n.Shard, id)] {
				b.asked[n.Shard][id] = false
				b.step(recall.Forget{Shard: n.Shard, ID: id})
			}
		}
	}
	for _, shard := range out.Settled {
		require.True(b.t, b.desk.Quiet(shard))
		b.written(shard)
	}
}

// written expects that the store has what was asked for.
func (b *bench) written(shard protocol.ShardID) {
	for id, is := range b.asked[shard] {
		require.Equal(b.t, is, b.sets[shard][id], "K2: %d %s", shard, id)
	}
}

// answer answers a call: with its effect or without, and says so or that it has failed.
func (b *bench) answer(i int, effect, heard bool) {
	c := b.calls[i]
	b.calls = slices.Delete(b.calls, i, i+1)
	var err error
	if !effect || !heard {
		err = errors.New("lost")
	}
	if c.open != nil {
		var ids []string
		for id := range b.sets[c.open.Shard] {
			ids = append(ids, id)
		}
		slices.Sort(ids)
		if err != nil {
			ids = nil
		}
		b.step(recall.Opened{Shard: c.open.Shard, Session: c.open.Session, IDs: ids, Err: err})
		return
	}
	if effect {
		for _, id := range c.change.Remember {
			b.sets[c.change.Shard][id] = true
		}
		for _, id := range c.change.Forget {
			delete(b.sets[c.change.Shard], id)
		}
	}
	b.step(recall.Changed{Shard: c.change.Shard, Session: c.change.Session, Err: err})
}

// pass lets time pass as the desk asks for it.
func (b *bench) pass(d time.Duration) {
	for end := b.now.Add(d); b.now < end; {
		b.now = min(end, max(b.now+1, b.desk.Wake(b.now)))
		b.step(recall.Tick{})
	}
}

// settle answers all calls until nothing is left to do.
func (b *bench) settle() {
	for range 10_000 {
		switch {
		case len(b.calls) > 0:
			b.answer(0, true, true)
		case b.desk.Wake(b.now) == machine.Never:
			return
		default:
			b.pass(b.desk.Wake(b.now).Sub(b.now))
		}
	}
	require.Fail(b.t, "K6: there is always something to do")
}

// After any life, when the store answers, it has what was asked for last of each id, every entity that it had when its
// shard came is started unless it was forgotten, and the rate is kept.
func TestLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := &bench{
			t: t, cfg: config(), now: 1, served: map[protocol.ShardID]bool{}, sets: map[protocol.ShardID]map[string]bool{},
			asked: map[protocol.ShardID]map[string]bool{}, tried: map[string]bool{},
		}
		b.cfg.First = rapid.Bool().Draw(t, "first")
		for s := range protocol.ShardID(3) {
			b.sets[s], b.asked[s] = map[string]bool{"!foreign": true}, map[string]bool{}
			for i := range rapid.IntRange(0, 12).Draw(t, "had") {
				b.sets[s][fmt.Sprint("e", i)] = true
			}
		}
		b.desk = recall.New(b.cfg)
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			shard := protocol.ShardID(rapid.IntRange(0, 2).Draw(t, "shard"))
			id := fmt.Sprint("e", rapid.IntRange(0, 15).Draw(t, "id"))
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0, 1:
				if b.served[shard] = true; len(b.under(shard)) == 0 {
					b.step(recall.Serve{Shard: shard, Epoch: protocol.Epoch{N: 1}})
				}
			case 2, 3:
				if b.served[shard] {
					b.asked[shard][id] = true
				}
				b.step(recall.Remember{Shard: shard, ID: id})
			case 4:
				if b.served[shard] {
					b.asked[shard][id] = false
				}
				b.step(recall.Forget{Shard: shard, ID: id})
			case 5:
				if rapid.IntRange(0, 5).Draw(t, "ends") == 0 && len(b.under(shard)) == 0 {
					b.served[shard], b.asked[shard] = false, map[string]bool{}
					b.step(recall.End{Shard: shard})
				} else {
					b.step(recall.Settle{Shard: shard})
				}
			case 6:
				b.pass(time.Duration(rapid.IntRange(1, 3000).Draw(t, "ms")) * time.Millisecond)
			default:
				if len(b.calls) > 0 {
					b.answer(rapid.IntRange(0, len(b.calls)-1).Draw(t, "call"), rapid.Bool().Draw(t, "effect"), rapid.Bool().Draw(t, "heard"))
				}
			}
		}
		b.settle()
		for s := range protocol.ShardID(3) {
			if !b.served[s] {
				continue
			}
			b.written(s)
			b.tried = map[string]bool{}
			b.step(recall.Serve{Shard: s, Epoch: protocol.Epoch{N: 2}})
			b.settle()
			for id := range b.sets[s] {
				require.Equal(t, fault(s, id) == "", b.tried[fmt.Sprint(s, id)], "%d %s", s, id)
			}
		}
		for i, at := range b.starts { // K4: in any second the rate, and what may be made up for.
			if j := i - b.cfg.Rate - b.cfg.Rate/20 - 1; j >= 0 {
				require.Greater(t, at.Sub(b.starts[j]), time.Second-time.Millisecond)
			}
		}
		all := b.desk.Stats()
		require.Zero(t, all.Starting+all.Writing+all.Faulty+all.Unread)
	})
}

// under returns the calls of a shard that are under way.
func (b *bench) under(shard protocol.ShardID) (all []call) {
	for _, c := range b.calls {
		if c.shard() == shard {
			all = append(all, c)
		}
	}
	return all
}

// opened returns a desk that serves shard 1, and has read what it has.
func opened(t *testing.T, cfg recall.Config, ids ...string) (*recall.Desk, *recall.Outbox) {
	t.Helper()
	d, out := recall.New(cfg), &recall.Outbox{}
	d.Step(1, recall.Serve{Shard: 1}, out)
	require.Equal(t, []recall.Open{{Shard: 1, Session: 1}}, out.Open)
	out.Reset()
	d.Step(1, recall.Opened{Shard: 1, Session: 1, IDs: ids}, out)
	return d, out
}

// While a change is under way what comes is gathered for the next one.
func TestChangesAreGathered(t *testing.T) {
	d, out := opened(t, config())
	for _, id := range []string{"c", "b", "a", "d", "b"} {
		d.Step(2, recall.Remember{Shard: 1, ID: id}, out)
	}
	require.Equal(t, []recall.Change{{Shard: 1, Session: 1, Remember: []string{"c"}}}, out.Change)
	out.Reset()
	d.Step(2, recall.Forget{Shard: 1, ID: "c"}, out)
	d.Step(3, recall.Changed{Shard: 1, Session: 1}, out)
	require.Equal(t, []recall.Change{{Shard: 1, Session: 1, Remember: []string{"a", "b", "d"}}}, out.Change)
	out.Reset()
	d.Step(4, recall.Changed{Shard: 1, Session: 1}, out)
	require.Equal(t, []recall.Change{{Shard: 1, Session: 1, Forget: []string{"c"}}}, out.Change)
}

// A store that fails is called again with pauses that double up to their bound; a later owner has the longest at once.
func TestPausesDouble(t *testing.T) {
	for fenced, want := range map[bool][]time.Duration{false: {100e6, 200e6, 400e6, 800e6, 16e8, 2e9, 2e9}, true: {2e9, 2e9}} {
		d, out := recall.New(config()), &recall.Outbox{}
		now := machine.Instant(1)
		d.Step(now, recall.Serve{Shard: 1}, out)
		for i, pause := range want {
			out.Reset()
			d.Step(now, recall.Opened{Shard: 1, Session: uint64(i + 1), Err: errors.New("down"), Fenced: fenced}, out)
			require.Empty(t, out.Open)
			require.Equal(t, now.Add(pause), d.Wake(now))
			require.Equal(t, "down", d.Status(1).Why)
			now = now.Add(pause)
			d.Step(now, recall.Tick{}, out)
			require.Len(t, out.Open, 1)
		}
		require.EqualValues(t, len(want), d.Stats().Failed)
	}
}

// An entity that waits for a store which is down is refused after the limit, and the store is to forget it.
func TestWhoWaitsForTooLongIsRefused(t *testing.T) {
	cfg := config()
	cfg.First = true
	d, out := recall.New(cfg), &recall.Outbox{}
	d.Step(1, recall.Serve{Shard: 1}, out)
	d.Step(1, recall.Remember{Shard: 1, ID: "a"}, out)
	late := machine.Instant(1).Add(cfg.Limit)
	d.Step(late-1, recall.Remember{Shard: 1, ID: "b"}, out)
	d.Step(late, recall.Opened{Shard: 1, Session: 1, Err: errors.New("down")}, out)
	require.Equal(t, []recall.Named{{Shard: 1, IDs: []string{"a"}, Why: "down"}}, out.Unkept)
	out.Reset()
	d.Step(late, recall.Forget{Shard: 1, ID: "a"}, out)
	late = late.Add(time.Second)
	d.Step(late, recall.Tick{}, out)
	d.Step(late, recall.Opened{Shard: 1, Session: 2, IDs: []string{"a", "b", "c"}}, out)
	require.Equal(t, []recall.Named{{Shard: 1, IDs: []string{"b"}}}, out.Kept)
	require.Equal(t, []recall.Change{{Shard: 1, Session: 2, Forget: []string{"a"}}}, out.Change)
}

// Ids for which the store has no room are not tried again; the others go on.
func TestASetThatIsFull(t *testing.T) {
	cfg := config()
	cfg.First = true
	d, out := opened(t, cfg)
	for _, id := range []string{"z", "a", "b"} {
		d.Step(2, recall.Remember{Shard: 1, ID: id}, out)
	}
	d.Step(3, recall.Changed{Shard: 1, Session: 1}, out)
	out.Reset()
	d.Step(4, recall.Changed{Shard: 1, Session: 1, Full: []string{"b"}}, out)
	require.Equal(t, []recall.Named{{Shard: 1, IDs: []string{"a"}}}, out.Kept)
	require.Equal(t, []recall.Named{{Shard: 1, IDs: []string{"b"}, Why: "it has no room"}}, out.Unkept)
	require.True(t, d.Quiet(1))
	require.EqualValues(t, 1, d.Stats().Full)
}

// What is to be forgotten is bounded while the store is down: what is beyond comes back once more, which is counted.
func TestWhatIsToBeForgottenIsBounded(t *testing.T) {
	d, out := recall.New(config()), &recall.Outbox{}
	d.Step(1, recall.Serve{Shard: 1}, out)
	for i := range recall.ForgetMost + 10 {
		d.Step(1, recall.Forget{Shard: 1, ID: fmt.Sprint("e", i)}, out)
	}
	require.EqualValues(t, 10, d.Stats().Overflowed)
	require.Equal(t, recall.ForgetMost, d.Stats().Writing)
	d.Step(1, recall.Remember{Shard: 1, ID: "e1"}, out)
	d.Step(1, recall.Forget{Shard: 1, ID: "new"}, out)
	require.EqualValues(t, 10, d.Stats().Overflowed, "one wish less is to be forgotten")
	d.Step(1, recall.End{Shard: 1}, out)
	require.EqualValues(t, recall.ForgetMost+1, d.Stats().Unwritten)
}

// An answer to a call of an earlier opening of a shard ends that call, and means nothing else.
func TestAnEarlierSessionMeansNothing(t *testing.T) {
	d, out := opened(t, config())
	d.Step(2, recall.Remember{Shard: 1, ID: "a"}, out)
	out.Reset()
	d.Step(3, recall.Serve{Shard: 1}, out) // The move was called off.
	require.Equal(t, []recall.Open{{Shard: 1, Session: 2}}, out.Open)
	d.Step(4, recall.Opened{Shard: 1, Session: 2}, out)
	require.Equal(t, []recall.Change{{Shard: 1, Session: 2, Remember: []string{"a"}}}, out.Change)
	d.Step(5, recall.Changed{Shard: 1, Session: 1}, out)
	require.False(t, d.Quiet(1))
	d.Step(6, recall.Changed{Shard: 1, Session: 2}, out)
	require.True(t, d.Quiet(1))
}

// Of an entity that waits Unkept is said once, and not at each failure that follows.
func TestWhoWaitsIsToldOnce(t *testing.T) {
	cfg := config()
	cfg.First = true
	d, out := recall.New(cfg), &recall.Outbox{}
	d.Step(1, recall.Serve{Shard: 1}, out)
	d.Step(1, recall.Remember{Shard: 1, ID: "a"}, out)
	now, told := machine.Instant(1), 0
	for i := range uint64(10) {
		now = now.Add(3 * time.Second)
		out.Reset()
		d.Step(now, recall.Tick{}, out)
		d.Step(now, recall.Opened{Shard: 1, Session: i + 1, Err: errors.New("down")}, out)
		told += len(out.Unkept)
	}
	require.Equal(t, 1, told)
	require.Equal(t, 1, d.Status(1).Writing, "it runs perhaps, and is to be written")
}

// many returns n ids.
func many(n int) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprint("e", i))
	}
	return ids
}

// began returns how many entities are to begin.
func began(out *recall.Outbox) (n int) {
	for _, s := range out.Start {
		n += len(s.IDs)
	}
	return n
}

// Entities begin at the rate, however long none did before, and the shards take turns.
func TestTheRate(t *testing.T) {
	d, out := recall.New(config()), &recall.Outbox{}
	now := machine.Instant(1).Add(time.Hour)
	for s := range protocol.ShardID(2) {
		d.Step(now, recall.Serve{Shard: s}, out)
	}
	for s := range protocol.ShardID(2) {
		d.Step(now, recall.Opened{Shard: s, Session: uint64(s) + 1, IDs: many(300)}, out)
	}
	require.LessOrEqual(t, began(out), 6, "a twentieth of a second")
	for end := now.Add(2 * time.Second); now < end; now = d.Wake(now) {
		d.Step(now, recall.Tick{}, out)
	}
	require.InDelta(t, 200, began(out), 8)
	at := map[protocol.ShardID]int{}
	for _, s := range out.Start {
		at[s.Shard] += len(s.IDs)
	}
	require.InDelta(t, at[0], at[1], 16)
	d.Step(now, recall.Rate{}, out)
	require.Equal(t, 600, began(out), "no rate: all at once")
}

// An entity that was forgotten while it waited to begin does not begin, even if the store knows that long before.
func TestWhatWasForgottenDoesNotBegin(t *testing.T) {
	d, out := opened(t, config(), many(100)...)
	out.Reset()
	d.Step(2, recall.Forget{Shard: 1, ID: "e99"}, out)
	d.Step(3, recall.Changed{Shard: 1, Session: 1}, out)
	require.True(t, d.Quiet(1))
	now := machine.Instant(3)
	for d.Stats().Starting > 0 {
		now = d.Wake(now)
		d.Step(now, recall.Tick{}, out)
	}
	for _, s := range out.Start {
		require.NotContains(t, s.IDs, "e99")
	}
}

// An entity that has begun for a message and stopped for good, while it was on its way to begin without one, does not begin
// again: nobody would remember it.
func TestWhatIsForgottenOnItsWayDoesNotBegin(t *testing.T) {
	cfg := config()
	cfg.Rate = 0
	d, out := opened(t, cfg, "a", "b")
	require.Equal(t, 2, began(out))
	d.Step(2, recall.Forget{Shard: 1, ID: "a"}, out)
	d.Step(3, recall.Changed{Shard: 1, Session: 1}, out)
	require.Equal(t, []string{"b"}, d.Begin(1, []string{"a", "b"}))
	require.Empty(t, d.Begin(1, []string{"b"}), "it has begun")
	require.Empty(t, d.Begin(2, []string{"b"}), "of a shard that is not served")
}

// What was asked for last is what is written in the end, though the call before it has failed; and nobody is told that
// an entity is kept which was forgotten meanwhile.
func TestTheLastWishIsWritten(t *testing.T) {
	cfg := config()
	cfg.First = true
	d, out := opened(t, cfg)
	for _, id := range []string{"a", "b"} {
		d.Step(2, recall.Remember{Shard: 1, ID: id}, out)
		d.Step(2, recall.Forget{Shard: 1, ID: id}, out)
		require.Len(t, out.Change, 1)
		out.Reset()
		if id == "b" {
			d.Step(3, recall.Changed{Shard: 1, Session: 1, Err: errors.New("lost")}, out)
			d.Step(machine.Instant(time.Second), recall.Tick{}, out)
			d.Step(machine.Instant(time.Second), recall.Opened{Shard: 1, Session: 2, IDs: []string{"b"}}, out)
			require.Equal(t, []recall.Change{{Shard: 1, Session: 2, Forget: []string{"b"}}}, out.Change)
			break
		}
		d.Step(3, recall.Changed{Shard: 1, Session: 1}, out)
		require.Empty(t, out.Kept)
		require.Equal(t, []recall.Change{{Shard: 1, Session: 1, Forget: []string{"a"}}}, out.Change)
		d.Step(3, recall.Changed{Shard: 1, Session: 1}, out)
		out.Reset()
	}
}
