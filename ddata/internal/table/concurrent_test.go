// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package table_test

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/internal/table"
)

func runtimeGoexit() { runtime.Goexit() }

// operation is an update or a read of a counter, between two moments.
type operation struct {
	from, to int64
	number   uint64
}

// Goroutines update and read counters while the machine takes out changes, and takes in those of
// another replica: each counter is linearizable. Updates have the numbers of their
// order, which agrees with time; a read sees every update that has ended before, and
// none that begins after.
func TestConcurrentUpdatesAreLinearizable(t *testing.T) {
	const goroutines, each = 4, 600
	keys := []string{"c", "c2", "c3"}
	a, b := newTable(1), newTable(2)
	var clock atomic.Int64
	updates, reads := make([][]operation, len(keys)*goroutines), make([][]operation, len(keys)*goroutines)
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range each {
				k := i % len(keys)
				op := operation{from: clock.Add(1)}
				c, err := a.Update(keys[k], counterType, increment)
				if err != nil {
					t.Error(err)
					return
				}
				op.to, op.number = clock.Add(1), c.To
				updates[g*len(keys)+k] = append(updates[g*len(keys)+k], op)
				op = operation{from: clock.Add(1)}
				e, _ := a.Get(keys[k])
				op.to, op.number = clock.Add(1), e.Versions.Of(1)
				reads[g*len(keys)+k] = append(reads[g*len(keys)+k], op)
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }() // Ends with the updates; the test waits for it.
	exchangeUntil(t, done, a, b, keys)
	for k, key := range keys {
		var u, r []operation
		for g := range goroutines {
			u, r = append(u, updates[g*len(keys)+k]...), append(r, reads[g*len(keys)+k]...)
		}
		checkCounter(t, u, r)
		e := entryOf(t, a, key)
		require.Len(t, u, int(e.Versions.Of(1)))
		require.Equal(t, e.Versions.Of(1)+e.Versions.Of(2), e.Value.(crdt.GCounter).Value())
	}
	require.NoError(t, a.Check())
	require.Equal(t, a.Root(), b.Root())
}

// exchangeUntil is the machine: it exchanges changes with another replica, which updates
// the counters too, until the channel is closed and once more.
func exchangeUntil(t *testing.T, done <-chan struct{}, a, b *table.Table, keys []string) {
	t.Helper()
	for last := false; !last; {
		select {
		case <-done:
			last = true
		default:
			updated(t, b, keys...)
		}
		for _, pair := range [][2]*table.Table{{a, b}, {b, a}} {
			for _, c := range pair[0].Pending(1 << 20) {
				outcome, err := pair[1].Apply(c)
				require.NoError(t, err)
				require.Equal(t, table.Applied, outcome)
			}
		}
		_ = a.Changed(1000)
		_, _ = a.Root(), a.Stats()
	}
}

// checkCounter checks the operations of one counter.
func checkCounter(t *testing.T, updates, reads []operation) {
	t.Helper()
	slices.SortFunc(updates, func(a, b operation) int { return cmp.Compare(a.number, b.number) })
	var begun int64
	for i, u := range updates {
		require.EqualValues(t, i+1, u.number, "each number once")
		require.Greater(t, u.to, begun, "an update was numbered before one that had ended")
		begun = max(begun, u.from)
	}
	for _, r := range reads {
		var least, most uint64
		for _, u := range updates {
			if u.to < r.from {
				least++
			}
			if u.from < r.to {
				most++
			}
		}
		require.True(t, least <= r.number && r.number <= most, "read %d of %d to %d", r.number, least, most)
	}
}

