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
	"pgregory.net/rapid"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/remembering"
)

// The laws of a machine, over any order of inputs and answers; then the rules one by one.

func fault(id string) string {
	if id == "" || id[0] == '!' {
		return "no entity can have it"
	}
	return ""
}

func config() remembering.Config {
	return remembering.Config{
		Rate: 100, Calls: 2, Batch: 3, Timeout: 5 * time.Second, RetryMin: 100 * time.Millisecond, RetryMax: 2 * time.Second, Fault: fault,
	}
}

// shards is how many shards the kind of the laws has, and before how many it had.
const (
	shards = 3
	before = 2
)

// layout is that of the laws.
var layout = protocol.Layout{Shards: shards}

// of returns an entity of a shard.
func of(s protocol.ShardID, i int) string {
	for n := 0; ; n++ {
		if id := fmt.Sprint("e", n); layout.ShardOf(protocol.HashOf(id)) == s {
			if i--; i < 0 {
				return id
			}
		}
	}
}

func nameOf(s protocol.ShardID) remembering.Set {
	return remembering.Set{Number: uint32(s), Of: shards}
}

// call is a call of the store that is under way.
type call struct {
	open   *remembering.Open
	change *remembering.Change
}

func (c call) set() remembering.Set {
	if c.open != nil {
		return c.open.Set
	}
	return c.change.Set
}

// bench is a machine with its store, and with what was asked for.
type bench struct {
	t       *rapid.T
	machine *remembering.Machine
	cfg     remembering.Config
	now     machine.Instant
	calls   []call
	mail    []any // Questions and answers of the machine to itself, that are on their way.
	served  map[protocol.ShardID]bool
	sets    map[remembering.Set]map[string]bool
	asked   map[protocol.ShardID]map[string]bool // What was asked for last in this hosting.
	left    map[string]bool                      // Those that were to be forgotten once.
	old     map[string]bool                      // Those that the store had before anything was asked for, and that nobody had forgotten.
	starts  []machine.Instant
	tried   map[string]bool // Those that were started since their shard was last served.
}

func (b *bench) step(in any) {
	var out remembering.Outbox
	b.machine.Step(b.now, in, &out)
	for _, o := range out.Open {
		b.calls = append(b.calls, call{open: &o})
	}
	for _, c := range out.Change {
		require.LessOrEqual(b.t, len(c.Remember)+len(c.Forget), b.cfg.Batch)
		require.NotEmpty(b.t, len(c.Remember)+len(c.Forget))
		if !c.Set.IsIndex() && len(c.Remember) > 0 {
			require.True(b.t, b.sets[remembering.Set{}][fmt.Sprint(c.Set.Of)], "K9")
		}
		b.calls = append(b.calls, call{change: &c})
	}
	for _, q := range out.Ask {
		b.mail = append(b.mail, protocol.Asked{Request: q})
	}
	for _, g := range out.Answer {
		b.mail = append(b.mail, g.Given)
	}
	require.LessOrEqual(b.t, len(b.calls), b.cfg.Calls, "K1")
	for i, c := range b.calls {
		for _, o := range b.calls[:i] {
			// One of a hosting that has ended may still be under way.
			if c.set() == o.set() && c.open != nil && o.open != nil {
				require.NotEqual(b.t, c.open.Session, o.open.Session)
			}
		}
	}
	b.told(&out)
}

// told looks at what cells are told.
func (b *bench) told(out *remembering.Outbox) {
	for _, n := range out.Start {
		for _, id := range n.IDs {
			require.Equal(b.t, n.Shard, layout.ShardOf(protocol.HashOf(id)), "K5")
			require.True(b.t, b.served[n.Shard])
			if last, there := b.asked[n.Shard][id]; there {
				require.True(b.t, last, "%s is started, and was forgotten", id)
			}
			b.tried[id] = true
			b.starts = append(b.starts, b.now)
		}
	}
	for _, n := range out.Kept {
		for _, id := range n.IDs {
			require.True(b.t, b.sets[nameOf(n.Shard)][id], "K3")
			require.True(b.t, b.asked[n.Shard][id], "K3")
		}
	}
	for _, n := range out.Unkept {
		for _, id := range n.IDs {
			require.NotEmpty(b.t, n.Why)
			if !b.tried[id] {
				b.giveUp(n.Shard, id)
			}
		}
	}
	for _, shard := range out.Flushed {
		require.True(b.t, b.machine.Quiet(shard))
		b.written(shard)
	}
}

