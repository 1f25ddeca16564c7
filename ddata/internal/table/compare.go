// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"cmp"
	"slices"
)

// Root returns the hash of the table: the sum of the hashes of all buckets.
func (all buckets) Root() uint64 { return all.HashOf(func(int) bool { return true }) }

// Hash returns the hash of a bucket: the sum of the hashes of its entries.
func (all buckets) Hash(bucket int) uint64 {
	b := &all[bucket]
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.hash
}

// HashOf returns the sum of the hashes of some buckets. It looks at all of them, which takes
// some 50 µs.
func (all buckets) HashOf(in func(bucket int) bool) uint64 {
	var sum uint64
	for i := range all {
		if in(i) {
			sum += all.Hash(i)
		}
	}
	return sum
}

// HashEntry returns the hash of the entry of a key, zero for none.
func (all buckets) HashEntry(key string) uint64 {
	keyHash := HashKey(key)
	b := &all[bucketOf(keyHash)]
	b.mu.Lock()
	m := b.cells[key].image()
	b.mu.Unlock()
	return m.hash(keyHash)
}

// Summaries returns a summary of each entry of a bucket, sorted by key.
func (all buckets) Summaries(bucket int) []Summary {
	b := &all[bucket]
	b.mu.Lock()
	some := make([]Summary, 0, len(b.cells))
	for key, c := range b.cells {
		m, keyHash := c.image(), HashKey(key)
		some = append(some, Summary{Key: key, KeyHash: keyHash, Hash: m.hash(keyHash)})
	}
	b.mu.Unlock()
	slices.SortFunc(some, func(a, b Summary) int { return cmp.Compare(a.Key, b.Key) })
	return some
}

// SetTick sets the time, in a unit of the caller. Entries that change from now on have changed at this tick, by which
// [Table.Idle] finds those that have not changed for long.
func (t *Table) SetTick(now uint32) { t.tick.Store(now) }

// Idle looks through the buckets from number from on, until it has seen as many entries as enough
// says. It returns the live entries that changed last at an earlier tick than before, sorted by bucket
// and key, and the bucket with which the next call goes on, zero after the last.
func (all buckets) Idle(before uint32, from, enough int) (idle []Entry, next int) {
	for seen := 0; from < Buckets; from++ {
		if seen >= enough {
			return idle, from
		}
		some, n := all[from].idle(before)
		idle = append(idle, some...)
		seen += n
	}
	return idle, 0
}

// idle returns the idle entries of a bucket, and how many it has.
func (b *bucket) idle(before uint32) (idle []Entry, seen int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key, c := range b.cells {
		if c.state == Live && c.tick < before {
			m := c.image()
			idle = append(idle, m.entry(key))
		}
	}
	slices.SortFunc(idle, func(a, b Entry) int { return cmp.Compare(a.Key, b.Key) })
	return idle, len(b.cells)
}
