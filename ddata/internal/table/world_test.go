// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package table_test

import (
	"fmt"
	"maps"
	"slices"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/internal/table"
)

// A world is some tables of one group, the messages between them that may be lost, late or
// doubled, and what an observer who sees everything knows. Each key has a type; an update adds
// one to a counter, or an element that names the update to a set, so that the value
// says exactly which updates it is the join of.

var (
	counterType = crdt.TypeOf[crdt.GCounter]()
	setType     = crdt.TypeOf[crdt.GSet[string]]()
	orsetType   = crdt.TypeOf[crdt.ORSet[string]]()
	wholeType   = crdt.TypeOf[whole]()
)

// whole is a set of up to 64 numbers, a type without deltas.
type whole struct{ bits uint64 }

func (whole) TypeName() string      { return "whole" }
func (w whole) Merge(o whole) whole { return whole{w.bits | o.bits} }
func (w whole) String() string      { return fmt.Sprintf("%b", w.bits) }
func (w whole) add(n uint64) whole  { return whole{w.bits | 1<<(n%64)} }
func (w *whole) UnmarshalBinary(b []byte) error {
	_, err := fmt.Sscan(string(b), &w.bits)
	return err
}
func (w whole) AppendBinary(b []byte) ([]byte, error) { return fmt.Append(b, w.bits), nil }

// typeOf returns the type of a key of a world.
func typeOf(key string) crdt.Type {
	switch key[0] {
	case 'c':
		return counterType
	case 's':
		return setType
	case 'o':
		return orsetType
	default:
		return wholeType
	}
}

// element names an update.
func element(at crdt.Origin, count uint64) string { return fmt.Sprintf("%d.%d", at, count) }

// update makes the next update of a key.
func update(t *table.Table, key string) (table.Change, error) {
	e, _ := t.Get(key)
	return t.Update(key, typeOf(key), func(at crdt.Origin, v any) (any, error) {
		name := element(at, e.Versions.Of(at)+1)
		switch v := v.(type) {
		case crdt.GCounter:
			return v.Add(at, 1), nil
		case crdt.GSet[string]:
			return v.Add(name), nil
		case crdt.ORSet[string]:
			return v.Add(at, name), nil
		default:
			return v.(whole).add(uint64(at) + 7*e.Versions.Of(at)), nil
		}
	})
}

// content returns the names of the updates that a value holds, sorted; for a counter only how
// many. False for types that cannot tell.
func content(e table.Entry) (names []string, count int, ok bool) {
	switch v := e.Value.(type) {
	case crdt.GCounter:
		return nil, int(v.Value()), true
	case crdt.GSet[string]:
		names = slices.Sorted(v.All())
	case crdt.ORSet[string]:
		names = slices.Sorted(v.All())
	default:
		return nil, 0, false
	}
	return names, len(names), true
}

// meant returns the names of the updates that versions mean, sorted.
func meant(v table.Versions) []string {
	names := []string{}
	for _, x := range v {
		for n := range x.Count {
			names = append(names, element(x.Origin, n+1))
		}
	}
	slices.Sort(names)
	return names
}

// message is a change or an entry on its way.
type message struct {
	entry  *table.Entry
	change *table.Change
}

type world struct {
	t        *rapid.T
	tables   []*table.Table
	messages []message
	gen      uint64

	made   map[string]map[string]bool // All updates of a key, by name.
	floors map[string]table.Versions  // All that has ever expired of a key.
	lost   map[string]bool            // Keys that were deleted, or dropped somewhere.
}

func newWorld(t *rapid.T, replicas int) *world {
	w := &world{t: t, made: map[string]map[string]bool{}, floors: map[string]table.Versions{}, lost: map[string]bool{}}
	for i := range replicas {
		w.tables = append(w.tables, table.New(table.Config{Self: crdt.Origin(i + 1)}))
	}
	return w
}

func (w *world) any() *table.Table {
	return w.tables[rapid.IntRange(0, len(w.tables)-1).Draw(w.t, "table")]
}

func (w *world) key() string {
	return rapid.SampledFrom([]string{"c", "c2", "s", "s2", "o", "o2", "w"}).Draw(w.t, "key")
}

func (w *world) update(t *table.Table, key string) {
	c, err := update(t, key)
	if err != nil {
		require.ErrorIs(w.t, err, table.ErrDeleted)
		return
	}
	require.Equal(w.t, c.From+1, c.To)
	if w.made[key] == nil {
		w.made[key] = map[string]bool{}
	}
	name := element(c.Origin, c.To)
	require.False(w.t, w.made[key][name], "%s: update %s was made twice", key, name)
	w.made[key][name] = true
}

func (w *world) expire(t *table.Table, key string) {
	w.gen++
	e, _ := t.Get(key)
	if _, ok := t.Expire(key, e.Versions, w.gen); ok {
		w.floors[key] = w.floors[key].Join(e.Versions).Join(e.Floor)
	}
}

func (w *world) delete(t *table.Table, key string) {
	w.gen++
	_, err := t.Delete(key, w.gen)
	require.NoError(w.t, err)
	w.lost[key] = true
}

func (w *world) deliver(t *table.Table, m message) {
	if m.entry != nil {
		_, err := t.Join(*m.entry)
		require.NoError(w.t, err)
		return
	}
	_, err := t.Apply(*m.change)
	require.NoError(w.t, err)
}

// spread puts the local updates of a table on their way.
func (w *world) spread(t *table.Table) {
	for _, c := range t.Pending(1 << 20) {
		w.messages = append(w.messages, message{change: &c})
	}
}