// giveUp gives an entity up that waits. If the store has had it since before it was asked for, it keeps it; otherwise
// nobody may rely on anything.
func (b *bench) giveUp(shard protocol.ShardID, id string) {
	if !b.old[id] || !b.sets[nameOf(shard)][id] {
		delete(b.asked[shard], id)
	}
	b.left[id] = b.left[id] || !b.old[id]
	b.step(remembering.GiveUp{Shard: shard, ID: id})
}

// written expects that the store has what was asked for, and that no former set has what is to be forgotten.
func (b *bench) written(shard protocol.ShardID) {
	for id, is := range b.asked[shard] {
		require.Equal(b.t, is, b.sets[nameOf(shard)][id], "K2: %d %s", shard, id)
		require.True(b.t, is || !b.has(id), "K8: %s", id)
	}
}

// has reports whether any set has an entity.
func (b *bench) has(id string) bool {
	for name, set := range b.sets {
		if !name.IsIndex() && set[id] {
			return true
		}
	}
	return false
}

// answer answers a call: with its effect or without, and says so or that it has failed.
func (b *bench) answer(i int, effect, heard bool) {
	c := b.calls[i]
	b.calls = slices.Delete(b.calls, i, i+1)
	var err error
	if !effect || !heard {
		err = errors.New("lost")
	}
	if b.sets[c.set()] == nil {
		b.sets[c.set()] = map[string]bool{}
	}
	set := b.sets[c.set()]
	if c.open != nil {
		var ids []string
		for id := range set {
			ids = append(ids, id)
		}
		slices.Sort(ids)
		if err != nil {
			ids = nil
		}
		b.step(remembering.Opened{Set: c.open.Set, Session: c.open.Session, IDs: ids, Err: err})
		return
	}
	if effect {
		for _, id := range c.change.Remember {
			set[id] = true
		}
		for _, id := range c.change.Forget {
			delete(set, id)
			if c.change.Set.Of == before {
				require.True(b.t, b.has(id) || b.left[id], "K7: %s is lost", id)
			}
		}
	}
	b.step(remembering.Changed{Set: c.change.Set, Session: c.change.Session, Err: err})
}

// pass lets time pass as the machine asks for it.
func (b *bench) pass(d time.Duration) {
	for end := b.now.Add(d); b.now < end; {
		b.now = min(end, max(b.now+1, b.machine.Wake(b.now)))
		b.step(remembering.Tick{})
	}
}

// deliver takes the first of what is on its way to the machine.
func (b *bench) deliver() {
	in := b.mail[0]
	b.mail = b.mail[1:]
	b.step(in)
}

// settle answers all calls, and delivers what is on its way, until nothing is left to do but to ask for what nobody
// gives or takes.
func (b *bench) settle() {
	for end := b.now.Add(time.Minute); b.now < end; {
		switch {
		case len(b.calls) > 0:
			b.answer(0, true, true)
		case len(b.mail) > 0:
			b.deliver()
		case b.machine.Wake(b.now) == machine.Never:
			return
		default:
			b.pass(b.machine.Wake(b.now).Sub(b.now))
		}
	}
	require.Zero(b.t, b.machine.Stats().Starting+b.machine.Stats().Unread+b.machine.Stats().Faulty, "K6")
}

