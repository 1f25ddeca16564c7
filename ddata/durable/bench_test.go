// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package durable_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata/durable"
	"github.com/quorate/quorate/ddata/store"
)

const valueBytes = 100

// filled returns a store that holds a number of records with values of 100 bytes.
func filled(b *testing.B, records int) *durable.Store {
	b.Helper()
	s, err := durable.Open(b.Context(), config(b.TempDir()))
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, s.Close()) })
	const each = 10_000
	for from := 0; from < records; from += each {
		batch := store.Batch{Group: "all"}
		for i := from; i < min(from+each, records); i++ {
			batch.Put = append(batch.Put, store.Record{Key: benchKey(i), Value: make([]byte, valueBytes)})
		}
		require.NoError(b, s.Apply(b.Context(), []store.Batch{batch}))
	}
	return s
}

// benchKey spreads the keys, so that neighbours in time are none in the order of keys.
func benchKey(i int) string { return fmt.Sprintf("user/%08x", uint32(i)*2654435761) }

// BenchmarkApply is what 64 writers who share a sync wait for, among many other keys.
func BenchmarkApply(b *testing.B) {
	const writers = 64
	for _, records := range []int{0, 1_000_000} {
		b.Run(fmt.Sprintf("records=%d", records), func(b *testing.B) {
			s := filled(b, records)
			rng := rand.New(rand.NewPCG(1, 2))
			batches := make([]store.Batch, writers)
			var took []time.Duration
			b.ReportAllocs()
			for b.Loop() {
				for i := range batches {
					batches[i] = store.Batch{Group: "all", Put: []store.Record{{Key: benchKey(rng.IntN(max(records, 1000))), Value: make([]byte, valueBytes)}}}
				}
				began := time.Now()
				if err := s.Apply(b.Context(), batches); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
			b.ReportMetric(float64(b.N*writers)/b.Elapsed().Seconds(), "writes/s")
		})
	}
}

// BenchmarkSync is the floor: the same bytes, appended to a file and synced.
func BenchmarkSync(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "floor"))
	require.NoError(b, err)
	defer func() { _ = f.Close() }()
	text := make([]byte, 64*(valueBytes+20))
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		_, err := f.Write(text)
		require.NoError(b, err)
		require.NoError(b, f.Sync())
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
	b.ReportMetric(float64(b.N*64)/b.Elapsed().Seconds(), "writes/s")
}

// BenchmarkOpen is a start with a million records, and the loading of them.
func BenchmarkOpen(b *testing.B) {
	const records = 1_000_000
	s := filled(b, records)
	c := config(s.Dir())
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			require.NoError(b, s.Close())
			var err error
			s, err = durable.Open(b.Context(), c)
			require.NoError(b, err)
		}
	})
	b.Run("load", func(b *testing.B) {
		for b.Loop() {
			count := 0
			require.NoError(b, s.Load(b.Context(), "all", func([]byte) error { return nil }, func(store.Record) error { count++; return nil }))
			require.Equal(b, records, count)
		}
	})
	require.NoError(b, s.Close())
}
