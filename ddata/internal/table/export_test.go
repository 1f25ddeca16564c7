// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"fmt"
	"slices"
	"unsafe"
)

// LifeOf returns the origin of a life of an owner.
var LifeOf = originOf

// Check counts everything again that a table keeps up to date, and says what is wrong.
func (t *Table) Check() error {
	var entries, size int64
	sums := map[uint64]tombstoneSum{}
	for i := range t.buckets {
		b := &t.buckets[i]
		n, bytes, err := t.checkBucket(i, b, sums)
		if err != nil {
			return fmt.Errorf("bucket %d: %w", i, err)
		}
		entries, size = entries+n, size+bytes
	}
	if entries != t.entries.Load() || size != t.bytes.Load() {
		return fmt.Errorf("%d entries, %d bytes; counted %d, %d", t.entries.Load(), t.bytes.Load(), entries, size)
	}
	if fmt.Sprint(sums) != fmt.Sprint(mapOf(t.tombs.sums)) {
		return fmt.Errorf("tombstones %v, counted %v", t.tombs.sums, sums)
	}
	return nil
}

func mapOf(m map[uint64]tombstoneSum) map[uint64]tombstoneSum {
	if m == nil {
		return map[uint64]tombstoneSum{}
	}
	return m
}

func (t *Table) checkBucket(index int, b *bucket, sums map[uint64]tombstoneSum) (entries, size int64, err error) {
	var fresh bucket
	for key, c := range b.cells {
		m, keyHash := c.image(), HashKey(key)
		if BucketOf(key) != index || key != c.key {
			return 0, 0, fmt.Errorf("key %q is in the wrong place", key)
		}
		if !m.versions.valid() || !m.floor.valid() || (m.state == Live) != (len(m.versions) > 0) ||
			(m.state == Live) != (m.value != nil) || m.state == Live && m.floor.Covers(m.versions) {
			return 0, 0, fmt.Errorf("key %q: %+v", key, m)
		}
		if c.pending != nil && (c.pending.dead || m.state != Live) {
			return 0, 0, fmt.Errorf("key %q: pending updates of a key that is %v", key, m.state)
		}
		if m.state > Live {
			s := sums[m.stamp]
			sums[m.stamp] = tombstoneSum{s.count + 1, s.sum + tombTerm(keyHash)}
		}
		fresh.add(keyHash, &m, 1)
		entries++
		size += m.bytes(key)
	}
	if fresh.hash != b.hash || fresh.tombs != b.tombs || !slices.Equal(fresh.owners, b.owners) {
		return 0, 0, fmt.Errorf("%x %d %v; counted %x %d %v", b.hash, b.tombs, b.owners, fresh.hash, fresh.tombs, fresh.owners)
	}
	return entries, size, nil
}

// Recounted returns the hash of the table, counted again.
func (t *Table) Recounted() uint64 {
	var sum uint64
	for i := range t.buckets {
		for key, c := range t.buckets[i].cells {
			m := c.image()
			sum += m.hash(HashKey(key))
		}
	}
	return sum
}

// WaitingDeltas returns how many deltas of the local updates of a key wait to be spread.
func (t *Table) WaitingDeltas(key string) int {
	b := &t.buckets[BucketOf(key)]
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.cells[key].pending.deltas)
}

// CellSize is how many bytes a cell takes beside what it points to.
const CellSize = unsafe.Sizeof(cell{})
