// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"cmp"
	"maps"
	"slices"
)

// The kinds of values that change. The page knows these numbers.
const (
	kindLife    = iota // Lane a: 0 no node, 1 a node lives, 2 it is frozen.
	kindView           // In the view of lane a, lane b has the status v, plus 16 if unreachable.
	kindBlocked        // 1: no message passes from lane a to lane b.
	kindHosts          // Lane a: 1 it may host.
	kindLeader         // In the view of lane a, lane v-1 leads; 0 nobody.
	kindAgreed         // Lane a: 1 it knows that all have seen its state.
	kindShard          // Shard a: 1 lane b hosts it.
)

// valueKey names a value that changes: its kind, and the one or two lanes or shards that it is about.
type valueKey struct{ kind, a, b int }

func (w valueKey) compare(o valueKey) int {
	return cmp.Or(cmp.Compare(w.kind, o.kind), cmp.Compare(w.a, o.a), cmp.Compare(w.b, o.b))
}

// change is a value from a moment on.
type change struct {
	at int64
	valueKey
	v int
}

// changeHistory holds the last changes of a run, and the values before them.
type changeHistory struct {
	most int
	now  map[valueKey]int // The values after all changes; those that are 0 are not in it.
	base map[valueKey]int // The values before the first kept change.
	kept []change
	from int64 // From when on changes are complete.
	left int   // Changes that are no longer kept.
}

func newChangeHistory(most int) *changeHistory {
	return &changeHistory{most: most, now: make(map[valueKey]int), base: make(map[valueKey]int)}
}

// set notes a value; nothing if it is what it was.
func (t *changeHistory) set(at int64, w valueKey, v int) {
	if t.now[w] == v {
		return
	}
	put(t.now, w, v)
	if len(t.kept) == t.most { // The older half goes into the base.
		half := t.most / 2
		for _, c := range t.kept[:half] {
			put(t.base, c.valueKey, c.v)
		}
		t.from, t.left = t.kept[half-1].at, t.left+half
		t.kept = append(t.kept[:0], t.kept[half:]...)
	}
	t.kept = append(t.kept, change{at: at, valueKey: w, v: v})
}

func put(m map[valueKey]int, w valueKey, v int) {
	if v == 0 {
		delete(m, w)
		return
	}
	m[w] = v
}

// list returns the values before the first kept change, as changes at that time, and the kept
// changes, five numbers each: time, kind, a, b, v.
func (t *changeHistory) list() [][5]int64 {
	list := make([][5]int64, 0, len(t.base)+len(t.kept))
	for _, w := range slices.SortedFunc(maps.Keys(t.base), valueKey.compare) {
		list = append(list, change{at: t.from, valueKey: w, v: t.base[w]}.numbers())
	}
	for _, c := range t.kept {
		list = append(list, c.numbers())
	}
	return list
}

func (c change) numbers() [5]int64 {
	return [5]int64{c.at, int64(c.kind), int64(c.a), int64(c.b), int64(c.v)}
}
