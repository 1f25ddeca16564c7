// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"maps"
	"slices"

	"github.com/quorate/quorate/ddata/crdt"
)

// What a table drops: tombstones, once all replicas have confirmed that they hold the same (Tombstones, Confirm,
// Sweep); the updates of owners that are gone, which are folded (Origins, OriginHash, Sweep); and everything, or a
// bucket, when this replica is no home of it any more (Wipe, Drop). Afterwards updates are counted under a life that
// was never used, so that no floor and no copy that is left somewhere covers new ones.

// Tombstones returns how many tombstones there are with a stamp of at most upTo, and a
// hash of their keys.
func (t *Table) Tombstones(upTo uint64) (count int, hash uint64) {
	s := t.tombs.upTo(upTo)
	return s.count, s.sum
}

// Confirm marks the tombstones with a stamp of at most upTo for the sweep of a generation,
// which is not zero, and returns their hash, as Tombstones. Only the marks of the last call
// count. It looks at the buckets that have tombstones.
func (t *Table) Confirm(gen, upTo uint64) (hash uint64) {
	for i := range t.buckets {
		hash += t.buckets[i].confirm(gen, upTo)
	}
	t.tombs.mu.Lock()
	defer t.tombs.mu.Unlock()
	t.tombs.confirmed.gen, t.tombs.confirmed.hash = gen, hash
	return hash
}

func (b *bucket) confirm(gen, upTo uint64) (hash uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tombs == 0 {
		return 0
	}
	for key, c := range b.cells {
		if c.state == Live {
			continue
		}
		if c.tomb.mark = 0; c.tomb.stamp <= upTo {
			c.tomb.mark = gen
			hash += tombTerm(HashKey(key))
		}
	}
	return hash
}

// Confirmed reports whether the last call of Confirm was for this generation, and returned this hash.
func (t *Table) Confirmed(gen, hash uint64) bool {
	t.tombs.mu.Lock()
	defer t.tombs.mu.Unlock()
	return t.tombs.confirmed.gen == gen && t.tombs.confirmed.hash == hash
}

// Sweep drops the tombstones that were marked for a generation, and have stayed what they
// were, and folds what the retired owners have contributed into origin zero. It may
// be called with a generation for which nothing is marked, to fold only. It looks at
// the buckets that have tombstones or updates of retired owners.
func (t *Table) Sweep(gen uint64, retired []crdt.Origin) {
	gone := make(map[crdt.Origin]bool, len(retired))
	for _, o := range retired {
		if Owner(o) != 0 {
			gone[Owner(o)] = true
		}
	}
	isGone := func(o crdt.Origin) bool { return gone[Owner(o)] }
	for i := range t.buckets {
		t.sweep(&t.buckets[i], gen, isGone)
	}
}

func (t *Table) sweep(b *bucket, gen uint64, gone func(crdt.Origin) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fold := slices.ContainsFunc(b.owners, func(s ownerSum) bool { return gone(s.owner) })
	if b.tombs == 0 && !fold {
		return
	}
	for _, key := range b.keys() {
		c := b.cells[key]
		switch {
		case c.state != Live && gen != 0 && c.tomb.mark == gen:
			t.dropTombstone(b, c)
		case fold:
			t.fold(b, c, gone)
		}
	}
}

// dropTombstone drops the cell of a tombstone.
func (t *Table) dropTombstone(b *bucket, c *cell) {
	// What expired was counted under lives of which a floor may survive elsewhere.
	if life, _, has := lastLife(t.self, c.floor()); has {
		b.fresh = max(b.fresh, life+1)
	}
	t.remove(b, c)
}

// remove drops a cell with what it takes.
func (t *Table) remove(b *bucket, c *cell) {
	before := c.image()
	// Nothing is needed, only given back.
	_ = t.replace(b, HashKey(c.key), c.key, c, &before, &image{}, 0)
}

// fold retires owners in one cell. A type that panics keeps its value as it is.
func (t *Table) fold(b *bucket, c *cell, gone func(crdt.Origin) bool) {
	before := c.image()
	next, ok := before.folded(gone)
	if !ok {
		return
	}
	_ = t.kinds.retire(c.kind.typ, &next, c.pending, gone)
	tick := c.tick
	_ = t.replace(b, HashKey(c.key), c.key, c, &before, &next, 0)
	c.tick = tick // Nobody has used the key.
}

