// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package crdt_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/crdt/crdttest"
)

// The models: for each type how its mutators are drawn and called, and what a replica reads
// that has seen some events.

// pick draws one of some words.
func pick(src crdttest.Source, words ...string) string { return words[src.IntN(len(words))] }

// drawing returns a function that draws an event of some kinds, on few keys and elements,
// so that events meet.
func drawing(kinds ...string) func(crdttest.Source) event {
	return func(src crdttest.Source) event {
		return event{do: pick(src, kinds...), k: pick(src, "a", "b", "c"), e: pick(src, "x", "y", "z"), n: int64(src.IntN(9)) - 3}
	}
}

func gcounters() *model[crdt.GCounter] {
	return &model[crdt.GCounter]{
		draw:  drawing("add"),
		apply: func(v crdt.GCounter, e *event) crdt.GCounter { return v.Add(e.at, uint64(e.n+3)) },
		spec: func(h *history, seen set) any {
			sum := uint64(0)
			h.each(seen, func(e *event) { sum += uint64(e.n + 3) })
			return sum
		},
		observe: func(v crdt.GCounter) any { return v.Value() },
	}
}

func pncounters() *model[crdt.PNCounter] {
	return &model[crdt.PNCounter]{
		draw:  drawing("add"),
		apply: func(v crdt.PNCounter, e *event) crdt.PNCounter { return v.Add(e.at, e.n) },
		spec: func(h *history, seen set) any {
			sum := int64(0)
			h.each(seen, func(e *event) { sum += e.n })
			return sum
		},
		observe: func(v crdt.PNCounter) any { return v.Value() },
	}
}

func versionVectors() *model[crdt.VersionVector] {
	total := func(all map[crdt.Origin]uint64) uint64 {
		sum := uint64(0)
		for n := range maps.Values(all) {
			sum += n
		}
		return sum
	}
	return &model[crdt.VersionVector]{
		draw: drawing("increment", "raise"),
		apply: func(v crdt.VersionVector, e *event) crdt.VersionVector {
			if e.do == "raise" {
				return v.Raise(e.at, uint64(e.n+3))
			}
			return v.Increment(e.at)
		},
		spec: func(h *history, seen set) any {
			all := map[crdt.Origin]uint64{}
			h.each(seen, func(e *event) {
				if e.do == "raise" {
					all[e.at] = max(all[e.at], uint64(e.n+3))
				} else {
					all[e.at]++
				}
			})
			return total(all)
		},
		// Retirement keeps the sum of the entries.
		observe: func(v crdt.VersionVector) any { return total(maps.Collect(v.All())) },
	}
}

func flags() *model[crdt.Flag] {
	return &model[crdt.Flag]{
		draw: drawing("enable", "look", "look"),
		apply: func(v crdt.Flag, e *event) crdt.Flag {
			if e.do == "enable" {
				return v.Enable()
			}
			return v
		},
		spec: func(h *history, seen set) any {
			return h.any(seen, func(e *event) bool { return e.do == "enable" })
		},
		observe: func(v crdt.Flag) any { return v.Enabled() },
	}
}

func gsets() *model[crdt.GSet[string]] {
	return &model[crdt.GSet[string]]{
		draw:  drawing("add"),
		apply: func(v crdt.GSet[string], e *event) crdt.GSet[string] { return v.Add(e.k + e.e) },
		spec: func(h *history, seen set) any {
			all := map[string]bool{}
			h.each(seen, func(e *event) { all[e.k+e.e] = true })
			return fmt.Sprint(slices.Sorted(maps.Keys(all)))
		},
		observe: func(v crdt.GSet[string]) any { return fmt.Sprint(slices.Collect(v.All())) },
	}
}

// liveAdditions returns the pairs of which an addition was not ended.
func liveAdditions(h *history, seen set, ends func(add, r *event) bool) map[string][]string {
	all := map[string]map[string]bool{}
	h.each(seen, func(e *event) {
		if e.do != "add" || h.over(seen, e, func(r *event) bool { return ends(e, r) }) {
			return
		}
		if all[e.k] == nil {
			all[e.k] = map[string]bool{}
		}
		all[e.k][e.e] = true
	})
	sorted := map[string][]string{}
	for k, es := range all {
		sorted[k] = slices.Sorted(maps.Keys(es))
	}
	return sorted
}

// numbers are the elements of sets of numbers.
var numbers = map[string]int{"x": -1, "y": 0, "z": 300}

