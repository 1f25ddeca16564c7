// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"iter"
	"math/bits"
	"slices"
)

// bitset is a set of indices into the list of members. A nil bitset is empty. Sets for
// one list of members have the same length or are nil.
type bitset []uint64

func newBitset(n int) bitset { return make(bitset, (n+63)/64) }

func (b bitset) has(i int) bool { return i>>6 < len(b) && b[i>>6]&(1<<(i&63)) != 0 }

func (b bitset) set(i int) { b[i>>6] |= 1 << (i & 63) }

func (b bitset) clear(i int) { b[i>>6] &^= 1 << (i & 63) }

func (b bitset) count() int {
	n := 0
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}

// all yields the elements below n in order.
func (b bitset) all(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range n {
			if b.has(i) && !yield(i) {
				return
			}
		}
	}
}

// equal compares the elements; a nil set equals one without elements.
func (b bitset) equal(o bitset) bool {
	if len(b) < len(o) {
		b, o = o, b
	}
	for i, w := range b {
		if i < len(o) && w != o[i] || i >= len(o) && w != 0 {
			return false
		}
	}
	return true
}

// union returns b ∪ o for sets for one list of members, and b or o itself if one of
// them is the union.
func (b bitset) union(o bitset) bitset {
	if len(b) < len(o) {
		b, o = o, b
	}
	isB, isO := true, len(b) == len(o)
	for i, w := range o {
		isB = isB && w&^b[i] == 0
		isO = isO && b[i]&^w == 0
	}
	switch {
	case isB:
		return b
	case isO:
		return o
	}
	u := slices.Clone(b)
	for i, w := range o {
		u[i] |= w
	}
	return u
}

// remap moves the elements of b from one list of members to another. Elements
// that are not in the other list are dropped.
func (b bitset) remap(from, to []*Member) bitset {
	if sameSlice(from, to) || b == nil {
		return b
	}
	r := newBitset(len(to))
	j := 0
	for i := range b.all(len(from)) {
		for j < len(to) && compareNodes(&to[j].Node, &from[i].Node) < 0 {
			j++
		}
		if j < len(to) && to[j].Node == from[i].Node {
			r.set(j)
		}
	}
	return r
}

// bitsOf returns the set of the given nodes, which are sorted; nodes that are not
// members are left out.
func bitsOf(nodes []NodeID, members []*Member) bitset {
	if len(nodes) == 0 {
		return nil
	}
	b := newBitset(len(members))
	from := 0
	for _, node := range nodes {
		if from < len(members) && members[from].Node != node { // Mostly every member is in nodes, and no search is needed.
			i, _ := findMember(members[from:], node)
			from += i
		}
		if from < len(members) && members[from].Node == node {
			b.set(from)
			from++
		}
	}
	return b
}
