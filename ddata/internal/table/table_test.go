// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package table_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/internal/table"
)

// The bucket of a key, and its hash, are the same for ever: replicas of different versions
// compare them.
func TestHashOfKeyNeverChanges(t *testing.T) {
	for _, test := range []struct {
		key    string
		hash   uint64
		bucket int
	}{
		{"", 0xefd01f60ba992926, 3837},
		{"a", 0x82a2a958a9bece5b, 2090},
		{"counter-00000000", 0x659ee44c79d35899, 1625},
		{"counter-00000001", 0x91ca8bb91b6c59b9, 2332},
		{"Größe", 0xe504efb774d003a6, 3664},
	} {
		require.Equal(t, test.hash, table.HashKey(test.key), "%q: %#x", test.key, table.HashKey(test.key))
		require.Equal(t, test.bucket, table.BucketOf(test.key))
	}
}

// Keys that differ in their last bytes only are spread evenly.
func TestKeysSpreadOverBuckets(t *testing.T) {
	const each = 50
	var count [table.Buckets]int
	for _, key := range keysOf(each * table.Buckets) {
		count[table.BucketOf(key)]++
	}
	require.Greater(t, slices.Min(count[:]), each/3)
	require.Less(t, slices.Max(count[:]), each*2)
}

func TestVersionsAreJoinedByMaximum(t *testing.T) {
	a := table.Versions{{1, 5}, {3, 1}}
	b := table.Versions{{1, 4}, {2, 2}, {3, 2}}
	join := table.Versions{{1, 5}, {2, 2}, {3, 2}}
	require.Equal(t, join, a.Join(b))
	require.Equal(t, join, b.Join(a))
	require.True(t, join.Covers(a) && join.Covers(b) && a.Covers(nil))
	require.False(t, a.Covers(b) || b.Covers(a) || table.Versions(nil).Covers(a))
	require.EqualValues(t, 2, b.Of(2))
	require.Zero(t, b.Of(4)+a.Of(2)+a.Of(0))
	require.True(t, a.Join(nil).Equal(a))
	require.False(t, a.Equal(b))
	require.Zero(t, testing.AllocsPerRun(10, func() { join.Join(a); a.Join(join) }))
}

func TestOwnerIsOriginWithoutLife(t *testing.T) {
	require.Equal(t, crdt.Origin(7), table.Owner(table.LifeOf(7, 3)))
	require.Equal(t, crdt.Origin(7), table.Owner(7))
	require.NotEqual(t, table.LifeOf(7, 3), table.LifeOf(7, 4))
}

// covers B34.
func TestInvalidKeysAreRefused(t *testing.T) {
	a := newTable(1)
	for _, key := range []string{"", strings.Repeat("x", 1025), "\xff", "a\nb", "\x1b[31m", "\u202e"} {
		_, err := a.Update(key, counterType, increment)
		require.ErrorIs(t, err, table.ErrKey)
		_, err = a.Delete(key, 1)
		require.ErrorIs(t, err, table.ErrKey)
		outcome, err := a.Join(table.Entry{Key: key, State: table.Deleted})
		require.ErrorIs(t, err, table.ErrKey)
		require.Equal(t, table.Refused, outcome)
		outcome, err = a.Apply(table.Change{Key: key})
		require.ErrorIs(t, err, table.ErrKey)
		require.Equal(t, table.Refused, outcome)
	}
	_, err := a.Update(strings.Repeat("ß", 512), counterType, increment)
	require.NoError(t, err)
	require.Equal(t, 1, a.Len())
}

// Another type under a known key is refused whoever brings it, and changes nothing; also
// under a key of which the value has expired. A deletion needs no type.
func TestAnotherTypeIsRefused(t *testing.T) {
	a, b := newTable(1), newTable(2)
	updated(t, a, "c")
	add := func(_ crdt.Origin, v any) (any, error) { return v.(crdt.GSet[string]).Add("x"), nil }
	theirs, err := b.Update("c", setType, add)
	require.NoError(t, err)

	for range 2 {
		before := a.Root()
		_, err = a.Update("c", setType, add)
		want := &table.TypeError{Key: "c", Have: "gcounter", Got: "gset[string]"}
		require.Equal(t, want, err)
		require.EqualError(t, err, `key "c" holds a gcounter, not a gset[string]`)
		outcome, err := a.Join(entryOf(t, b, "c"))
		require.Equal(t, want, err)
		require.Equal(t, table.Refused, outcome)
		outcome, err = a.Apply(theirs)
		require.Equal(t, want, err)
		require.Equal(t, table.Refused, outcome)
		require.Equal(t, before, a.Root())
		require.NotEqual(t, before, b.Root())
		a.Expire("c", entryOf(t, a, "c").Versions, 1)
	}
	deleted(t, b, "c", 1)
	require.Equal(t, table.Applied, joined(t, a, entryOf(t, b, "c")))
	require.Equal(t, a.Root(), b.Root())
}