// Origins returns the owners of which any entry holds an update or a floor, sorted, without
// zero. It looks at all buckets, which takes some 100 µs.
func (all buckets) Origins() []crdt.Origin {
	owners := make(map[crdt.Origin]bool)
	for i := range all {
		b := &all[i]
		b.mu.Lock()
		for _, s := range b.owners {
			owners[s.owner] = true
		}
		b.mu.Unlock()
	}
	return slices.Sorted(maps.Keys(owners))
}

// OriginHash returns a hash of the updates of some owners: two replicas that hold the same updates of them have equal
// ones. It looks at a sum in each bucket, which takes some 100 µs.
func (all buckets) OriginHash(owners []crdt.Origin) uint64 {
	asked := make(map[crdt.Origin]bool, len(owners))
	for _, o := range owners {
		asked[Owner(o)] = true
	}
	var hash uint64
	for i := range all {
		b := &all[i]
		b.mu.Lock()
		for _, s := range b.owners {
			if asked[s.owner] {
				hash += s.sum
			}
		}
		b.mu.Unlock()
	}
	return hash
}

// Wipes returns how often the table was made empty. It rises before the first entry is dropped: if a key is gone and
// the number is unchanged, the key was not dropped by that.
func (t *Table) Wipes() uint64 { return t.wipes.Load() }

// Wipe makes the table empty. Nothing of what was there is returned by Pending or Changed.
func (t *Table) Wipe() {
	t.wipes.Add(1)
	for i := range t.buckets {
		b := &t.buckets[i]
		b.mu.Lock()
		t.empty(b)
		b.gone = nil
		b.mu.Unlock()
	}
}

// Drop forgets the entries of a bucket, of which this replica is no home any more. Changed
// returns their keys; their pending updates are lost.
func (t *Table) Drop(bucket int) {
	b := &t.buckets[bucket]
	b.mu.Lock()
	defer b.mu.Unlock()
	t.empty(b)
}

// empty drops all cells of a bucket.
func (t *Table) empty(b *bucket) {
	last := max(b.fresh, b.least, b.used)
	for _, key := range b.keys() {
		c := b.cells[key]
		for _, v := range []Versions{c.versions, c.floor()} {
			if life, _, has := lastLife(t.self, v); has {
				last = max(last, life)
			}
		}
		t.remove(b, c)
	}
	b.fresh, b.least = last+1, last+1
}

// BucketSum are the hashes of a bucket for a sweep: that of its marked tombstones, and that of its updates of some
// owners.
type BucketSum struct {
	Bucket         uint16
	Tombs, Origins uint64
}

// Sums returns the sums of the buckets that have any, and how many tombstones are marked for
// the sweep of a generation. It looks at all buckets.
func (all buckets) Sums(gen uint64, owners []crdt.Origin) (sums []BucketSum, marked uint64) {
	asked := make(map[crdt.Origin]bool, len(owners))
	for _, o := range owners {
		asked[o] = true
	}
	for i := range all {
		sum, n := all[i].sweepSums(gen, asked)
		if sum.Bucket = uint16(i); sum.Tombs != 0 || sum.Origins != 0 {
			sums = append(sums, sum)
		}
		marked += n
	}
	return sums, marked
}

// sweepSums returns the sums of the bucket over what some origins have, and over the tombstones that are
// marked for a generation, of which there are marked.
func (b *bucket) sweepSums(gen uint64, owners map[crdt.Origin]bool) (sum BucketSum, marked uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.owners {
		if owners[s.owner] {
			sum.Origins += s.sum
		}
	}
	if b.tombs == 0 {
		return sum, 0
	}
	for key, c := range b.cells {
		if c.state != Live && c.tomb.mark == gen {
			sum.Tombs += tombTerm(HashKey(key))
			marked++
		}
	}
	return sum, marked
}

// Marked reports whether the tombstone of a key is marked for the sweep of a generation.
func (all buckets) Marked(key string, gen uint64) bool {
	b := &all[BucketOf(key)]
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.cells[key]
	return c != nil && c.state != Live && c.tomb.mark == gen
}

// Unmark removes the mark of a tombstone, which is then no longer among those that are confirmed.
func (t *Table) Unmark(key string) {
	b := &t.buckets[BucketOf(key)]
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.cells[key]
	if c == nil || c.state == Live || c.tomb.mark == 0 {
		return
	}
	c.tomb.mark = 0
	t.tombs.mu.Lock()
	defer t.tombs.mu.Unlock()
	t.tombs.confirmed.hash -= tombTerm(HashKey(key))
}