// While a function runs, the machine lets go of what it has seen, without waiting; then the
// function has to run again. Or others' updates come, which are joined.
func TestMachineNeverWaitsForFunction(t *testing.T) {
	for name, test := range map[string]struct {
		meanwhile func(a *table.Table, other table.Entry)
		runs      int
		value     int // What the counter says at the end; 2 were there, and the function adds 1.
		err       error
	}{
		"nothing": {func(*table.Table, table.Entry) {}, 1, 3, nil},
		"joined":  {func(a *table.Table, other table.Entry) { _, _ = a.Join(other) }, 1, 4, nil},
		"wiped":   {func(a *table.Table, _ table.Entry) { a.Wipe() }, 2, 1, nil},
		"dropped": {func(a *table.Table, _ table.Entry) { a.Drop(table.BucketOf("c")) }, 2, 1, nil},
		"dropped and back": {func(a *table.Table, other table.Entry) {
			e, _ := a.Get("c")
			a.Drop(table.BucketOf("c"))
			_, _ = a.Join(e)
			_, _ = a.Join(other)
		}, 2, 4, nil},
		"expired": {func(a *table.Table, _ table.Entry) {
			e, _ := a.Get("c")
			a.Expire("c", e.Versions, 1)
		}, 2, 1, nil},
		"expired and swept": {func(a *table.Table, _ table.Entry) {
			e, _ := a.Get("c")
			a.Expire("c", e.Versions, 1)
			a.Confirm(2, 2)
			a.Sweep(2, nil)
		}, 2, 1, nil},
		"retired": {func(a *table.Table, other table.Entry) {
			_, _ = a.Join(other)
			a.Sweep(2, []crdt.Origin{2})
		}, 1, 4, nil},
		"deleted": {func(a *table.Table, _ table.Entry) { _, _ = a.Delete("c", 1) }, 1, 0, table.ErrDeleted},
		"deleted and swept": {func(a *table.Table, _ table.Entry) {
			_, _ = a.Delete("c", 1)
			a.Confirm(2, 2)
			a.Sweep(2, nil)
		}, 2, 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := newTable(1), newTable(2)
			updated(t, a, "c", "c")
			updated(t, b, "c")
			running, resume, runs := make(chan struct{}), make(chan struct{}), 0
			result := make(chan error, 1)
			go func() { // Ends with the update; the test waits for its result.
				_, err := a.Update("c", counterType, func(at crdt.Origin, v any) (any, error) {
					if runs++; runs == 1 {
						close(running)
						<-resume
					}
					return v.(crdt.GCounter).Add(at, 1), nil
				})
				result <- err
			}()
			<-running
			test.meanwhile(a, entryOf(t, b, "c")) // Would never return if it waited.
			close(resume)
			require.ErrorIs(t, <-result, test.err)
			require.Equal(t, test.runs, runs)
			require.NoError(t, a.Check())
			if e := entryOf(t, a, "c"); test.err == nil {
				require.EqualValues(t, test.value, e.Value.(crdt.GCounter).Value())
			}
		})
	}
}

// What the function has seen may be gone though its own replica has counted nothing yet.
func TestFunctionRunsAgainWhenOthersValueExpired(t *testing.T) {
	a, b := newTable(1), newTable(2)
	updated(t, b, "c")
	joined(t, a, entryOf(t, b, "c"))
	var seen []uint64
	_, err := a.Update("c", counterType, func(at crdt.Origin, v any) (any, error) {
		seen = append(seen, v.(crdt.GCounter).Value())
		if len(seen) == 1 { // As the machine would on its goroutine.
			_, ok := a.Expire("c", entryOf(t, a, "c").Versions, 1)
			require.True(t, ok)
		}
		return v.(crdt.GCounter).Add(at, 1), nil
	})
	require.NoError(t, err)
	require.Equal(t, []uint64{1, 0}, seen)
}

// Everything that may go on at the same time does, for the race detector; at the end the sums
// are true.
func TestEverythingAtOnce(t *testing.T) {
	a, b := newTable(1), newTable(2)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for g := range 3 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				key := fmt.Sprintf("%c%d", "cso"[i%3], i%17)
				if i%50 == g {
					_, _ = a.Delete(key, uint64(i%5))
				}
				_, _ = a.Update(key, typeOf(key), func(at crdt.Origin, v any) (any, error) {
					switch v := v.(type) {
					case crdt.GCounter:
						return v.Add(at, 1), nil
					case crdt.GSet[string]:
						return v.Add(fmt.Sprint(i % 100)), nil
					default:
						return v.(crdt.ORSet[string]).Add(at, fmt.Sprint(i%100)), nil
					}
				})
				_, _ = a.Get(key)
				_, _ = a.Len(), a.Bytes()
			}
		})
	}
	for round := range uint64(60) {
		for _, c := range a.Pending(1 << 16) {
			if outcome, _ := b.Apply(c); outcome == table.Gap {
				e, _ := a.Get(c.Key)
				_, _ = b.Join(e)
			}
		}
		for _, key := range a.Changed(100) {
			if e, ok := a.Get(key); ok && round%4 == 0 {
				a.Expire(key, e.Versions, round)
			}
			if e, ok := b.Get(key); ok {
				_, _ = a.Join(e)
			}
		}
		a.Confirm(round+1, 3)
		a.Sweep(round+1, []crdt.Origin{crdt.Origin(round % 3)})
		a.Drop(int(round) * 7 % table.Buckets)
		if round == 30 {
			a.Wipe()
		}
	}
	close(stop)
	wg.Wait()
	require.NoError(t, a.Check())
}
