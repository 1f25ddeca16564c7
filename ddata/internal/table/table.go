// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"fmt"
	"math"
	"sync/atomic"

	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/gossip"
)

// The table, and the methods that only read. The others are in update.go (local changes), take.go (entries and changes
// of other replicas), spread.go (what has changed), compare.go (hashes) and sweep.go (dropping); kinds.go calls the
// types.

// Buckets is into how many buckets the keys of a group are divided.
const Buckets = 4096

// MaxKey is the greatest length of a key in bytes.
const MaxKey = 1024

// Config has the owner and the bounds of a table.
type Config struct {
	// Self is the origin of local updates. Its lower 44 bits name the replica (see
	// [Owner]) and must not be zero; the upper ones are the first life, zero if nothing
	// else is known. A replica that starts again with what it has stored needs a higher life
	// than before, unless it has never spread an update before that was stored, and never
	// dropped a bucket: counting the starts will do.
	Self crdt.Origin
	// MaxValueBytes is how large a value may be for a local update, zero for no
	// maximum. What comes from others may make it larger by a quarter, because what was
	// allowed on two replicas has to be joined.
	MaxValueBytes int
	// MaxBytes is how much memory the table may take for local updates, zero for no
	// maximum. What comes from others is refused a quarter above it.
	MaxBytes int64
}

// Table is what one replica holds of one group of keys. What is asked of the entries alone is asked of the
// buckets.
type Table struct {
	buckets

	cfg     Config
	self    crdt.Origin // The owner of the local updates.
	kinds   kindSet
	tombs   tombstoneSums
	journal journal
	tick    atomic.Uint32
	entries atomic.Int64
	bytes   memory
	wipes   atomic.Uint64
}

// memory is how many bytes the entries of a table take.
type memory struct{ atomic.Int64 }

// buckets are the entries of a table, in [Buckets] parts by the hashes of their keys.
type buckets []bucket

// New returns an empty table.
func New(cfg Config) *Table {
	t := &Table{cfg: cfg, self: Owner(cfg.Self), buckets: make(buckets, Buckets)}
	t.kinds.known.Store(&map[string]*kind{})
	for i := range t.buckets {
		t.buckets[i].fresh, t.buckets[i].least = lifeOf(cfg.Self), lifeOf(cfg.Self)
	}
	return t
}

// Get returns the entry of a key, whatever its state, and whether there is one.
func (all buckets) Get(key string) (Entry, bool) {
	b := &all[BucketOf(key)]
	b.mu.Lock()
	c := b.cells[key]
	if c == nil {
		b.mu.Unlock()
		return Entry{}, false
	}
	e := Entry{Key: c.key, Value: c.value, Versions: c.versions, State: c.state}
	if c.tomb != nil {
		e.Floor, e.Stamp = c.tomb.floor, c.tomb.stamp
	}
	if c.kind != nil {
		e.Type = c.kind.typ
	}
	b.mu.Unlock()
	return e, true
}

// ChangedAt returns the tick at which the entry of a key changed last, see
// [Table.SetTick]; 0 if there is none.
func (all buckets) ChangedAt(key string) uint32 {
	b := &all[BucketOf(key)]
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.cells[key]; c != nil {
		return c.tick
	}
	return 0
}

// Len returns how many entries there are, tombstones included.
func (t *Table) Len() int { return int(t.entries.Load()) }

// Bytes returns about how much memory the entries take.
func (t *Table) Bytes() int64 { return t.bytes.Load() }

// Stats are counts of what a table holds.
type Stats struct {
	Entries    int
	Tombstones int
	Bytes      int64
	Pending    int   // Keys with local updates that were not spread yet, at most.
	Changed    int   // Keys that Changed has not returned yet, at most.
	Faults     int64 // Panics of types over values that came from elsewhere or were retired.
}

// Stats returns the counts.
func (t *Table) Stats() Stats {
	s := Stats{
		Entries: t.Len(), Tombstones: t.tombs.upTo(^uint64(0)).count, Bytes: t.Bytes(), Faults: t.kinds.faults.Load(),
	}
	t.journal.mu.Lock()
	defer t.journal.mu.Unlock()
	s.Pending, s.Changed = t.journal.pending.len(), t.journal.changed.len()
	return s
}

