// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package crdt

import (
	"encoding/binary"
	"math"
)

// The state of counters and version vectors: for each origin how much it has counted up and down; the join is the
// maximum of each amount (Shapiro et al. 2011, section 3.1).
//
// A program may well have a million counters, so the state is one allocation: as long as there are few entries, their
// slice points into the same object. Whether an amount is part of the pending delta is a flag in the amount itself.

// pending is set in an amount that a mutator has changed since the value was settled.
const pending = 1 << 63

// entry is what one origin has counted.
type entry struct {
	at       Origin
	up, down uint64
}

// counts is sorted by origin, has no entry of which both amounts are zero, and never
// changes once it is reachable by a value. Nil is empty.
type counts struct{ entries []entry }

// newCounts returns counts with room for n entries, in one allocation if n is small.
func newCounts(n int) *counts {
	switch n {
	case 1:
		c := new(struct {
			counts
			room [1]entry
		})
		c.entries = c.room[:0]
		return &c.counts
	case 2:
		c := new(struct {
			counts
			room [2]entry
		})
		c.entries = c.room[:0]
		return &c.counts
	case 3:
		c := new(struct {
			counts
			room [3]entry
		})
		c.entries = c.room[:0]
		return &c.counts
	case 4, 5:
		c := new(struct {
			counts
			room [5]entry
		})
		c.entries = c.room[:0]
		return &c.counts
	default:
		return &counts{entries: make([]entry, 0, n)}
	}
}

func (c *counts) all() []entry {
	if c == nil {
		return nil
	}
	return c.entries
}

// of returns what an origin has counted, without flags.
func (c *counts) of(at Origin) entry {
	for _, e := range c.all() {
		if e.at == at {
			return e.settled()
		}
	}
	return entry{at: at}
}

func (e entry) settled() entry {
	e.up &^= pending
	e.down &^= pending
	return e
}

func (e entry) isPending() bool { return (e.up|e.down)&pending != 0 }

// with returns the counts with one entry replaced or added.
func (c *counts) with(e entry) *counts {
	old := c.all()
	i := 0
	for i < len(old) && old[i].at < e.at {
		i++
	}
	behind := i
	if i < len(old) && old[i].at == e.at {
		behind++
	}
	n := newCounts(i + 1 + len(old) - behind)
	n.entries = append(append(append(n.entries, old[:i]...), e), old[behind:]...)
	return n
}

// add returns the counts after an origin has counted, with the amounts marked as pending.
func (c *counts) add(at Origin, up, down uint64) *counts {
	if up == 0 && down == 0 {
		return c
	}
	var e entry
	for _, x := range c.all() {
		if x.at == at {
			e = x
		}
	}
	e.at = at
	if up > 0 {
		e.up = bounded(e.up&^pending, up) | pending
	}
	if down > 0 {
		e.down = bounded(e.down&^pending, down) | pending
	}
	return c.with(e)
}

// bounded returns the sum of two amounts, at most maxCount.
func bounded(a, b uint64) uint64 {
	if b > maxCount-min(a, maxCount) {
		return maxCount
	}
	return a + b
}

// merge returns the maximum of each amount, settled: c itself, if it has no flags and is that.
func (c *counts) merge(o *counts) *counts {
	a, b := c.all(), o.all()
	if c.covers(o) {
		return c.settled()
	}
	n, i, j := newCounts(union(a, b)), 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case j == len(b) || i < len(a) && a[i].at < b[j].at:
			n.entries = append(n.entries, a[i].settled())
			i++
		case i == len(a) || b[j].at < a[i].at:
			n.entries = append(n.entries, b[j].settled())
			j++
		default:
			x, y := a[i].settled(), b[j].settled()
			n.entries = append(n.entries, entry{x.at, max(x.up, y.up), max(x.down, y.down)})
			i, j = i+1, j+1
		}
	}
	return n
}

