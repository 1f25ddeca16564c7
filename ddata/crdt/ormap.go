// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package crdt

import (
	"iter"
)

// The map of values, as a user sees it: its mutators, the methods that read, and those that every value has. Its state,
// and most of the work, are in mapping.go.

// ORMap is a map from keys to values of any replicated type. Its zero value is empty.
//
// A removal removes what it has seen at the key. An update that has not seen the removal survives it, so that the key
// stays. What the value at the key is then depends on V:
//
//   - [ORSet], [ORMultiMap], [MVRegister], [LWWMap], [PNCounterMap] and ORMap itself share
//     the context of the map (Almeida et al. 2018, sections 7.3 and 7.4). The value is what
//     the removal has not seen: of a set, the elements that were added concurrently.
//   - Of other types with deltas, counters for example, the map keeps for each origin the
//     join of its own deltas since its part was last taken back, under its latest dot; the
//     value is the join of these parts. A removal takes the parts of which it has seen the
//     latest dot. An origin that updates concurrently keeps its whole part, also
//     what the removal has seen of it; the parts of the others are gone.
//   - Of types without deltas the map keeps the whole value that each update made, in place
//     of those that the update has seen; the value is the join of what is kept. An update
//     that is concurrent with a removal keeps all that its writer saw.
//
// With types of the second and third kind nothing is lost, but some of what was removed may
// come back. Only types of a user's own can lose something: if they number events by origin
// as counters do, and their deltas have numbers of other origins too, or they have no
// deltas, then what an origin counts from the beginning after a removal may be hidden by its
// old numbers in the part of another origin.
type ORMap[K Key, V Value[V]] struct{ s *mapping[K, V] }

var (
	_ Value[ORMap[string, GCounter]]   = ORMap[string, GCounter]{}
	_ Differ[ORMap[string, GCounter]]  = ORMap[string, GCounter]{}
	_ Retirer[ORMap[string, GCounter]] = ORMap[string, GCounter]{}
	_ causal[ORMap[string, GCounter]]  = ORMap[string, GCounter]{}
)

// Update returns the map with the value at a key changed by a function. The function is
// passed the value without pending delta, bottom if the key is not in the map. It has to
// make its result of that value, by mutators with the same origin. The key is in the map
// afterwards, even if the function changes nothing.
//
// Update panics if V shares the context of the map and the result was made of another
// value, whose events would be taken for events of the map.
func (m ORMap[K, V]) Update(at Origin, k K, change func(V) V) ORMap[K, V] {
	s := m.state()
	if isCausal[V]() {
		return ORMap[K, V]{s.updateNested(at, k, change)}
	}
	return ORMap[K, V]{s.updateParts(at, k, change)}
}

// Remove returns the map without a key.
func (m ORMap[K, V]) Remove(k K) ORMap[K, V] {
	s := m.state()
	back := s.marks.about(singleKey[K]{k})
	var dots []dot
	for _, x := range back {
		dots = append(dots, x.dot)
	}
	n, child := *s, s.child(k)
	if child != nil {
		dots = child.live(s.marks.context, dots)
		n.children = n.children.cut(slot[K, V]{k: k})
	}
	if len(dots) == 0 {
		return m
	}
	n.marks = s.marks.apply(back).settled()
	delta := &mapping[K, V]{marks: &facts[singleKey[K], share[V]]{context: dotsOf(dots)}}
	return ORMap[K, V]{n.with(s, delta).orNil()}
}

// Get returns the value at a key, and whether the key is in the map.
func (m ORMap[K, V]) Get(k K) (V, bool) {
	s := m.state()
	if child := s.child(k); child != nil {
		return s.open(child.under(s.marks.context)), true
	}
	v, is := s.parts(k)
	return v, is
}

// Has reports whether a key is in the map.
func (m ORMap[K, V]) Has(k K) bool {
	s := m.state()
	return s.marks.has(singleKey[K]{k}) || s.child(k) != nil
}