// checkKey returns an error for a key that is not valid.
func checkKey(key string) error {
	switch {
	case key == "":
		return fmt.Errorf("%w: it is empty", ErrKey)
	case len(key) > MaxKey:
		return fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrKey, len(key), MaxKey)
	case !gossip.IsName(key):
		return fmt.Errorf("%w: %q is not UTF-8, or has characters that do not print", ErrKey, key)
	}
	return nil
}

// quarterMore returns the maximum for entries and changes of other replicas, by that for local updates.
func quarterMore[N int | int64](n N) N { return n + n/4 }

// tooLarge returns an error if a value has grown to a size above a maximum.
func tooLarge(before, size, maximum int) error {
	if maximum == 0 || size <= maximum || size <= before {
		return nil
	}
	return fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrTooLarge, size, maximum)
}

// reserve counts bytes that the table is about to take or give back, and returns an
// error, and has counted nothing, if it would grow above a maximum.
func (m *memory) reserve(diff, maximum int64) error {
	if diff == 0 {
		return nil
	}
	if now := m.Add(diff); diff > 0 && maximum > 0 && now > maximum {
		m.Add(-diff)
		return fmt.Errorf("%w: %d bytes, %d more were needed, at most %d are allowed", ErrFull, now-diff, diff, maximum)
	}
	return nil
}

// set puts an image under a key, whose cell is c, nil for none. The bytes are reserved,
// the bucket is locked. The image of no state drops the key.
func (t *Table) set(b *bucket, keyHash uint64, key string, c *cell, next *image) *cell {
	before := c.image()
	b.add(keyHash, &before, -1)
	b.add(keyHash, next, 1)
	if before.state > Live {
		t.tombs.add(before.stamp, keyHash, -1)
	}
	if next.state > Live {
		t.tombs.add(next.stamp, keyHash, 1)
	}
	if next.state == 0 {
		t.drop(b, c)
		return nil
	}
	if c == nil {
		c = t.insert(b, key)
	}
	if c.pending != nil && next.state != Live {
		c.pending.dead, c.pending = true, nil
	}
	c.tomb = c.tomb.next(&before, next)
	c.state, c.kind, c.value, c.versions = next.state, next.kind, next.value, next.versions
	c.size, c.guesses = sizeOf(next), next.guesses
	t.touch(c)
	return c
}

// sizeOf returns the size of the value as it is kept in a cell.
func sizeOf(m *image) uint32 { return uint32(min(m.size, math.MaxUint32)) }

// next returns the tomb of a cell of which the image changes.
func (t *tombstone) next(before, next *image) *tombstone {
	if next.state == Live && len(next.floor) == 0 {
		return nil
	}
	n := &tombstone{floor: next.floor, stamp: next.stamp}
	// A tombstone that has become another one is not the one that was confirmed.
	if t != nil && before.state == next.state && before.floor.Equal(next.floor) {
		n.mark = t.mark
	}
	return n
}

// insert makes the cell of a key that is not there.
func (t *Table) insert(b *bucket, key string) *cell {
	c := &cell{key: key}
	b.put(c)
	c.changed = b.forget(key)
	t.entries.Add(1)
	return c
}

// drop removes a cell. Its terms are not in the sums any more.
func (t *Table) drop(b *bucket, c *cell) {
	b.delete(c.key)
	if c.pending != nil {
		c.pending.dead, c.pending = true, nil
	}
	if b.gone == nil {
		b.gone = make(map[string]struct{})
	}
	b.gone[c.key] = struct{}{}
	if !c.changed {
		t.journal.pushChanged(c.key)
	}
	t.entries.Add(-1)
}

// touch remembers that a cell has changed.
func (t *Table) touch(c *cell) {
	c.rev++
	c.tick = t.tick.Load()
	if !c.changed {
		c.changed = true
		t.journal.pushChanged(c.key)
	}
}