func orsets() *model[crdt.ORSet[int]] {
	return &model[crdt.ORSet[int]]{
		draw: func(src crdttest.Source) event {
			e := drawing("add", "add", "add", "remove", "remove", "clear")(src)
			e.k = ""
			return e
		},
		apply: func(v crdt.ORSet[int], e *event) crdt.ORSet[int] {
			switch e.do {
			case "add":
				return v.Add(e.at, numbers[e.e])
			case "remove":
				return v.Remove(numbers[e.e])
			}
			return v.Clear()
		},
		spec: func(h *history, seen set) any {
			live := liveAdditions(h, seen, func(add, r *event) bool {
				return r.do == "clear" || r.do == "remove" && r.e == add.e
			})
			all := []int{}
			for _, e := range live[""] {
				all = append(all, numbers[e])
			}
			return all
		},
		observe: func(v crdt.ORSet[int]) any { return append([]int{}, slices.Collect(v.All())...) },
	}
}

func ormultimaps() *model[crdt.ORMultiMap[string, string]] {
	return &model[crdt.ORMultiMap[string, string]]{
		draw: drawing("add", "add", "add", "remove", "removekey"),
		apply: func(v crdt.ORMultiMap[string, string], e *event) crdt.ORMultiMap[string, string] {
			switch e.do {
			case "add":
				return v.Add(e.at, e.k, e.e)
			case "remove":
				return v.Remove(e.k, e.e)
			}
			return v.RemoveKey(e.k)
		},
		spec: func(h *history, seen set) any {
			return liveAdditions(h, seen, func(add, r *event) bool {
				return r.k == add.k && (r.do == "removekey" || r.do == "remove" && r.e == add.e)
			})
		},
		observe: func(v crdt.ORMultiMap[string, string]) any {
			all := map[string][]string{}
			for k := range v.Keys() {
				all[k] = slices.Collect(v.At(k))
			}
			return all
		},
	}
}

// latest returns the writes of a set that nobody has replaced or removed, and of these the
// one of the highest time, then the lowest origin.
func latest(h *history, in set, k string) *event {
	var best *event
	h.each(in, func(e *event) {
		if e.do != "put" || e.k != k || h.over(in, e, func(r *event) bool { return r.k == k }) {
			return
		}
		if best == nil || e.settled > best.settled || e.settled == best.settled && e.at < best.at {
			best = e
		}
	})
	return best
}

// timed says what time a write has got.
func timed(h *history, e *event) {
	e.settled = e.n
	if before := latest(h, e.seen, e.k); before != nil {
		e.settled = max(e.n, before.settled+1)
	}
}

func lwwmaps() *model[crdt.LWWMap[string, string]] {
	return &model[crdt.LWWMap[string, string]]{
		draw:    drawing("put", "put", "remove"),
		resolve: timed,
		apply: func(v crdt.LWWMap[string, string], e *event) crdt.LWWMap[string, string] {
			if e.do == "put" {
				return v.Put(e.at, e.n, e.k, e.e)
			}
			return v.Remove(e.k)
		},
		spec: func(h *history, seen set) any {
			all := map[string]string{}
			for _, k := range []string{"a", "b", "c"} {
				if e := latest(h, seen, k); e != nil {
					all[k] = e.e
				}
			}
			return all
		},
		observe: func(v crdt.LWWMap[string, string]) any { return maps.Collect(v.All()) },
	}
}

func lwwregisters() *model[crdt.LWWRegister[string]] {
	return &model[crdt.LWWRegister[string]]{
		draw: func(src crdttest.Source) event {
			e := drawing("put")(src)
			e.k = ""
			return e
		},
		resolve: timed,
		apply: func(v crdt.LWWRegister[string], e *event) crdt.LWWRegister[string] {
			return v.Set(e.at, e.n, e.e)
		},
		spec: func(h *history, seen set) any {
			if e := latest(h, seen, ""); e != nil {
				return e.e
			}
			return ""
		},
		observe: func(v crdt.LWWRegister[string]) any {
			s, _ := v.Value()
			return s
		},
	}
}

// firstWrites is the register of which the first write wins: of writes that have not seen
// each other the one of the lowest time, then the lowest origin.
func firstWrites() *model[crdt.LWWRegister[string]] {
	m := lwwregisters()
	m.resolve = nil
	m.apply = func(v crdt.LWWRegister[string], e *event) crdt.LWWRegister[string] {
		return v.SetFirst(e.at, e.n, e.e)
	}
	m.spec = func(h *history, seen set) any {
		var best *event
		h.each(seen, func(e *event) {
			if e.seen == 0 && (best == nil || e.n < best.n || e.n == best.n && e.at < best.at) {
				best = e
			}
		})
		if best == nil {
			return ""
		}
		return best.e
	}
	return m
}

