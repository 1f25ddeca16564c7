// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/quorate/quorate/ddata/crdt"
)

// Where entries are kept: a cell for each key, in one of 4,096 buckets. A cell is changed only by [Table.set] or by a
// local update, which also update the sums of the bucket: its hash, and that of each owner.

// cell is a key with its image. All fields are guarded by the bucket's mutex. There may
// be a million cells, so what is rare is behind a pointer.
type cell struct {
	key      string
	kind     *kind
	value    any
	versions Versions
	tomb     *tombstone // Nil for a live cell that never expired.
	pending  *pending   // Nil if no local update waits to be spread.
	tick     uint32     // When the entry changed last.
	rev      uint32     // Counts the changes of the entry.
	size     uint32     // As in image.
	guesses  uint16     // As in image.
	state    State
	changed  bool // The key is in the queue of those that changed.
}

// tombstone has the fields of a tombstone, and of a live cell that has expired before.
type tombstone struct {
	floor Versions
	stamp uint64
	mark  uint64 // The generation for which the tombstone is confirmed, zero for none.
}

// cellBytes is what a cell costs beside its key, versions and value: the cell, its place in
// the map.
const cellBytes = 140

// bytes returns what an image costs in a table.
func (m *image) bytes(key string) int64 {
	const versionBytes = 16
	return int64(cellBytes + len(key) + m.size + versionBytes*(len(m.versions)+len(m.floor)))
}

// image returns the image of the key of a cell; a nil cell is a key that is not there.
func (c *cell) image() image {
	if c == nil {
		return image{}
	}
	m := image{
		state: c.state, kind: c.kind, value: c.value, versions: c.versions,
		size: int(c.size), guesses: c.guesses,
	}
	if c.tomb != nil {
		m.floor, m.stamp = c.tomb.floor, c.tomb.stamp
	}
	return m
}

func (c *cell) floor() Versions {
	if c == nil || c.tomb == nil {
		return nil
	}
	return c.tomb.floor
}

// bucket is a part of the keys of a table.
type bucket struct {
	// edit serialises the local updates of the bucket, and is held while their functions run.
	// Whoever holds it may take mu, never the other way round.
	edit sync.Mutex
	// mu guards what follows and is held for a few steps only. Whoever holds it may
	// take the mutex of the journal or of the tombstones' sums.
	mu     sync.Mutex
	cells  map[string]*cell
	peak   int                 // The greatest number of cells since the map of cells was made.
	gone   map[string]struct{} // Keys without a cell that are in the queue of changed keys.
	hash   uint64
	owners []ownerSum // Sorted by owner.
	tombs  int        // How many tombstones there are.
	// fresh is the first life under which Self counts the updates of a key that is not there,
	// and least the first under which it goes on with a key that is there: Self may have lost
	// what it has counted under earlier lives. used is the last life under which Self has counted.
	fresh, least, used uint64
}

// ownerSum is the part of the hash of a bucket that the origins of one owner make: the sum of a
// term for each of them in each entry. Two replicas whose sums differ hold different updates of
// that owner.
type ownerSum struct {
	owner crdt.Origin
	terms int // How many terms are in the sum; without any the owner is left out.
	sum   uint64
}

// terms calls f for the term of each origin of an image.
func (m *image) terms(keyHash uint64, f func(o crdt.Origin, term uint64)) {
	zero := zeroTerm(m.versions, m.floor)
	v, r := m.versions, m.floor
	for len(v) > 0 || len(r) > 0 {
		switch {
		case len(r) == 0 || len(v) > 0 && v[0].Origin < r[0].Origin:
			f(v[0].Origin, originTerm(keyHash, v[0].Origin, v[0].Count, 0, zero))
			v = v[1:]
		case len(v) == 0 || r[0].Origin < v[0].Origin:
			f(r[0].Origin, originTerm(keyHash, r[0].Origin, 0, r[0].Count, zero))
			r = r[1:]
		default:
			f(v[0].Origin, originTerm(keyHash, v[0].Origin, v[0].Count, r[0].Count, zero))
			v, r = v[1:], r[1:]
		}
	}
}