// drawn returns a machine over a store that has entities, some of them in the sets of a former number of shards.
func drawn(t *rapid.T) *bench {
	b := &bench{
		t: t, cfg: config(), now: 1, served: map[protocol.ShardID]bool{}, sets: map[remembering.Set]map[string]bool{{}: {}},
		asked: map[protocol.ShardID]map[string]bool{}, tried: map[string]bool{}, left: map[string]bool{}, old: map[string]bool{},
	}
	b.cfg.First = rapid.Bool().Draw(t, "first")
	had := rapid.Bool().Draw(t, "another number before")
	if had {
		b.sets[remembering.Set{}][fmt.Sprint(before)] = true
		b.sets[remembering.Set{Of: before}], b.sets[remembering.Set{Number: 1, Of: before}] = map[string]bool{"!no entity": true}, map[string]bool{}
	}
	for s := range protocol.ShardID(shards) {
		b.sets[nameOf(s)], b.asked[s] = map[string]bool{"!no entity": true, of((s+1)%shards, 30): true}, map[string]bool{}
		for i := range rapid.IntRange(0, 12).Draw(t, "had") {
			name, id := nameOf(s), of(s, i)
			if had && rapid.Bool().Draw(t, "there") {
				name = remembering.Set{Number: uint32(protocol.HashOf(id) % before), Of: before}
			}
			b.sets[name][id], b.old[id] = true, true
		}
	}
	b.machine = remembering.New(b.cfg, layout)
	return b
}

// live draws what happens to the machine.
func (b *bench) live(t *rapid.T) {
	shard := protocol.ShardID(rapid.IntRange(0, shards-1).Draw(t, "shard"))
	id := of(shard, rapid.IntRange(0, 15).Draw(t, "id"))
	switch rapid.IntRange(0, 11).Draw(t, "what") {
	case 0, 1:
		if b.served[shard] = true; len(b.under(shard)) == 0 {
			b.step(remembering.Serve{Shard: shard, Epoch: protocol.Epoch{N: 1}})
		}
	case 2, 3:
		if b.served[shard] {
			b.asked[shard][id] = true
		}
		b.step(remembering.Remember{Shard: shard, ID: id})
	case 4:
		if b.served[shard] {
			b.asked[shard][id], b.left[id], b.old[id] = false, true, false
		}
		b.step(remembering.Forget{Shard: shard, ID: id})
	case 5:
		if rapid.IntRange(0, 5).Draw(t, "ends") == 0 && len(b.under(shard)) == 0 {
			b.served[shard], b.asked[shard] = false, map[string]bool{}
			b.step(remembering.End{Shard: shard})
		} else {
			b.step(remembering.Flush{Shard: shard})
		}
	case 6:
		b.pass(time.Duration(rapid.IntRange(1, 3000).Draw(t, "ms")) * time.Millisecond)
	case 7, 8:
		b.post(t)
	default:
		if len(b.calls) > 0 {
			b.answer(rapid.IntRange(0, len(b.calls)-1).Draw(t, "call"), rapid.Bool().Draw(t, "effect"), rapid.Bool().Draw(t, "heard"))
		}
	}
}

// post delivers, doubles, loses or delays what is on its way.
func (b *bench) post(t *rapid.T) {
	if len(b.mail) == 0 {
		return
	}
	switch rapid.IntRange(0, 5).Draw(t, "mail") {
	case 0:
		b.mail = b.mail[1:]
	case 1:
		b.mail = append(b.mail, b.mail[0])
		b.deliver()
	case 2:
		b.mail = append(b.mail[1:], b.mail[0])
	default:
		b.deliver()
	}
}

// After any life, when the store answers, it has what was asked for last of each id, every entity that it had when its
// shard came is started unless it was forgotten, whatever number of shards there was before, and the rate is kept.
func TestLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawn(t)
		for range rapid.IntRange(0, 80).Draw(t, "steps") {
			b.live(t)
		}
		b.settle()
		for s := range protocol.ShardID(shards) {
			if !b.served[0] && !b.served[s] {
				continue
			}
			if b.served[0] && b.served[s] {
				b.written(s)
			}
			b.tried, b.served[s] = map[string]bool{}, true
			b.step(remembering.Serve{Shard: s, Epoch: protocol.Epoch{N: 2}})
			b.settle()
			for id := range b.sets[nameOf(s)] {
				if last, there := b.asked[s][id]; fault(id) == "" && layout.ShardOf(protocol.HashOf(id)) == s && (!there || last) {
					require.True(t, b.tried[id], "%d %s", s, id)
				}
			}
		}
		b.ends(t)
		for i, at := range b.starts { // K4: in any second the rate, and what may be made up for.
			if j := i - b.cfg.Rate - b.cfg.Rate/20 - 1; j >= 0 {
				require.Greater(t, at.Sub(b.starts[j]), time.Second-time.Millisecond)
			}
		}
	})
}