// What no table makes is refused.
// covers B33.
func TestInvalidEntriesAndChangesAreRefused(t *testing.T) {
	a := newTable(1)
	good := live(table.Versions{{7, 1}}, nil)
	for name, spoil := range map[string]func(e *table.Entry){
		"state":     func(e *table.Entry) { e.State = 9 },
		"type":      func(e *table.Entry) { e.Type = nil },
		"value":     func(e *table.Entry) { e.Value = 5 },
		"nil":       func(e *table.Entry) { e.Value = nil },
		"versions":  func(e *table.Entry) { e.Versions = nil },
		"zero":      func(e *table.Entry) { e.Versions = table.Versions{{7, 0}} },
		"unsorted":  func(e *table.Entry) { e.Versions = table.Versions{{7, 1}, {6, 1}} },
		"doubled":   func(e *table.Entry) { e.Floor = table.Versions{{7, 1}, {7, 1}} },
		"bad panic": func(e *table.Entry) { e.Type, e.Value = panickyType, panicky{} },
	} {
		e := good
		spoil(&e)
		outcome, err := a.Join(e)
		require.ErrorIs(t, err, table.ErrValue, name)
		require.Equal(t, table.Refused, outcome, name)
	}
	c := table.Change{Key: "c", Type: counterType, Origin: 7, From: 0, To: 1, Delta: crdt.GCounter{}.Add(7, 1)}
	for name, spoil := range map[string]func(c *table.Change){
		"type":      func(c *table.Change) { c.Type = nil },
		"delta":     func(c *table.Change) { c.Delta = nil },
		"origin":    func(c *table.Change) { c.Origin = 0 },
		"numbers":   func(c *table.Change) { c.From = 1 },
		"backwards": func(c *table.Change) { c.From = 2 },
		"bad panic": func(c *table.Change) { c.Type, c.Delta = panickyType, panicky{} },
	} {
		bad := c
		spoil(&bad)
		outcome, err := a.Apply(bad)
		require.ErrorIs(t, err, table.ErrValue, name)
		require.Equal(t, table.Refused, outcome, name)
	}
	require.Zero(t, a.Len())
	require.NoError(t, a.Check())
	require.Positive(t, a.Stats().Faults)
}

// panicky is a value of which nobody can tell the size.
type panicky struct{}

var panickyType = crdt.TypeOf[panicky]()

func (panicky) TypeName() string                      { return "panicky" }
func (panicky) Merge(panicky) panicky                 { panic("cannot merge") }
func (panicky) Size() int                             { panic("cannot tell") }
func (panicky) AppendBinary(b []byte) ([]byte, error) { return b, nil }
func (*panicky) UnmarshalBinary([]byte) error         { return nil }

// A function that fails, panics or returns something else has changed nothing and drawn no
// number, and the key can be updated afterwards.
func TestFailedFunctionChangesNothing(t *testing.T) {
	a := newTable(1)
	updated(t, a, "c")
	before := entryOf(t, a, "c")
	_, _ = a.Pending(1<<20), a.Changed(10)
	cause := errors.New("no")
	for name, change := range map[string]func(crdt.Origin, any) (any, error){
		"no":                      func(_ crdt.Origin, v any) (any, error) { return v, cause },
		"panic: dear me 5":        func(crdt.Origin, any) (any, error) { panic(fmt.Sprint("dear me ", 5)) },
		"it returned a int for":   func(crdt.Origin, any) (any, error) { return 5, nil },
		"it returned a <nil> for": func(crdt.Origin, any) (any, error) { return nil, nil },
	} {
		_, err := a.Update("c", counterType, change)
		require.ErrorIs(t, err, table.ErrFunction)
		require.ErrorContains(t, err, name)
		require.Equal(t, name == "no", errors.Is(err, cause))
	}
	_, err := a.Update("p", panickyType, func(_ crdt.Origin, v any) (any, error) { return v, nil })
	require.ErrorIs(t, err, table.ErrFunction)
	_, err = a.Update("n", nil, increment)
	require.ErrorIs(t, err, table.ErrValue)
	require.Equal(t, before, entryOf(t, a, "c"))
	require.Empty(t, a.Pending(100))
	require.Empty(t, a.Changed(10))
	c, err := update(a, "c")
	require.NoError(t, err)
	require.Equal(t, [2]uint64{1, 2}, [2]uint64{c.From, c.To})
}