func mvregisters() *model[crdt.MVRegister[string]] {
	return &model[crdt.MVRegister[string]]{
		draw: drawing("set", "set", "clear"),
		apply: func(v crdt.MVRegister[string], e *event) crdt.MVRegister[string] {
			if e.do == "set" {
				return v.Set(e.at, e.e)
			}
			return v.Clear()
		},
		spec: func(h *history, seen set) any {
			all := []string{}
			h.each(seen, func(e *event) {
				if e.do == "set" && !h.over(seen, e, func(*event) bool { return true }) {
					all = append(all, e.e)
				}
			})
			slices.Sort(all)
			return all
		},
		// Retirement changes the order of the contents.
		observe: func(v crdt.MVRegister[string]) any {
			return append([]string{}, slices.Sorted(slices.Values(v.Values()))...)
		},
	}
}

// counted is what each origin has counted at each key since its part was last taken back
// there, of parts that are not taken back now.
func counted(h *history, seen set) map[string]int64 {
	type part struct {
		at crdt.Origin
		k  string
	}
	all, last := map[string]int64{}, map[part]*event{}
	sums := map[part]int64{}
	removes := func(k string) func(*event) bool {
		return func(r *event) bool { return r.do == "remove" && r.k == k }
	}
	h.each(seen, func(e *event) {
		if e.do != "add" {
			return
		}
		p := part{e.at, e.k}
		if l := last[p]; l != nil && h.over(e.seen, l, removes(e.k)) {
			sums[p] = 0
		}
		last[p] = e
		sums[p] += e.n
	})
	for p, l := range last {
		if !h.over(seen, l, removes(p.k)) {
			all[p.k] += sums[p]
		}
	}
	return all
}

func pncountermaps() *model[crdt.PNCounterMap[string]] {
	return &model[crdt.PNCounterMap[string]]{
		draw: drawing("add", "add", "add", "remove"),
		apply: func(v crdt.PNCounterMap[string], e *event) crdt.PNCounterMap[string] {
			if e.do == "add" {
				return v.Add(e.at, e.k, e.n)
			}
			return v.Remove(e.k)
		},
		spec:    func(h *history, seen set) any { return counted(h, seen) },
		observe: func(v crdt.PNCounterMap[string]) any { return maps.Collect(v.All()) },
	}
}

type mapOfCounters = crdt.ORMap[string, crdt.PNCounter]

func ormapsOfCounters() *model[mapOfCounters] {
	return &model[mapOfCounters]{
		draw: drawing("add", "add", "add", "remove"),
		apply: func(v mapOfCounters, e *event) mapOfCounters {
			if e.do == "add" {
				return v.Update(e.at, e.k, func(c crdt.PNCounter) crdt.PNCounter { return c.Add(e.at, e.n) })
			}
			return v.Remove(e.k)
		},
		spec: func(h *history, seen set) any { return counted(h, seen) },
		observe: func(v mapOfCounters) any {
			all := map[string]int64{}
			for k, c := range v.All() {
				all[k] = c.Value()
			}
			return all
		},
	}
}

type mapOfSets = crdt.ORMap[string, crdt.ORSet[string]]

// keptSets is what the specification says of maps of sets.
func keptSets(h *history, seen set) any {
	sets := liveAdditions(h, seen, func(add, r *event) bool {
		return r.k == add.k && (r.do == "remove" || r.do == "drop" && r.e == add.e)
	})
	h.each(seen, func(e *event) {
		if e.do != "remove" && sets[e.k] == nil && !h.over(seen, e, func(r *event) bool { return r.do == "remove" && r.k == e.k }) {
			sets[e.k] = []string{}
		}
	})
	return sets
}

// changeSet is an update of one of the sets.
func changeSet(v crdt.ORSet[string], e *event) crdt.ORSet[string] {
	switch e.do {
	case "add":
		return v.Add(e.at, e.e)
	case "drop":
		return v.Remove(e.e)
	}
	return v
}

func ormapsOfSets() *model[mapOfSets] {
	return &model[mapOfSets]{
		draw: drawing("add", "add", "add", "drop", "touch", "remove"),
		apply: func(v mapOfSets, e *event) mapOfSets {
			if e.do == "remove" {
				return v.Remove(e.k)
			}
			return v.Update(e.at, e.k, func(s crdt.ORSet[string]) crdt.ORSet[string] { return changeSet(s, e) })
		},
		spec:    keptSets,
		observe: readSets,
	}
}

