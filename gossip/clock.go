// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"cmp"
	"iter"
	"slices"
	"strconv"
	"strings"
)

// Vector clocks, which count the edits that a state holds. First how two clocks
// relate, then the clock with its comparison and merge, which avoid copying when one
// clock covers the other or both share their nodes, then clocks as differences from
// other clocks (overlay, diff), and at the end the walk over two clocks on which all
// of it rests.

// Ordering is the relation of two clocks, or of two states by their digests.
type Ordering uint8

// The orderings. The first four are results for clocks, all of them results of
// [State.CompareDigest], where the receiver is compared with the digest.
const (
	Same         Ordering = iota // Equal.
	Before                       // The receiver lacks edits that the other has.
	After                        // The other lacks edits that the receiver has.
	Concurrent                   // Each lacks edits that the other has.
	SeenDiffers                  // Equal edits, different seen sets.
	OtherCluster                 // Two clusters; nothing may be exchanged.
	Undecided                    // The digest refers to a clock that the receiver does not know.
)

// The orderings Before and After in words that fit states.
const (
	Older = Before
	Newer = After
)

// String returns the ordering in lower case.
func (o Ordering) String() string {
	names := [...]string{"same", "before", "after", "concurrent", "seen-differs", "other-cluster", "undecided"}
	if int(o) < len(names) {
		return names[o]
	}
	return "ordering-" + strconv.Itoa(int(o))
}

// Dot identifies one edit: the edit with the given count of a node.
type Dot struct {
	Node  NodeID
	Count uint64
}

func (d Dot) compare(o Dot) int {
	return cmp.Or(compareNodes(&d.Node, &o.Node), cmp.Compare(d.Count, o.Count))
}

// maxCount bounds the entries of a clock that comes from another node, so that
// counting up never overflows.
const maxCount = 1 << 62

// VectorClock holds how many edits of each node a state has. It is immutable and
// sorted by node; entries are above zero. The zero VectorClock is empty.
//
// Nodes and counts are in separate lists, so that clocks over the same nodes share the
// list of nodes: a step copies only 8 bytes a node.
type VectorClock struct {
	nodes  []NodeID
	counts []uint64
}

// ClockOf returns the clock with the given entries, in any order. Two entries of a
// node, a count of 0 or a count above the bound are errors that unwrap to
// [ErrInvalid].
func ClockOf(entries []Dot) (VectorClock, error) {
	sorted := slices.Clone(entries)
	slices.SortFunc(sorted, Dot.compare)
	c := VectorClock{nodes: make([]NodeID, 0, len(sorted)), counts: make([]uint64, 0, len(sorted))}
	for i, e := range sorted {
		switch {
		case e.Count == 0 || e.Count > maxCount:
			return VectorClock{}, invalid(FaultCounter, e.Node, "clock entry %d", e.Count)
		case i > 0 && sorted[i-1].Node == e.Node:
			return VectorClock{}, invalid(FaultDuplicate, e.Node, "two clock entries")
		}
		c.nodes = append(c.nodes, e.Node)
		c.counts = append(c.counts, e.Count)
	}
	return c, nil
}

// Len returns the number of entries.
func (c VectorClock) Len() int { return len(c.nodes) }

// Get returns the count of a node, 0 if it has no entry.
func (c VectorClock) Get(node NodeID) uint64 {
	if i, ok := c.find(node); ok {
		return c.counts[i]
	}
	return 0
}