// A function may return from a goroutine that ends: the bucket stays usable.
func TestFunctionThatEndsItsGoroutineFreesBucket(t *testing.T) {
	a, ended := newTable(1), make(chan struct{})
	go func() { // Ends at once; the test waits for it.
		defer close(ended)
		_, _ = a.Update("c", counterType, func(crdt.Origin, any) (any, error) { runtimeGoexit(); return nil, nil })
	}()
	<-ended
	updated(t, a, "c")
}

// An update that changes nothing draws no number and is not spread.
func TestUpdateWithoutChangeIsNone(t *testing.T) {
	a := newTable(1)
	c, err := a.Update("c", counterType, func(_ crdt.Origin, v any) (any, error) { return v, nil })
	require.NoError(t, err)
	require.Equal(t, c.From, c.To)
	require.Zero(t, a.Len())
	updated(t, a, "c")
	c, err = a.Update("c", counterType, func(_ crdt.Origin, v any) (any, error) { return v, nil })
	require.NoError(t, err)
	require.Equal(t, [2]uint64{1, 1}, [2]uint64{c.From, c.To})
	require.Nil(t, c.Delta)
}

// A function that returns something else than a successor of the value takes nothing away.
func TestUpdateNeverTakesAway(t *testing.T) {
	a := newTable(1)
	updated(t, a, "c", "c", "c")
	_, err := a.Update("c", counterType, func(at crdt.Origin, _ any) (any, error) { return crdt.GCounter{}.Add(at, 1), nil })
	require.NoError(t, err)
	require.EqualValues(t, 3, entryOf(t, a, "c").Value.(crdt.GCounter).Value())
}

func add(element string) func(crdt.Origin, any) (any, error) {
	return func(at crdt.Origin, v any) (any, error) { return v.(crdt.ORSet[string]).Add(at, element), nil }
}

// A value over the maximum is refused; what is larger already may shrink. Others'
// updates may add a quarter.
// covers B35.
func TestValueOverMaximumIsRefused(t *testing.T) {
	const most = 4000
	a := table.New(table.Config{Self: 1, MaxValueBytes: most})
	b := newTable(2)
	_, err := a.Update("o", orsetType, add(strings.Repeat("a", most)))
	require.ErrorIs(t, err, table.ErrTooLarge)
	require.Zero(t, a.Len())
	_, err = a.Update("o", orsetType, add(strings.Repeat("a", most-500)))
	require.NoError(t, err)
	for i := 0; err == nil; i++ {
		_, err = a.Update("o", orsetType, add(fmt.Sprint(i)))
	}
	require.ErrorIs(t, err, table.ErrTooLarge)
	size := orsetType.Size(entryOf(t, a, "o").Value)
	require.InDelta(t, most, size, 200)

	_, err = b.Update("o", orsetType, add(strings.Repeat("b", 600)))
	require.NoError(t, err)
	require.Equal(t, table.Applied, joined(t, a, entryOf(t, b, "o")), "up to a quarter more")
	c, err := b.Update("o", orsetType, add(strings.Repeat("c", 600)))
	require.NoError(t, err)
	outcome, err := a.Apply(c)
	require.ErrorIs(t, err, table.ErrTooLarge)
	require.Equal(t, table.Refused, outcome)
	outcome, err = a.Join(entryOf(t, b, "o"))
	require.ErrorIs(t, err, table.ErrTooLarge)
	require.Equal(t, table.Refused, outcome)
	_, err = a.Update("o", orsetType, func(_ crdt.Origin, v any) (any, error) {
		return v.(crdt.ORSet[string]).Remove(strings.Repeat("b", 600)), nil
	})
	require.NoError(t, err, "it shrinks, though it is too large still")
	require.NoError(t, a.Check())
}