// ends looks at the end of a life in which the first shard is served: nothing is left to do.
func (b *bench) ends(t *rapid.T) {
	if !b.served[0] {
		return
	}
	all := b.machine.Stats()
	require.Zero(t, all.Starting+all.Writing+all.Faulty+all.Unread)
	if len(b.served) < shards || slices.Contains([]bool{b.served[1], b.served[2]}, false) {
		return // Nobody takes what belongs to the others.
	}
	require.Equal(t, map[string]bool{fmt.Sprint(shards): true}, b.sets[remembering.Set{}])
	require.Zero(t, all.Former)
	for name, set := range b.sets {
		for id := range set {
			require.True(t, name.IsIndex() || name.Of == shards || fault(id) != "", "%v %s", name, id)
		}
	}
}

// under returns the calls of a shard's set that are under way.
func (b *bench) under(shard protocol.ShardID) (all []call) {
	for _, c := range b.calls {
		if c.set() == nameOf(shard) {
			all = append(all, c)
		}
	}
	return all
}

// own is the set of the only shard of a kind.
var own = remembering.Set{Of: 1}

// alone returns a machine that serves the only shard of a kind, and has opened its set but has no answer. There was no
// other number of shards.
func alone(t *testing.T, cfg remembering.Config) (*remembering.Machine, *remembering.Outbox) {
	t.Helper()
	m, out := remembering.New(cfg, protocol.Layout{Shards: 1}), &remembering.Outbox{}
	m.Step(1, remembering.Serve{}, out)
	require.Equal(t, []remembering.Open{{Set: own, Session: 1}, {Session: 2}}, out.Open)
	m.Step(1, remembering.Opened{Session: 2, IDs: []string{"1"}}, out)
	require.Len(t, out.Ask, 1)
	m.Step(1, protocol.Asked{Request: out.Ask[0]}, out)
	require.Len(t, out.Answer, 1)
	m.Step(1, out.Answer[0].Given, out)
	require.Equal(t, []uint16{0}, out.Over)
	out.Reset()
	return m, out
}

// opened returns a machine that serves the only shard of a kind, and has read what it has.
func opened(t *testing.T, cfg remembering.Config, ids ...string) (*remembering.Machine, *remembering.Outbox) {
	t.Helper()
	m, out := alone(t, cfg)
	m.Step(1, remembering.Opened{Set: own, Session: 1, IDs: ids}, out)
	return m, out
}

// While a change is under way what comes is gathered for the next one.
func TestChangesAreGathered(t *testing.T) {
	m, out := opened(t, config())
	for _, id := range []string{"c", "b", "a", "d", "b"} {
		m.Step(2, remembering.Remember{ID: id}, out)
	}
	require.Equal(t, []remembering.Change{{Set: own, Session: 1, Remember: []string{"c"}}}, out.Change)
	out.Reset()
	m.Step(2, remembering.Forget{ID: "c"}, out)
	m.Step(3, remembering.Changed{Set: own, Session: 1}, out)
	require.Equal(t, []remembering.Change{{Set: own, Session: 1, Remember: []string{"a", "b", "d"}}}, out.Change)
	out.Reset()
	m.Step(4, remembering.Changed{Set: own, Session: 1}, out)
	require.Equal(t, []remembering.Change{{Set: own, Session: 1, Forget: []string{"c"}}}, out.Change)
}