func (w *world) send(t *table.Table, key string) {
	if e, ok := t.Get(key); ok {
		w.messages = append(w.messages, message{entry: &e})
	}
}

// receive delivers some message, which stays on its way, or may be lost.
func (w *world) receive(t *table.Table) {
	if len(w.messages) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.messages)-1).Draw(w.t, "message")
	w.deliver(t, w.messages[i])
	if rapid.Bool().Draw(w.t, "once") {
		w.messages = slices.Delete(w.messages, i, i+1)
	}
}

// step does one thing.
func (w *world) step(what int) {
	switch t := w.any(); {
	case what < 30:
		w.update(t, w.key())
	case what < 45:
		w.spread(t)
	case what < 55:
		w.send(t, w.key())
	case what < 80:
		w.receive(t)
	case what < 90:
		w.expire(t, w.key())
	case what < 92:
		w.delete(t, w.key())
	case what < 96:
		w.exchange(t, w.any())
	default:
		w.sweep(func() { w.update(w.any(), w.key()) })
	}
}

// check checks what holds at any moment.
func (w *world) check() {
	for i, t := range w.tables {
		require.NoError(w.t, t.Check(), "table %d", i+1)
		require.Equal(w.t, t.Recounted(), t.Root())
		for key := range w.made {
			e, ok := t.Get(key)
			if !ok || e.State != table.Live {
				continue
			}
			if names, count, ok := content(e); ok {
				require.Len(w.t, meant(e.Versions), count, "table %d: %+v", i+1, e)
				if names != nil {
					require.Equal(w.t, meant(e.Versions), names, "table %d", i+1)
				}
			}
		}
	}
}

// settle lets the tables exchange entries until all are equal.
func (w *world) settle() {
	for range 4 * len(w.tables) {
		for _, from := range w.tables {
			for _, to := range w.tables {
				w.exchange(from, to)
			}
		}
		if w.equal() {
			return
		}
	}
	w.t.Fatalf("the tables do not become equal:\n%s", w.describe())
}

// exchange gives one table the entries that another has otherwise.
func (w *world) exchange(from, to *table.Table) {
	for bucket := range table.Buckets {
		if from.Hash(bucket) == to.Hash(bucket) {
			continue
		}
		for _, s := range from.Summaries(bucket) {
			if to.HashEntry(s.Key) != s.Hash {
				e, _ := from.Get(s.Key)
				w.deliver(to, message{entry: &e})
			}
		}
	}
}

func (w *world) equal() bool {
	for _, t := range w.tables[1:] {
		if t.Root() != w.tables[0].Root() {
			return false
		}
	}
	return true
}

func (w *world) describe() string {
	var s string
	for i, t := range w.tables {
		s += fmt.Sprintf("table %d\n", i+1)
		for bucket := range table.Buckets {
			for _, x := range t.Summaries(bucket) {
				e, _ := t.Get(x.Key)
				s += fmt.Sprintf("  %x %s\n", x.Hash, text(w.t, e))
			}
		}
	}
	return s
}

// text is everything that an entry says.
func text(t require.TestingT, e table.Entry) string {
	var value []byte
	if e.Value != nil {
		var err error
		value, err = e.Type.Append(nil, e.Value)
		require.NoError(t, err)
	}
	return fmt.Sprintf("%s %v %v %v %d %x", e.Key, e.State, e.Versions, e.Floor, e.Stamp, value)
}

// same checks that equal hashes mean equal tables, down to the bytes of the values, and that no
// update was lost that no expiry covers.
func (w *world) same() {
	first := w.tables[0]
	for _, key := range slices.Sorted(maps.Keys(w.made)) {
		e, ok := first.Get(key)
		for _, t := range w.tables[1:] {
			o, has := t.Get(key)
			require.Equal(w.t, ok, has)
			require.Equal(w.t, text(w.t, e), text(w.t, o))
		}
		if w.lost[key] {
			continue
		}
		require.True(w.t, w.floors[key].Covers(e.Floor), "%v covers more than expired: %v", e.Floor, w.floors[key])
		for name := range w.made[key] {
			var at, n uint64
			_, err := fmt.Sscanf(name, "%d.%d", &at, &n)
			require.NoError(w.t, err)
			if n > w.floors[key].Of(crdt.Origin(at)) {
				require.GreaterOrEqual(w.t, e.Versions.Of(crdt.Origin(at)), n, "%s: update %s is lost\n%s", key, name, w.describe())
			}
		}
	}
}

// sweep drops what all tables confirm, and retires owners; between happens after they have
// confirmed. Messages of before are refused from then on.
func (w *world) sweep(between func(), retired ...crdt.Origin) bool {
	w.gen++
	gen, upTo := w.gen, w.gen
	hash := w.tables[0].Confirm(gen, upTo)
	for _, t := range w.tables[1:] {
		if t.Confirm(gen, upTo) != hash {
			return false
		}
	}
	between()
	w.messages = nil
	for _, t := range w.tables {
		require.True(w.t, t.Confirmed(gen, hash))
		t.Sweep(gen, retired)
		_ = t.Pending(1 << 30)
	}
	for key := range w.made {
		if !slices.ContainsFunc(w.tables, func(t *table.Table) bool { _, ok := t.Get(key); return ok }) && w.lost[key] {
			delete(w.made, key)
			delete(w.floors, key)
			delete(w.lost, key)
		}
	}
	return true
}