// union returns how many origins are in either list.
func union(a, b []entry) int {
	n, i := len(a), 0
	for _, e := range b {
		for i < len(a) && a[i].at < e.at {
			i++
		}
		if i == len(a) || a[i].at != e.at {
			n++
		}
	}
	return n
}

// covers reports whether no amount of o is above that of c.
func (c *counts) covers(o *counts) bool {
	a, i := c.all(), 0
	for _, e := range o.all() {
		for i < len(a) && a[i].at < e.at {
			i++
		}
		if i == len(a) || a[i].at != e.at || a[i].up&^pending < e.up&^pending || a[i].down&^pending < e.down&^pending {
			return false
		}
	}
	return true
}

// delta returns the pending amounts. If only one amount of an entry is pending, the other one is left out.
func (c *counts) delta() *counts {
	n := 0
	for _, e := range c.all() {
		if e.isPending() {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	d := newCounts(n)
	for _, e := range c.all() {
		if !e.isPending() {
			continue
		}
		p := entry{at: e.at}
		if e.up&pending != 0 {
			p.up = e.up &^ pending
		}
		if e.down&pending != 0 {
			p.down = e.down &^ pending
		}
		d.entries = append(d.entries, p)
	}
	return d
}

// settled returns the counts without flags.
func (c *counts) settled() *counts {
	for _, e := range c.all() {
		if e.isPending() {
			n := newCounts(len(c.entries))
			for _, e := range c.entries {
				n.entries = append(n.entries, e.settled())
			}
			return n
		}
	}
	return c
}

// retire adds the amounts of the origins that are gone to those of origin zero.
func (c *counts) retire(gone func(Origin) bool) *counts {
	sum := entry{}
	var rest []entry
	for _, e := range c.all() {
		e = e.settled()
		if e.at == 0 || gone(e.at) {
			sum.up, sum.down = bounded(sum.up, e.up), bounded(sum.down, e.down)
		} else {
			rest = append(rest, e)
		}
	}
	if len(rest) == len(c.all()) {
		return c.settled()
	}
	n := newCounts(len(rest) + 1)
	n.entries = append(append(n.entries, sum), rest...)
	return n
}

// sums returns the amounts of all origins together.
func (c *counts) sums() (up, down uint64) {
	for _, e := range c.all() {
		up += min(e.up&^pending, math.MaxInt64-min(up, math.MaxInt64))
		down += min(e.down&^pending, math.MaxInt64-min(down, math.MaxInt64))
	}
	return up, down
}

// size returns how many bytes of memory the counts take: the header of the slice and the entries.
func (c *counts) size() int {
	if c == nil {
		return 8
	}
	return 8 + 24 + 24*cap(c.entries)
}

// append appends the entries: how many there are, then for each its origin, as the difference from the one before, and
// its amounts; the amounts counted down only if both is set.
func (c *counts) append(dst []byte, both bool) []byte {
	dst = binary.AppendUvarint(append(dst, version), uint64(len(c.all())))
	last := Origin(0)
	for _, e := range c.all() {
		e = e.settled()
		dst = binary.AppendUvarint(dst, uint64(e.at-last))
		dst = binary.AppendUvarint(dst, e.up)
		if both {
			dst = binary.AppendUvarint(dst, e.down)
		}
		last = e.at
	}
	return dst
}

// readCounts reads what append has written.
func readCounts(b []byte, both bool) (*counts, error) {
	r, least := newReader(b), 2
	if both {
		least = 3
	}
	n := r.count(least)
	if n == 0 {
		return nil, r.end()
	}
	c := newCounts(n)
	for i, last := 0, Origin(0); i < n && r.err == nil; i++ {
		e := entry{at: last + Origin(r.uint(uint64(math.MaxUint64-last))), up: r.uint(maxCount)}
		if both {
			e.down = r.uint(maxCount)
		}
		if e.up == 0 && e.down == 0 || i > 0 && e.at == last {
			r.fail("an entry that is empty or doubled")
		}
		c.entries = append(c.entries, e)
		last = e.at
	}
	return c, r.end()
}
