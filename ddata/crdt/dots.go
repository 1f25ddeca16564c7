// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package crdt

import (
	"cmp"
	"encoding/binary"
	"slices"
	"sort"
)

// Causal contexts: which events a value has seen. An event is named by a dot: its origin, and its number there. A
// context is a version vector of the events that are known without a gap, and a cloud of dots beyond them (Almeida et
// al. 2018, section 7.1). Both are kept as one sorted list of spans: a span that begins at 1 is an entry of the vector,
// any other one is part of the cloud, and spans that touch become one.
//
// Because of the cloud, deltas may arrive in any order, twice, and with gaps: no delta needs the ones before it, so
// that causal delivery is not needed.

// dot names one event. Its number is 1 or more.
type dot struct {
	at Origin
	n  uint64
}

func (d dot) compare(o dot) int {
	if d.at != o.at {
		return cmp.Compare(d.at, o.at)
	}
	return cmp.Compare(d.n, o.n)
}

// span is a range of dots of one origin, both ends included.
type span struct {
	at     Origin
	lo, hi uint64
}

// dots is a set of dots: spans in ascending order that neither overlap nor touch. It
// never changes.
type dots []span

// has reports whether the set holds a dot.
func (s dots) has(d dot) bool {
	if len(s) <= 4 { // As in the contexts of deltas, which are searched for each fact of a large value.
		for i := range s {
			if s[i].at == d.at && s[i].lo <= d.n && d.n <= s[i].hi {
				return true
			}
		}
		return false
	}
	i := sort.Search(len(s), func(i int) bool { return s[i].at > d.at || s[i].at == d.at && s[i].lo > d.n })
	return i > 0 && s[i-1].at == d.at && d.n <= s[i-1].hi
}

// last returns the highest number of an origin, zero if it has none.
func (s dots) last(at Origin) uint64 {
	i := sort.Search(len(s), func(i int) bool { return s[i].at > at })
	if i == 0 || s[i-1].at != at {
		return 0
	}
	return s[i-1].hi
}

// next returns the dot of the next event of an origin.
func (s dots) next(at Origin) dot { return dot{at, s.last(at) + 1} }

// dotsOf returns the set of some dots, which it sorts.
func dotsOf(list []dot) dots {
	slices.SortFunc(list, dot.compare)
	var s dots
	for _, d := range list {
		s = s.push(span{d.at, d.n, d.n})
	}
	return s
}

// push adds a span that does not begin before the last one of the set. The set must not be shared yet.
func (s dots) push(x span) dots {
	if i := len(s) - 1; i >= 0 && s[i].at == x.at && x.lo <= s[i].hi+1 {
		s[i].hi = max(s[i].hi, x.hi)
		return s
	}
	return append(s, x)
}

// join returns the union of two sets, and s itself if that is the union.
func (s dots) join(o dots) dots {
	if len(o) == 0 || s.covers(o) {
		return s
	}
	out := make(dots, 0, len(s)+len(o))
	for i, j := 0, 0; i < len(s) || j < len(o); {
		if j == len(o) || i < len(s) && (dot{s[i].at, s[i].lo}).compare(dot{o[j].at, o[j].lo}) <= 0 {
			out = out.push(s[i])
			i++
		} else {
			out = out.push(o[j])
			j++
		}
	}
	return out
}

// covers reports whether every dot of o is in s.
func (s dots) covers(o dots) bool {
	i := 0
	for _, x := range o {
		for i < len(s) && (s[i].at < x.at || s[i].at == x.at && s[i].hi < x.lo) {
			i++
		}
		if i == len(s) || s[i].at != x.at || s[i].lo > x.lo || s[i].hi < x.hi {
			return false
		}
	}
	return true
}

// common returns how many dots are in both sets.
func (s dots) common(o dots) uint64 {
	n := uint64(0)
	for i, j := 0, 0; i < len(s) && j < len(o); {
		a, b := s[i], o[j]
		if a.at == b.at && a.lo <= b.hi && b.lo <= a.hi {
			n += min(a.hi, b.hi) - max(a.lo, b.lo) + 1
		}
		if (dot{a.at, a.hi}).compare(dot{b.at, b.hi}) < 0 {
			i++
		} else {
			j++
		}
	}
	return n
}