// stateTerm is the term for everything else.
func (m *image) stateTerm(keyHash uint64) uint64 {
	var typeHash uint64
	if m.kind != nil {
		typeHash = m.kind.hash
	}
	return stateTerm(keyHash, m.state, typeHash, m.stamp)
}

// hash returns the hash of an entry with the image, zero for none.
func (m *image) hash(keyHash uint64) uint64 {
	if m.state == 0 {
		return 0
	}
	h := m.stateTerm(keyHash)
	m.terms(keyHash, func(_ crdt.Origin, term uint64) { h += term })
	return h
}

// add puts an image into the sums of the bucket; sign 1, or -1 to take it out.
func (b *bucket) add(keyHash uint64, m *image, sign int) {
	if m.state == 0 {
		return
	}
	b.hash += uint64(sign) * m.stateTerm(keyHash)
	m.terms(keyHash, func(o crdt.Origin, term uint64) { b.addTerm(o, uint64(sign)*term, sign) })
	if m.state != Live {
		b.tombs += sign
	}
}

// addTerm adds a term to the sums; count is 1 if it is new, -1 if it is gone.
func (b *bucket) addTerm(o crdt.Origin, term uint64, count int) {
	b.hash += term
	owner := Owner(o)
	if owner == 0 {
		return
	}
	for i := range b.owners {
		if s := &b.owners[i]; s.owner == owner {
			s.sum += term
			if s.terms += count; s.terms == 0 {
				b.owners = slices.Delete(b.owners, i, i+1)
			}
			return
		}
	}
	i, _ := slices.BinarySearchFunc(b.owners, owner, func(s ownerSum, o crdt.Origin) int { return cmp.Compare(s.owner, o) })
	b.owners = slices.Insert(b.owners, i, ownerSum{owner, count, term})
}

// put adds a cell of a key that has none.
func (b *bucket) put(c *cell) {
	if b.cells == nil {
		b.cells = make(map[string]*cell)
	}
	b.cells[c.key] = c
	b.peak = max(b.peak, len(b.cells))
}

// delete takes a cell out. A map keeps the room that it has once needed: when hardly any of
// that is used, the cells that are left move to another map.
func (b *bucket) delete(key string) {
	const few, share = 16, 4
	delete(b.cells, key)
	if len(b.cells) > 0 && (b.peak < few || len(b.cells) > b.peak/share) {
		return
	}
	left := b.cells
	b.cells, b.peak = nil, 0
	if len(left) > 0 {
		b.cells, b.peak = make(map[string]*cell, len(left)), len(left)
		maps.Copy(b.cells, left)
	}
}

// keys returns the keys of the bucket, sorted.
func (b *bucket) keys() []string {
	keys := make([]string, 0, len(b.cells))
	for key := range b.cells {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// own returns the origin under which the next local update of a cell is made, and how many
// it has made already; false if no life is left. A nil cell is a key that is not there.
//
// A life ends when the counting cannot go on: the value expired with all that it
// counted, or Self has lost what it has counted (Drop). A later one is a new origin, so that no
// update is ever named like another.
func (b *bucket) own(self crdt.Origin, c *cell) (crdt.Origin, uint64, bool) {
	life := b.fresh
	if c != nil {
		last, holds, has := lastLife(self, c.versions)
		lastGone, gone, hasGone := lastLife(self, c.floor())
		switch {
		case has && last >= b.least && (!hasGone || lastGone < last || lastGone == last && gone <= holds):
			return originOf(self, last), holds, true
		case has && hasGone:
			life = max(life, last+1, lastGone+1)
		case has:
			life = max(life, last+1)
		case hasGone:
			life = max(life, lastGone+1)
		}
	}
	return originOf(self, life&maxLife), 0, life <= maxLife
}

// lastLife returns the last life of an owner in some versions, and the count under it.
func lastLife(owner crdt.Origin, v Versions) (life, count uint64, has bool) {
	for _, x := range slices.Backward(v) {
		if Owner(x.Origin) == owner {
			return lifeOf(x.Origin), x.Count, true
		}
	}
	return 0, 0, false
}