// Of a change that has failed nobody knows what the store has: the set is read again, and it is written again.
func TestWhatFailedIsWrittenAgain(t *testing.T) {
	m, out := opened(t, config())
	m.Step(2, remembering.Remember{ID: "a"}, out)
	out.Reset()
	m.Step(3, remembering.Changed{Set: own, Session: 1, Err: errors.New("down")}, out)
	again := m.Wake(3)
	m.Step(again, remembering.Tick{}, out)
	require.Len(t, out.Open, 1)
	session := out.Open[0].Session
	out.Reset()
	m.Step(again, remembering.Opened{Set: own, Session: session}, out)
	require.Equal(t, []remembering.Change{{Set: own, Session: session, Remember: []string{"a"}}}, out.Change)
}

// A store that fails is called again with pauses that double up to their bound; a later owner has the longest at once.
func TestPausesDouble(t *testing.T) {
	for fenced, want := range map[bool][]time.Duration{false: {100e6, 200e6, 400e6, 800e6, 16e8, 2e9, 2e9}, true: {2e9, 2e9}} {
		m, out := alone(t, config())
		now, session := machine.Instant(1), uint64(1)
		for _, pause := range want {
			m.Step(now, remembering.Opened{Set: own, Session: session, Err: errors.New("down"), Fenced: fenced}, out)
			require.Empty(t, out.Open)
			require.Equal(t, now.Add(pause), m.Wake(now))
			require.Equal(t, "down", m.Status(0).Why)
			now = now.Add(pause)
			m.Step(now, remembering.Tick{}, out)
			require.Len(t, out.Open, 1)
			session = out.Open[0].Session
			out.Reset()
		}
		require.EqualValues(t, len(want), m.Stats().Failed)
	}
}

// An entity that waits for a store which is down is refused after the limit. What the store has had before begins all
// the same when it can be read; what was new, and is given up when it was, is forgotten.
func TestWhoWaitsForTooLongIsRefused(t *testing.T) {
	cfg := config()
	cfg.First = true
	m, out := alone(t, cfg)
	m.Step(1, remembering.Remember{ID: "a"}, out)
	late := machine.Instant(1).Add(cfg.Timeout)
	m.Step(late-1, remembering.Remember{ID: "b"}, out)
	m.Step(late, remembering.Opened{Set: own, Session: 1, Err: errors.New("down")}, out)
	require.Equal(t, []remembering.Entities{{IDs: []string{"a"}, Why: "down"}}, out.Unkept)
	out.Reset()
	m.Step(late, remembering.GiveUp{ID: "a"}, out)
	late = late.Add(time.Second)
	m.Step(late, remembering.Tick{}, out)
	m.Step(late, remembering.Opened{Set: own, Session: 4, IDs: []string{"a", "b", "c"}}, out)
	require.Equal(t, []remembering.Entities{{IDs: []string{"b"}}}, out.Kept)
	m.Step(late, remembering.GiveUp{ID: "b"}, out) // Its asker is gone; it begins as the others do.
	require.Empty(t, out.Change, "the store had them before")
	require.Equal(t, []remembering.Entities{{IDs: []string{"a", "b", "c"}}}, out.Start)
	m.Step(late, remembering.Remember{ID: "c"}, out) // A message comes before its turn.
	require.Empty(t, out.Change, "it is there")
	require.Equal(t, []remembering.Entities{{IDs: []string{"b"}}, {IDs: []string{"c"}}}, out.Kept)
	out.Kept = nil
	m.Step(late, remembering.Remember{ID: "d"}, out)
	m.Step(late, remembering.Changed{Set: own, Session: 4}, out)
	require.Equal(t, []remembering.Entities{{IDs: []string{"d"}}}, out.Kept)
	out.Reset()
	m.Step(late, remembering.GiveUp{ID: "d"}, out)
	require.Equal(t, []remembering.Change{{Set: own, Session: 4, Forget: []string{"d"}}}, out.Change, "it was new")
}

// An entity that waits for the store when its shard begins to stop is not forgotten as new when the set is read then,
// has it, and nobody waits any more.
func TestWhoWaitedWhileItsShardStoppedIsNotForgotten(t *testing.T) {
	cfg := config()
	cfg.First = true
	m, out := alone(t, cfg)
	m.Step(1, remembering.Remember{ID: "a"}, out)
	m.Step(1, remembering.Flush{}, out)
	m.Step(2, remembering.Opened{Set: own, Session: 1, IDs: []string{"a"}}, out)
	require.Equal(t, []remembering.Entities{{IDs: []string{"a"}}}, out.Kept)
	m.Step(3, remembering.GiveUp{ID: "a"}, out)
	require.Empty(t, out.Change)
	require.True(t, m.Quiet(0))
}

