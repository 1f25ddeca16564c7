// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package table_test

import (
	"fmt"
	"math"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/internal/table"
)

// keysOf returns keys of 16 bytes.
func keysOf(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("counter-%08d", i)
	}
	return keys
}

func increment(at crdt.Origin, v any) (any, error) { return v.(crdt.GCounter).Add(at, 1), nil }

// Local updates of 1,000 counters, while the machine takes them out every now and then.
func BenchmarkUpdateCounter(b *testing.B) {
	keys := keysOf(1000)
	for _, goroutines := range []int{1, 4} {
		b.Run(fmt.Sprintf("goroutines=%d", goroutines), func(b *testing.B) {
			t := newTable(1)
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for g := range goroutines {
				wg.Go(func() {
					for i := g; i < b.N; i += goroutines {
						if _, err := t.Update(keys[i%len(keys)], counterType, increment); err != nil {
							b.Error(err)
							return
						}
						if i%20_000 == 0 { // At a million a second: each 20 ms.
							for len(t.Pending(1<<20)) > 0 {
								_ = t.Changed(1 << 16)
							}
						}
					}
				})
			}
			wg.Wait()
		})
	}
}

// A counter key, everything included, when a million are there and have been spread.
func BenchmarkMemoryOfCounter(b *testing.B) {
	const n = 1_000_000
	for b.Loop() {
		before := liveHeap()
		t := newTable(1)
		for i := range n {
			if _, err := t.Update(fmt.Sprintf("counter-%08d", i), counterType, increment); err != nil {
				b.Fatal(err)
			}
		}
		waiting := liveHeap()
		require.Len(b, t.Pending(math.MaxInt), n)
		require.Len(b, t.Changed(math.MaxInt), n)
		b.ReportMetric(float64(liveHeap()-before)/n, "B/key")
		b.ReportMetric(float64(waiting-before)/n, "B/waiting-key")
		b.ReportMetric(float64(t.Bytes())/n, "B/key-estimated")
		runtime.KeepAlive(t)
	}
}

func liveHeap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func BenchmarkGet(b *testing.B) {
	for _, n := range []int{1000, 1_000_000} {
		keys := keysOf(n)
		t := newTable(1)
		for _, key := range keys {
			if _, err := t.Update(key, counterType, increment); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if i += 7919; i >= n {
					i %= n
				}
				if _, ok := t.Get(keys[i]); !ok {
					b.Fatal("not there")
				}
			}
		})
	}
}

// What a round costs that finds nothing, and what it takes to compare and to take in.
func BenchmarkCompare(b *testing.B) {
	const n = 1_000_000
	t := newTable(1)
	for _, key := range keysOf(n) {
		if _, err := t.Update(key, counterType, increment); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("root", func(b *testing.B) {
		for b.Loop() {
			t.Root()
		}
	})
	b.Run("origins", func(b *testing.B) {
		for b.Loop() {
			t.OriginHash(t.Origins())
		}
	})
	b.Run("summaries", func(b *testing.B) {
		i := 0
		for b.Loop() {
			i = (i + 1) % table.Buckets
			t.Summaries(i)
		}
	})
	b.Run("confirm", func(b *testing.B) {
		for b.Loop() {
			t.Confirm(1, 1)
		}
	})
}

// A joining replica takes in the entries of another.
func BenchmarkJoin(b *testing.B) {
	const n = 100_000
	from := newTable(1)
	keys := keysOf(n)
	for _, key := range keys {
		if _, err := from.Update(key, counterType, increment); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		to := newTable(2)
		for _, key := range keys {
			e, _ := from.Get(key)
			if outcome, err := to.Join(e); outcome != table.Applied {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/entry")
}

// Elements added to one set, with all deltas waiting.
func BenchmarkAddToSet(b *testing.B) {
	t := newTable(1)
	i := 0
	for b.Loop() {
		if i++; i%20_000 == 0 {
			t.Pending(1 << 30)
		}
		_, err := t.Update("o", orsetType, func(at crdt.Origin, v any) (any, error) {
			return v.(crdt.ORSet[string]).Add(at, keysOf1(i)), nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

func keysOf1(i int) string { return fmt.Sprintf("element-%08d", i%10_000) }