// Len returns the number of keys.
func (m ORMap[K, V]) Len() int {
	n := 0
	for range m.Keys() {
		n++
	}
	return n
}

// Keys returns the keys in ascending order.
func (m ORMap[K, V]) Keys() iter.Seq[K] {
	return func(yield func(K) bool) {
		s := m.state()
		x, y := s.marks.tree.cursor(), s.children.cursor()
		for x.item != nil || y.item != nil {
			var k K
			if y.item == nil || x.item != nil && x.item.key.k <= y.item.k {
				k = x.item.key.k
			} else {
				k = y.item.k
			}
			for x.item != nil && x.item.key.k == k {
				x.next()
			}
			if y.item != nil && y.item.k == k {
				y.next()
			}
			if !yield(k) {
				return
			}
		}
	}
}

// All returns the keys in ascending order with their values.
func (m ORMap[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for k := range m.Keys() {
			v, _ := m.Get(k)
			if !yield(k, v) {
				return
			}
		}
	}
}

// TypeName is "ormap[...,...]".
func (m ORMap[K, V]) TypeName() string { return "ormap[" + keyName[K]() + "," + typeName[V]() + "]" }

// Merge returns the join of both.
func (m ORMap[K, V]) Merge(other ORMap[K, V]) ORMap[K, V] {
	a, b := m.state(), other.state()
	context := a.marks.context.join(b.marks.context)
	if a.weight() < b.weight() {
		a, b = b, a
	}
	n := a.joinUnder(b, a.marks.context, b.marks.context, a.reach(b))
	marks := *n.marks
	marks.context, marks.pending = context, nil
	return ORMap[K, V]{(&mapping[K, V]{marks: &marks, children: n.children}).orNil()}
}

// Delta returns what mutators have added and removed since Settled.
func (m ORMap[K, V]) Delta() (ORMap[K, V], bool) {
	d := m.state().pending
	return ORMap[K, V]{d}, d != nil
}

// Settled returns the map without pending delta.
func (m ORMap[K, V]) Settled() ORMap[K, V] {
	if m.s == nil || m.s.pending == nil {
		return m
	}
	return ORMap[K, V]{(&mapping[K, V]{marks: m.s.marks, children: m.s.children}).orNil()}
}

// Retire renames the events of the origins that are gone to events of origin zero, joins
// their parts of each key, and retires the values.
func (m ORMap[K, V]) Retire(gone func(Origin) bool) ORMap[K, V] {
	s := m.state()
	context, names := s.marks.context.retire(gone)
	if names == nil {
		return m.Settled()
	}
	n := s.retired(names, gone)
	n.marks.context = context
	return ORMap[K, V]{n.orNil()}
}

// Size returns about how many bytes of memory the map takes.
func (m ORMap[K, V]) Size() int { return m.state().footprint() }

// AppendBinary appends the canonical encoding. It fails if that of a value does.
func (m ORMap[K, V]) AppendBinary(dst []byte) ([]byte, error) {
	s := m.state()
	dst = s.marks.context.append(append(dst, version))
	return s.appendFacts(dst, newTable(s.marks.context))
}

// UnmarshalBinary decodes what AppendBinary has written.
func (m *ORMap[K, V]) UnmarshalBinary(b []byte) error {
	r := newReader(b)
	context := r.dots()
	s := readMapping[K, V](r, newTable(context))
	s.marks.context = context
	if err := r.end(); err != nil {
		return err
	}
	m.s = s.orNil()
	return nil
}

func (m ORMap[K, V]) store() store { return m.state() }

func (m ORMap[K, V]) with(s store) ORMap[K, V] { return ORMap[K, V]{s.(*mapping[K, V]).orNil()} }

func (m ORMap[K, V]) state() *mapping[K, V] {
	if m.s == nil {
		return &mapping[K, V]{marks: &facts[singleKey[K], share[V]]{}}
	}
	return m.s
}
