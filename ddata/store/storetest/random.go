// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/quorate/quorate/ddata/store"
)

// seeds is how many histories of random changes the suite runs.
const seeds = 8

// Model is what a store should hold: the outcome of the batches that were applied. It is
// for tests that make changes of their own. The zero value is not ready; make one with
// [NewModel].
type Model struct{ groups map[string]*contents }

// NewModel returns the model of an empty disk.
func NewModel() *Model { return &Model{groups: map[string]*contents{}} }

// Apply changes the model as a store would.
func (m *Model) Apply(batches []store.Batch) {
	for _, b := range batches {
		g := m.groups[b.Group]
		if g == nil {
			g = &contents{meta: none, records: map[string]string{}}
			m.groups[b.Group] = g
		}
		if b.Wipe {
			clear(g.records)
		}
		if b.Meta != nil {
			g.meta = string(b.Meta)
		}
		for _, r := range b.Put {
			g.records[r.Key] = string(r.Value)
		}
		for _, key := range b.Drop {
			delete(g.records, key)
		}
	}
}

// Check reports every group in which a store differs from the model.
func (m *Model) Check(t testing.TB, s store.Store) {
	t.Helper()
	if got := len(s.Groups()); got != len(m.groups) {
		t.Errorf("there are %d groups, want %d", got, len(m.groups))
	}
	for name, g := range m.groups {
		expect(t, s, name, g.meta, g.records)
	}
}

// RandomBatches draws changes of a few groups with a few keys, so that they meet.
func RandomBatches(rng *rand.Rand) []store.Batch {
	batches := make([]store.Batch, 1+rng.IntN(4))
	for i := range batches {
		b := &batches[i]
		b.Group = fmt.Sprint("group", rng.IntN(3))
		if rng.IntN(3) == 0 {
			b.Meta = fmt.Appendf([]byte{}, "%d", rng.Uint64())[:rng.IntN(2)]
		}
		b.Wipe = rng.IntN(12) == 0
		b.Aside = b.Wipe && rng.IntN(4) == 0
		for range rng.IntN(6) {
			b.Put = append(b.Put, store.Record{Key: key(rng), Value: make([]byte, rng.IntN(400))})
		}
		for _, r := range b.Put {
			for j := range r.Value {
				r.Value[j] = byte(rng.Uint32())
			}
		}
		for range rng.IntN(3) {
			b.Drop = append(b.Drop, key(rng))
		}
	}
	return batches
}

func key(rng *rand.Rand) string { return fmt.Sprint("key", rng.IntN(20)) }

func checkRandom(t *testing.T, newDisk func(testing.TB) Open) {
	t.Helper()
	for seed := range uint64(seeds) {
		rng := rand.New(rand.NewPCG(seed, 1))
		disk, model := newDisk(t), NewModel()
		s := open(t, disk)
		for range 30 {
			batches := RandomBatches(rng)
			apply(t, s, batches...)
			model.Apply(batches)
			if rng.IntN(6) == 0 {
				s = reopen(t, disk, s)
				model.Check(t, s)
			}
		}
		model.Check(t, s)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
		_ = s.Close() // The next seed has a disk of its own.
	}
}