// The table is full for local updates at its maximum, for others' a quarter above, and never for
// what gives memory back.
func TestFullTableRefuses(t *testing.T) {
	const most = 100_000
	a := table.New(table.Config{Self: 1, MaxBytes: most})
	keys, n := keysOf(5000), 0
	var err error
	for ; err == nil; n++ {
		_, err = a.Update(keys[n], counterType, increment)
	}
	require.ErrorIs(t, err, table.ErrFull)
	require.InDelta(t, most, a.Bytes(), 300)
	_, err = a.Delete("not there", 1)
	require.ErrorIs(t, err, table.ErrFull)
	updated(t, a, keys[0]) // It takes no more.

	b, outcome := newTable(2), table.Applied
	for i := n; outcome == table.Applied; i++ {
		_, _ = b.Update(keys[i], counterType, increment)
		outcome, err = a.Join(entryOf(t, b, keys[i]))
	}
	require.ErrorIs(t, err, table.ErrFull)
	require.Equal(t, table.Refused, outcome)
	require.InDelta(t, most*5/4, a.Bytes(), 300)
	full := a.Bytes()
	deleted(t, a, keys[0], 1)
	_, ok := a.Expire(keys[1], entryOf(t, a, keys[1]).Versions, 1)
	require.True(t, ok)
	require.Less(t, a.Bytes(), full)
	require.NoError(t, a.Check())
}

// Local updates are handed out as one change a key, in the order in which the keys were
// changed first, up to the limit, and make the same of another table.
func TestPendingUpdatesAreOneChangeEach(t *testing.T) {
	a, b := newTable(1), newTable(2)
	updated(t, a, "s", "c", "o", "s", "w", "w", "gone", "c", "s")
	deleted(t, a, "gone", 1)
	first := a.Pending(1)
	require.Len(t, first, 1)
	require.Equal(t, "s", first[0].Key)
	require.Equal(t, [2]uint64{0, 3}, [2]uint64{first[0].From, first[0].To})
	updated(t, a, "s")
	rest := a.Pending(1 << 20)
	var keys []string
	for _, c := range append(first, rest...) {
		keys = append(keys, c.Key)
		require.Equal(t, c.Key == "w", c.Whole)
		outcome, err := b.Apply(c)
		require.NoError(t, err)
		require.Equal(t, table.Applied, outcome)
		outcome, err = b.Apply(c)
		require.NoError(t, err)
		require.Equal(t, table.Known, outcome)
	}
	require.Equal(t, []string{"s", "c", "o", "w", "s"}, keys)
	require.Empty(t, a.Pending(1<<20))
	joined(t, b, entryOf(t, a, "gone"))
	require.Equal(t, a.Root(), b.Root())
}

// A change of which an earlier one is missing changes nothing; the whole entry does instead.
// covers B32.
func TestGapNeedsWholeEntry(t *testing.T) {
	a, b := newTable(1), newTable(2)
	updated(t, a, "c")
	_ = a.Pending(100)
	updated(t, a, "c")
	c := a.Pending(100)[0]
	outcome, err := b.Apply(c)
	require.NoError(t, err)
	require.Equal(t, table.Gap, outcome)
	require.Zero(t, b.Len())
	require.Equal(t, table.Applied, joined(t, b, entryOf(t, a, "c")))
	outcome, _ = b.Apply(c)
	require.Equal(t, table.Known, outcome)
}

// However many updates of a key wait, few deltas do.
func TestWaitingDeltasAreMerged(t *testing.T) {
	a, b := newTable(1), newTable(2)
	for _, key := range []string{"c", "s", "o", "w"} {
		most := 0
		for range 1000 {
			updated(t, a, key)
			most = max(most, a.WaitingDeltas(key))
		}
		require.Less(t, most, 40)
		c := a.Pending(100)[0]
		require.EqualValues(t, 1000, c.To)
		outcome, err := b.Apply(c)
		require.NoError(t, err)
		require.Equal(t, table.Applied, outcome)
		require.Equal(t, text(t, entryOf(t, a, key)), text(t, entryOf(t, b, key)))
	}
}