func readSets(v mapOfSets) any {
	all := map[string][]string{}
	for k, s := range v.All() {
		all[k] = append([]string{}, slices.Collect(s.All())...)
	}
	return all
}

type mapOfMaps = crdt.ORMap[string, mapOfSets]

// ormapsOfMaps has the maps of sets two levels deep, below one of two keys, which is
// removed now and then.
func ormapsOfMaps() *model[mapOfMaps] {
	outer := func(e *event) string { return map[bool]string{true: "even", false: "odd"}[e.n%2 == 0] }
	return &model[mapOfMaps]{
		draw: drawing("add", "add", "add", "add", "drop", "touch", "remove", "forget"),
		apply: func(v mapOfMaps, e *event) mapOfMaps {
			if e.do == "forget" {
				return v.Remove(outer(e))
			}
			return v.Update(e.at, outer(e), func(m mapOfSets) mapOfSets {
				if e.do == "remove" {
					return m.Remove(e.k)
				}
				return m.Update(e.at, e.k, func(s crdt.ORSet[string]) crdt.ORSet[string] { return changeSet(s, e) })
			})
		},
		spec: func(h *history, seen set) any {
			all := map[string]any{}
			for _, k := range []string{"even", "odd"} {
				// What happens under the key, until a removal has seen it.
				under := set(0)
				h.each(seen, func(e *event) {
					if e.do != "forget" && outer(e) == k && !h.over(seen, e, func(r *event) bool { return r.do == "forget" && outer(r) == k }) {
						under |= 1 << e.id
					}
				})
				if under != 0 {
					all[k] = keptSets(h, under)
				}
			}
			return all
		},
		observe: func(v mapOfMaps) any {
			all := map[string]any{}
			for k, m := range v.All() {
				all[k] = readSets(m)
			}
			return all
		},
	}
}

// peak is a type of a user's own, without deltas: the highest number seen.
type peak struct{ n int64 }

func (p peak) TypeName() string { return "peak" }

func (p peak) Merge(o peak) peak { return peak{max(p.n, o.n)} }

func (p peak) AppendBinary(dst []byte) ([]byte, error) {
	return binary.BigEndian.AppendUint64(dst, uint64(p.n)), nil
}

func (p *peak) UnmarshalBinary(b []byte) error {
	if len(b) != 8 {
		return fmt.Errorf("%w: %d bytes of a peak", crdt.ErrMalformed, len(b))
	}
	p.n = int64(binary.BigEndian.Uint64(b))
	return nil
}

func peaks() *model[peak] {
	return &model[peak]{
		draw:  drawing("reach"),
		apply: func(v peak, e *event) peak { return peak{max(v.n, e.n)} },
		spec: func(h *history, seen set) any {
			top := int64(0)
			h.each(seen, func(e *event) { top = max(top, e.n) })
			return top
		},
		observe: func(v peak) any { return v.n },
	}
}

type mapOfPeaks = crdt.ORMap[string, peak]

// kept returns the whole values that updates have left at a key.
func kept(h *history, in set, k string) (top int64, is bool) {
	h.each(in, func(e *event) {
		if e.do == "reach" && e.k == k && !h.over(in, e, func(r *event) bool { return r.k == k }) {
			top, is = max(top, e.settled), true
		}
	})
	return top, is
}

func ormapsOfPeaks() *model[mapOfPeaks] {
	return &model[mapOfPeaks]{
		draw: drawing("reach", "reach", "remove"),
		resolve: func(h *history, e *event) {
			top, _ := kept(h, e.seen, e.k)
			e.settled = max(top, e.n)
		},
		apply: func(v mapOfPeaks, e *event) mapOfPeaks {
			if e.do == "remove" {
				return v.Remove(e.k)
			}
			return v.Update(e.at, e.k, func(p peak) peak { return peak{max(p.n, e.n)} })
		},
		spec: func(h *history, seen set) any {
			all := map[string]int64{}
			for _, k := range []string{"a", "b", "c"} {
				if top, is := kept(h, seen, k); is {
					all[k] = top
				}
			}
			return all
		},
		observe: func(v mapOfPeaks) any {
			all := map[string]int64{}
			for k, p := range v.All() {
				all[k] = p.n
			}
			return all
		},
	}
}
