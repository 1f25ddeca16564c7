// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"cmp"
	"iter"
	"slices"
)

// The memory of recent edits and the records that they touched, from which deltas are
// made. Edits are appended in chunks, of which only the last is copied; spans of edits
// are looked up from the latest edit back.

// KeyType is the part of a state that a [Key] names. The values are part of the wire.
type KeyType uint8

// The types of keys.
const (
	KeyMember    KeyType = iota + 1 // The member or tombstone of a node.
	KeyObserver                     // The rows of an observer.
	KeyVoters                       // The voters.
	KeyCluster                      // The cluster id.
	KeyRegisters                    // Last up-number, PrunedBefore and the downing strategy.
)

// Key names one record of the state: the unit in which news travels.
type Key struct {
	Type KeyType
	Node NodeID // For KeyMember and KeyObserver, zero otherwise.
}

func (k Key) compare(o Key) int {
	return cmp.Or(cmp.Compare(k.Type, o.Type), compareNodes(&k.Node, &o.Node))
}

// Edited is an edit with the keys of the records that it touched.
type Edited struct {
	Dot  Dot
	Keys []Key // Sorted, without doubles.
}

// chunkSize is how many edits a chunk of the history holds, and so how many adding an
// edit copies at most.
const chunkSize = 32

// history holds which records the latest edits touched, in the order in which this
// node got the edits. It is bounded and immutable. It is auxiliary: a missing edit
// means a full state instead of a delta, and never a wrong result. An edit whose keys
// are not known is not in the history.
type history struct {
	chunks [][]Edited // Each chunk but the last is full.
	size   int
}

// historySize bounds the history: several rounds of edits by every member.
func historySize(members int) int { return 1024 + 4*members }

// add returns h with the edits appended, and the oldest chunks dropped above the
// bound.
func (h history) add(bound int, edits ...Edited) history {
	if len(edits) == 0 {
		return h
	}
	chunks := slices.Clone(h.chunks)
	for len(edits) > 0 {
		if n := len(chunks); n == 0 || len(chunks[n-1]) == chunkSize {
			chunks = append(chunks, nil)
		}
		last := &chunks[len(chunks)-1]
		n := min(chunkSize-len(*last), len(edits))
		*last = slices.Concat(*last, edits[:n])
		edits = edits[n:]
		h.size += n
	}
	for h.size-len(chunks[0]) >= bound {
		h.size -= len(chunks[0])
		chunks = chunks[1:]
	}
	h.chunks = chunks
	return h
}

// latest yields the edits, the latest first.
func (h history) latest() iter.Seq[*Edited] {
	return func(yield func(*Edited) bool) {
		for _, chunk := range slices.Backward(h.chunks) {
			for i := range slices.Backward(chunk) {
				if !yield(&chunk[i]) {
					return
				}
			}
		}
	}
}

// merge returns h with those edits of o appended that clock does not cover, in the
// order of o.
func (h history) merge(o history, clock VectorClock, bound int) history {
	if o.size == 0 || (h.size == o.size && sameSlice(h.chunks, o.chunks)) {
		return h
	}
	if h.size == 0 {
		return o
	}
	var news []Edited
	for e := range o.latest() {
		if e.Dot.Count > clock.Get(e.Dot.Node) {
			news = append(news, *e)
		}
	}
	slices.Reverse(news)
	return h.add(bound, news...)
}

// span is a range of edits of one node: those with counts above the first and up to
// the second number.
type span struct {
	node      NodeID
	above, to uint64
}

// keys returns the edits in the spans, each once even if the history holds it twice.
// It returns false if some of them are not in the history.
func (h history) keys(spans []span) (edits []Edited, ok bool) {
	missing := uint64(0)
	for _, sp := range spans {
		missing += sp.to - sp.above
		if missing > uint64(h.size) {
			return nil, false
		}
	}
	found := make(map[Dot]bool, missing)
	for e := range h.latest() {
		if missing == 0 {
			break
		}
		i, in := slices.BinarySearchFunc(spans, e.Dot.Node, func(sp span, id NodeID) int {
			return compareNodes(&sp.node, &id)
		})
		if !in || e.Dot.Count <= spans[i].above || e.Dot.Count > spans[i].to || found[e.Dot] {
			continue
		}
		found[e.Dot] = true
		edits = append(edits, *e)
		missing--
	}
	slices.SortFunc(edits, func(a, b Edited) int { return a.Dot.compare(b.Dot) })
	return edits, missing == 0
}

// sortedKeys returns keys sorted and without doubles.
func sortedKeys(keys []Key) []Key {
	c := slices.Clone(keys)
	slices.SortFunc(c, Key.compare)
	return slices.Compact(c)
}