// origins returns the origins of the set in ascending order.
func (s dots) origins() []Origin {
	n := 0
	for i := range s {
		if i == 0 || s[i-1].at != s[i].at {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	all := make([]Origin, 0, n)
	for i := range s {
		if i == 0 || s[i-1].at != s[i].at {
			all = append(all, s[i].at)
		}
	}
	return all
}

// renaming gives new names to the events of retired origins: to an origin belongs the number after which its events are
// numbered in origin zero.
type renaming map[Origin]uint64

// retire returns the set after the origins that are gone have become part of origin zero, one after the other in
// ascending order, and the renaming; nil if there are none. Events that the set lacks below the last one of such an
// origin count as seen: no replica has them, so that none will come.
func (s dots) retire(gone func(Origin) bool) (dots, renaming) {
	var names renaming
	base := s.last(0)
	for _, at := range s.origins() {
		if at == 0 || !gone(at) {
			continue
		}
		if names == nil {
			names = renaming{}
		}
		names[at] = base
		base += s.last(at)
	}
	if names == nil {
		return s, nil
	}
	out := dots{{0, 1, base}}
	for _, x := range s {
		if _, is := names[x.at]; !is && x.at != 0 {
			out = append(out, x)
		}
	}
	return out, names
}

// of returns the name of a dot after the renaming.
func (r renaming) of(d dot) dot {
	if base, is := r[d.at]; is {
		return dot{0, base + d.n}
	}
	return d
}

// append appends the set: how many origins there are, then for each its difference from the one before and the number
// of its spans, and for each span the gap before it and its length less one.
func (s dots) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s.origins())))
	last := Origin(0)
	for len(s) > 0 {
		n := 1
		for n < len(s) && s[n].at == s[0].at {
			n++
		}
		dst = binary.AppendUvarint(dst, uint64(s[0].at-last))
		dst = binary.AppendUvarint(dst, uint64(n))
		end := uint64(0)
		for _, x := range s[:n] {
			dst = binary.AppendUvarint(dst, x.lo-end-1)
			dst = binary.AppendUvarint(dst, x.hi-x.lo)
			end = x.hi
		}
		last, s = s[0].at, s[n:]
	}
	return dst
}

// spans counts the spans of the set that comes next, as far as it can be read, without going on: it is for the capacity
// of a list.
func (r *reader) spans() (all int) {
	ahead := reader{b: r.b}
	for range ahead.count(4) {
		ahead.uint(^uint64(0))
		n := ahead.count(2)
		for range 2 * n {
			ahead.uint(maxCount)
		}
		if ahead.err != nil {
			return all
		}
		all += n
	}
	return all
}

// dots reads what append has written.
func (r *reader) dots() dots {
	s := make(dots, 0, r.spans())
	origins := r.count(4)
	for i, last := 0, Origin(0); i < origins && r.err == nil; i++ {
		at := last + Origin(r.uint(uint64(^Origin(0)-last)))
		spans := r.count(2)
		if i > 0 && at == last || spans == 0 {
			r.fail("an origin that is empty or doubled")
		}
		end := uint64(0)
		for j := 0; j < spans && r.err == nil; j++ {
			gap := r.uint(maxCount)
			if j > 0 && gap == 0 {
				r.fail("two ranges that touch")
			}
			lo := end + gap + 1
			hi := lo + r.uint(maxCount)
			if hi > maxCount {
				r.fail("an event of number %d", hi)
			}
			s = append(s, span{at, lo, hi})
			end = hi
		}
		last = at
	}
	return s
}

// table is how the encoding of a value writes dots: by the place of the origin in the context of the value.
type table struct {
	context dots
	origins []Origin
}

func newTable(context dots) *table { return &table{context, context.origins()} }

// append appends a dot of the context.
func (t *table) append(dst []byte, d dot) []byte {
	i, _ := slices.BinarySearch(t.origins, d.at)
	return binary.AppendUvarint(binary.AppendUvarint(dst, uint64(i)), d.n)
}

// read reads a dot, which must be one of the context.
func (t *table) read(r *reader) dot {
	i, n := r.uint(maxCount), r.uint(maxCount)
	if r.err != nil {
		return dot{}
	}
	if i >= uint64(len(t.origins)) || !t.context.has(dot{t.origins[i], n}) {
		r.fail("an event that the value has not seen")
		return dot{}
	}
	return dot{t.origins[i], n}
}