// Each key that has changed is told once, in the order of the first change, whoever changed it.
func TestChangedKeysAreToldOnce(t *testing.T) {
	a, b := newTable(1), newTable(2)
	updated(t, b, "c", "c2")
	updated(t, a, "s", "c", "s")
	joined(t, a, entryOf(t, b, "c2"))
	joined(t, a, entryOf(t, b, "c"))
	deleted(t, a, "o", 1)
	require.Equal(t, []string{"s", "c"}, a.Changed(2))
	updated(t, a, "s")
	require.Equal(t, []string{"c2", "o", "s"}, a.Changed(10))
	require.Empty(t, a.Changed(10))
	require.Equal(t, table.Known, joined(t, a, entryOf(t, b, "c")))
	require.Empty(t, a.Changed(10), "nothing was new")

	a.Confirm(1, 1)
	a.Sweep(1, nil)
	updated(t, a, "o") // Back before anybody has heard that it was gone.
	require.Equal(t, []string{"o"}, a.Changed(10))
	require.Empty(t, a.Changed(10))
	for range 100 {
		updated(t, a, "o")
		a.Drop(table.BucketOf("o"))
	}
	require.Equal(t, 1, a.Stats().Changed, "the queue has each key once")
	require.Equal(t, []string{"o"}, a.Changed(10), "it is gone")
	updated(t, a, "o")
	require.Equal(t, []string{"o"}, a.Changed(10), "it is back")
}

// Idle goes round the table in steps and finds the live entries that nobody has changed.
func TestIdleEntriesAreFound(t *testing.T) {
	a := newTable(1)
	keys := keysOf(500)
	a.SetTick(1)
	updatedCounters(t, a, keys)
	deleted(t, a, "x", 1)
	a.SetTick(5)
	updatedCounters(t, a, keys[100:])
	var idle []string
	rounds, next := 0, 0
	for {
		var some []table.Entry
		some, next = a.Idle(5, next, 50)
		for _, e := range some {
			idle = append(idle, e.Key)
		}
		if rounds++; next == 0 {
			break
		}
	}
	require.Greater(t, rounds, 5)
	require.ElementsMatch(t, keys[:100], idle)
	require.True(t, slices.IsSortedFunc(idle, func(x, y string) int { return table.BucketOf(x) - table.BucketOf(y) }))
	_, ok := a.Expire(keys[0], nil, 1)
	require.False(t, ok, "more is there than was seen")
	_, ok = a.Expire("absent", nil, 1)
	require.False(t, ok)
}

func updatedCounters(t *testing.T, to *table.Table, keys []string) {
	t.Helper()
	for _, key := range keys {
		_, err := to.Update(key, counterType, increment)
		require.NoError(t, err)
	}
}

func TestStatsCountWhatIsThere(t *testing.T) {
	a := newTable(1)
	updated(t, a, "c", "s")
	deleted(t, a, "x", 1)
	s := a.Stats()
	require.Equal(t, table.Stats{Entries: 3, Tombstones: 1, Bytes: a.Bytes(), Pending: 2, Changed: 3}, s)
}

// What is said of entries without a table is what a table says and makes.
func TestEntriesAloneAreAsInTables(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, 2)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			w.step(rapid.IntRange(0, 95).Draw(t, "what"))
		}
		for key := range w.made {
			a, ok := w.tables[0].Get(key)
			b, has := w.tables[1].Get(key)
			if !ok || !has {
				continue
			}
			require.Equal(t, w.tables[0].HashEntry(key), table.HashOfEntry(a))
			ab, err := table.Merge(a, b)
			require.NoError(t, err)
			ba, err := table.Merge(b, a)
			require.NoError(t, err)
			require.Equal(t, text(t, ab), text(t, ba))
			again, err := table.Merge(ab, a)
			require.NoError(t, err)
			require.Equal(t, text(t, ab), text(t, again))
			_, err = w.tables[0].Join(b)
			require.NoError(t, err)
			e, _ := w.tables[0].Get(key)
			require.Equal(t, text(t, e), text(t, ab))
			require.Equal(t, table.HashOfEntry(ab), w.tables[0].HashEntry(key))
			require.Positive(t, table.SizeOf(ab))
		}
	})
	_, err := table.Merge(live(table.Versions{{1, 1}}, nil), table.Entry{Key: "other", State: table.Deleted})
	require.ErrorIs(t, err, table.ErrValue)
	require.Zero(t, table.HashOfEntry(table.Entry{}))
}

// Next to each update stands the origin under which it was announced.
func TestOriginOfNextUpdateIsKnown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, 3)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			w.step(rapid.IntRange(0, 99).Draw(t, "what"))
			to, key := w.any(), w.key()
			announced := to.OriginOf(key)
			if c, err := update(to, key); err == nil {
				require.Equal(t, announced, c.Origin)
			}
		}
	})
}

// A cell stays as small as it is: a million of them are usual.
func TestCellIsSmall(t *testing.T) {
	require.LessOrEqual(t, table.CellSize, uintptr(96))
}