func (c VectorClock) find(node NodeID) (int, bool) {
	low, high := 0, len(c.nodes) // As in findMember.
	for low < high {
		middle := int(uint(low+high) >> 1)
		order := compareNodes(&c.nodes[middle], &node)
		if order == 0 {
			return middle, true
		}
		if order < 0 {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low, false
}

// All yields the entries in the order of the nodes.
func (c VectorClock) All() iter.Seq2[NodeID, uint64] {
	return func(yield func(NodeID, uint64) bool) {
		for i, node := range c.nodes {
			if !yield(node, c.counts[i]) {
				return
			}
		}
	}
}

// Entries returns the entries in the order of the nodes, as a new slice.
func (c VectorClock) Entries() []Dot {
	entries := make([]Dot, len(c.nodes))
	for i, node := range c.nodes {
		entries[i] = Dot{Node: node, Count: c.counts[i]}
	}
	return entries
}

// Compare returns the relation of c to o: Same, Before, After or Concurrent.
func (c VectorClock) Compare(o VectorClock) Ordering {
	less, more := false, false
	zipClocks(c, o, func(_ *NodeID, x, y uint64) bool {
		less = less || x < y
		more = more || x > y
		return !(less && more)
	})
	return orderingOf(less, more)
}

// orderingOf returns how one of two histories lies to the other, if it lacks an edit of the
// other (less), and has one that the other lacks (more).
func orderingOf(less, more bool) Ordering {
	switch {
	case less && more:
		return Concurrent
	case less:
		return Before
	case more:
		return After
	}
	return Same
}

// Covers reports whether c holds every edit that o holds.
func (c VectorClock) Covers(o VectorClock) bool {
	order := c.Compare(o)
	return order == Same || order == After
}

// Equal reports whether c and o have the same entries.
func (c VectorClock) Equal(o VectorClock) bool {
	return slices.Equal(c.counts, o.counts) && (sameSlice(c.nodes, o.nodes) || slices.Equal(c.nodes, o.nodes))
}

// Merge returns the clock with the greater count of each node, and c or o itself if
// one of them is that clock.
func (c VectorClock) Merge(o VectorClock) VectorClock {
	if sameSlice(c.nodes, o.nodes) {
		return c.mergeAligned(o)
	}
	switch c.Compare(o) {
	case Same, After:
		return c
	case Before:
		return o
	default:
		return c.mergeApart(o)
	}
}

// mergeApart is Merge for two clocks of which neither covers the other.
func (c VectorClock) mergeApart(o VectorClock) VectorClock {
	n := max(c.Len(), o.Len())
	m := VectorClock{nodes: make([]NodeID, 0, n), counts: make([]uint64, 0, n)}
	zipClocks(c, o, func(node *NodeID, x, y uint64) bool {
		m.nodes = append(m.nodes, *node)
		m.counts = append(m.counts, max(x, y))
		return true
	})
	return m.sharing(c).sharing(o)
}

// mergeAligned is Merge for clocks that share their list of nodes.
func (c VectorClock) mergeAligned(o VectorClock) VectorClock {
	isC, isO := true, true
	for i, x := range c.counts {
		isC = isC && x >= o.counts[i]
		isO = isO && x <= o.counts[i]
	}
	switch {
	case isC:
		return c
	case isO:
		return o
	}
	counts := slices.Clone(c.counts)
	for i, y := range o.counts {
		counts[i] = max(counts[i], y)
	}
	return VectorClock{nodes: c.nodes, counts: counts}
}

// sharing returns c with the node list of o in place of its own if the two lists are
// equal.
func (c VectorClock) sharing(o VectorClock) VectorClock {
	if len(c.nodes) == len(o.nodes) && slices.Equal(c.nodes, o.nodes) {
		c.nodes = o.nodes
	}
	return c
}

// with returns c with the count of one node replaced; 0 drops the entry.
func (c VectorClock) with(node NodeID, count uint64) VectorClock {
	i, ok := c.find(node)
	switch {
	case ok && count == 0:
		return VectorClock{
			nodes:  append(slices.Clone(c.nodes[:i]), c.nodes[i+1:]...),
			counts: append(slices.Clone(c.counts[:i]), c.counts[i+1:]...),
		}
	case ok:
		counts := slices.Clone(c.counts)
		counts[i] = count
		return VectorClock{nodes: c.nodes, counts: counts}
	case count == 0:
		return c
	}
	return VectorClock{
		nodes:  slices.Insert(slices.Clone(c.nodes), i, node),
		counts: slices.Insert(slices.Clone(c.counts), i, count),
	}
}

// overlay returns c with the given sorted entries replaced; 0 drops an entry.
func (c VectorClock) overlay(entries []Dot) VectorClock {
	if len(entries) == 0 {
		return c
	}
	n := len(c.nodes) + len(entries)
	r := VectorClock{nodes: make([]NodeID, 0, n), counts: make([]uint64, 0, n)}
	put := func(node NodeID, count uint64) {
		if count > 0 {
			r.nodes = append(r.nodes, node)
			r.counts = append(r.counts, count)
		}
	}
	i := 0
	for _, e := range entries {
		for ; i < len(c.nodes) && compareNodes(&c.nodes[i], &e.Node) < 0; i++ {
			put(c.nodes[i], c.counts[i])
		}
		if i < len(c.nodes) && c.nodes[i] == e.Node {
			i++
		}
		put(e.Node, e.Count)
	}
	for ; i < len(c.nodes); i++ {
		put(c.nodes[i], c.counts[i])
	}
	return r.sharing(c)
}

// diff returns the entries in which c differs from base, so that base.overlay(diff) is
// c. A node that has an entry in base and none in c gets count 0.
func (c VectorClock) diff(base VectorClock) []Dot {
	var entries []Dot
	zipClocks(c, base, func(node *NodeID, x, y uint64) bool {
		if x != y {
			entries = append(entries, Dot{Node: *node, Count: x})
		}
		return true
	})
	return entries
}

// only returns c with the entries of the given members alone, and c itself if it has
// no others.
func (c VectorClock) only(members []*Member) VectorClock {
	kept, j := 0, 0
	keep := func(i int) bool {
		for j < len(members) && compareNodes(&members[j].Node, &c.nodes[i]) < 0 {
			j++
		}
		return j < len(members) && members[j].Node == c.nodes[i]
	}
	for kept < len(c.nodes) && keep(kept) {
		kept++
	}
	if kept == len(c.nodes) {
		return c
	}
	r := VectorClock{nodes: slices.Clone(c.nodes[:kept]), counts: slices.Clone(c.counts[:kept])}
	for i := kept + 1; i < len(c.nodes); i++ {
		if keep(i) {
			r.nodes = append(r.nodes, c.nodes[i])
			r.counts = append(r.counts, c.counts[i])
		}
	}
	return r
}

// String returns the entries as "{a:1#2=3 ...}".
func (c VectorClock) String() string {
	var b strings.Builder
	b.WriteByte('{')
	for i, node := range c.nodes {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(node.String())
		b.WriteByte('=')
		b.WriteString(strconv.FormatUint(c.counts[i], 10))
	}
	b.WriteByte('}')
	return b.String()
}

// zipClocks calls f for each node of a or b, in order, with its counts in
// both, until f returns false.
func zipClocks(a, b VectorClock, f func(node *NodeID, x, y uint64) bool) {
	i, j := 0, 0
	aligned := sameSlice(a.nodes, b.nodes)
	for i < len(a.nodes) && j < len(b.nodes) {
		order := 0
		if !aligned {
			order = compareNodes(&a.nodes[i], &b.nodes[j])
		}
		node, x, y := &a.nodes[i], uint64(0), uint64(0)
		if order <= 0 {
			x = a.counts[i]
			i++
		}
		if order >= 0 {
			node, y = &b.nodes[j], b.counts[j]
			j++
		}
		if !f(node, x, y) {
			return
		}
	}
	for ; i < len(a.nodes); i++ {
		if !f(&a.nodes[i], a.counts[i], 0) {
			return
		}
	}
	for ; j < len(b.nodes); j++ {
		if !f(&b.nodes[j], 0, b.counts[j]) {
			return
		}
	}
}

// sameSlice reports whether a and b are the same memory.
func sameSlice[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