// Ids for which the store has no room are not tried again; the others go on.
func TestASetThatIsFull(t *testing.T) {
	cfg := config()
	cfg.First = true
	m, out := opened(t, cfg)
	for _, id := range []string{"z", "a", "b"} {
		m.Step(2, remembering.Remember{ID: id}, out)
	}
	m.Step(3, remembering.Changed{Set: own, Session: 1}, out)
	out.Reset()
	m.Step(4, remembering.Changed{Set: own, Session: 1, Full: []string{"b"}}, out)
	require.Equal(t, []remembering.Entities{{IDs: []string{"a"}}}, out.Kept)
	require.Equal(t, []remembering.Entities{{IDs: []string{"b"}, Why: "it has no room"}}, out.Unkept)
	require.True(t, m.Quiet(0))
	require.EqualValues(t, 1, m.Stats().Full)
}

// What is to be forgotten is bounded while the store is down: what is beyond comes back once more, which is counted.
func TestWhatIsToBeForgottenIsBounded(t *testing.T) {
	m, out := alone(t, config())
	for i := range remembering.MaxForgets + 10 {
		m.Step(1, remembering.Forget{ID: fmt.Sprint("e", i)}, out)
	}
	require.EqualValues(t, 10, m.Stats().Overflowed)
	require.Equal(t, remembering.MaxForgets, m.Stats().Writing)
	m.Step(1, remembering.Remember{ID: "e1"}, out)
	m.Step(1, remembering.Forget{ID: "new"}, out)
	require.EqualValues(t, 10, m.Stats().Overflowed, "one request less is to be forgotten")
	m.Step(1, remembering.End{}, out)
	require.EqualValues(t, remembering.MaxForgets+1, m.Stats().Unwritten)
}

// An answer to a call of an earlier opening of a shard ends that call, and means nothing else.
func TestAnEarlierSessionMeansNothing(t *testing.T) {
	cfg := config()
	cfg.Calls = 3 // The index is opened too.
	m, out := opened(t, cfg)
	m.Step(2, remembering.Remember{ID: "a"}, out)
	out.Reset()
	m.Step(3, remembering.Serve{}, out) // The move was called off.
	require.Equal(t, remembering.Open{Set: own, Session: 4}, out.Open[0])
	m.Step(4, remembering.Opened{Set: own, Session: 4}, out)
	require.Equal(t, []remembering.Change{{Set: own, Session: 4, Remember: []string{"a"}}}, out.Change)
	m.Step(5, remembering.Changed{Set: own, Session: 1}, out)
	require.False(t, m.Quiet(0))
	m.Step(6, remembering.Changed{Set: own, Session: 4}, out)
	require.True(t, m.Quiet(0))
}

// Of an entity that waits Unkept is said once, and not at each failure that follows.
func TestWhoWaitsIsToldOnce(t *testing.T) {
	cfg := config()
	cfg.First = true
	m, out := alone(t, cfg)
	m.Step(1, remembering.Remember{ID: "a"}, out)
	now, told, session := machine.Instant(1), 0, uint64(1)
	for range 10 {
		now = now.Add(3 * time.Second)
		out.Reset()
		m.Step(now, remembering.Tick{}, out)
		if len(out.Open) > 0 {
			session = out.Open[0].Session
		}
		m.Step(now, remembering.Opened{Set: own, Session: session, Err: errors.New("down")}, out)
		told += len(out.Unkept)
	}
	require.Equal(t, 1, told)
	require.Equal(t, 1, m.Status(0).Writing, "it runs perhaps, and is to be written")
}

// many returns n ids.
func many(n int) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprint("e", i))
	}
	return ids
}

// began returns how many entities are to begin.
func began(out *remembering.Outbox) (n int) {
	for _, s := range out.Start {
		n += len(s.IDs)
	}
	return n
}

// Entities begin at the rate, however long none did before, and the shards take turns.
func TestTheRate(t *testing.T) {
	m, out := remembering.New(config(), layout), &remembering.Outbox{}
	now := machine.Instant(1).Add(time.Hour)
	for s := range protocol.ShardID(2) {
		m.Step(now, remembering.Serve{Shard: s + 1}, out)
	}
	for s := range protocol.ShardID(2) {
		var ids []string
		for i := range 300 {
			ids = append(ids, of(s+1, i))
		}
		m.Step(now, remembering.Opened{Set: nameOf(s + 1), Session: out.Open[s].Session, IDs: ids}, out)
	}
	require.LessOrEqual(t, began(out), 6, "a twentieth of a second")
	for end := now.Add(2 * time.Second); now < end; now = m.Wake(now) {
		m.Step(now, remembering.Tick{}, out)
	}
	require.InDelta(t, 200, began(out), 8)
	at := map[protocol.ShardID]int{}
	for _, s := range out.Start {
		at[s.Shard] += len(s.IDs)
	}
	require.InDelta(t, at[1], at[2], 16)
	m.Step(now, remembering.Rate{}, out)
	require.Equal(t, 600, began(out), "no rate: all at once")
}

// An entity that was forgotten while it waited to begin does not begin, even if the store knows that long before.
func TestWhatWasForgottenDoesNotBegin(t *testing.T) {
	m, out := opened(t, config(), many(100)...)
	out.Reset()
	m.Step(2, remembering.Forget{ID: "e99"}, out)
	m.Step(3, remembering.Changed{Set: own, Session: 1}, out)
	require.True(t, m.Quiet(0))
	now := machine.Instant(3)
	for m.Stats().Starting > 0 {
		now = m.Wake(now)
		m.Step(now, remembering.Tick{}, out)
	}
	for _, s := range out.Start {
		require.NotContains(t, s.IDs, "e99")
	}
}

// An entity that has begun for a message and stopped for good, while it was on its way to begin without one, does not
// begin again: nobody would remember it.
func TestWhatIsForgottenOnItsWayDoesNotBegin(t *testing.T) {
	cfg := config()
	cfg.Rate = 0
	m, out := opened(t, cfg, "a", "b")
	require.Equal(t, 2, began(out))
	m.Step(2, remembering.Forget{ID: "a"}, out)
	m.Step(3, remembering.Changed{Set: own, Session: 1}, out)
	require.Equal(t, []string{"b"}, m.Begin(0, []string{"a", "b"}))
	require.Empty(t, m.Begin(0, []string{"b"}), "it has begun")
	require.Empty(t, m.Begin(2, []string{"b"}), "of a shard that is not served")
}

// What was asked for last is what is written in the end, though the call before it has failed; and nobody is told that
// an entity is kept which was forgotten meanwhile.
func TestTheLastWishIsWritten(t *testing.T) {
	cfg := config()
	cfg.First = true
	m, out := opened(t, cfg)
	for _, id := range []string{"a", "b"} {
		m.Step(2, remembering.Remember{ID: id}, out)
		m.Step(2, remembering.Forget{ID: id}, out)
		require.Len(t, out.Change, 1)
		out.Reset()
		if id == "b" {
			m.Step(3, remembering.Changed{Set: own, Session: 1, Err: errors.New("lost")}, out)
			m.Step(machine.Instant(time.Second), remembering.Tick{}, out)
			m.Step(machine.Instant(time.Second), remembering.Opened{Set: own, Session: 4, IDs: []string{"b"}}, out)
			require.Equal(t, []remembering.Change{{Set: own, Session: 4, Forget: []string{"b"}}}, out.Change)
			break
		}
		m.Step(3, remembering.Changed{Set: own, Session: 1}, out)
		require.Empty(t, out.Kept)
		require.Equal(t, []remembering.Change{{Set: own, Session: 1, Forget: []string{"a"}}}, out.Change)
		m.Step(3, remembering.Changed{Set: own, Session: 1}, out)
		out.Reset()
	}
}
