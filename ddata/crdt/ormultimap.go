// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package crdt

import "iter"

// ORMultiMap is a map from keys to sets of elements, with the rules of [ORSet] for each
// element of each key: adding wins, and removing a key takes back the elements it has seen
// there. A key without elements is not in the map. It is the map of sets of Almeida et al.
// 2018, section 7.4, with one context for all. Its zero value is empty.
type ORMultiMap[K, E Key] struct {
	f *facts[keyPair[K, E], unit]
}

var (
	_ Value[ORMultiMap[string, int]]   = ORMultiMap[string, int]{}
	_ Differ[ORMultiMap[string, int]]  = ORMultiMap[string, int]{}
	_ Retirer[ORMultiMap[string, int]] = ORMultiMap[string, int]{}
	_ causal[ORMultiMap[string, int]]  = ORMultiMap[string, int]{}
)

// Add returns the map with an element at a key.
func (m ORMultiMap[K, E]) Add(at Origin, k K, e E) ORMultiMap[K, E] {
	f, p := orEmpty(m.f), keyPair[K, E]{k, e}
	return ORMultiMap[K, E]{f.apply(f.about(p), fact[keyPair[K, E], unit]{key: p, dot: f.context.next(at)})}
}

// Remove returns the map without an element at a key.
func (m ORMultiMap[K, E]) Remove(k K, e E) ORMultiMap[K, E] {
	f := orEmpty(m.f)
	return ORMultiMap[K, E]{orNil(f.apply(f.about(keyPair[K, E]{k, e})))}
}

// RemoveKey returns the map without the elements it has at a key.
func (m ORMultiMap[K, E]) RemoveKey(k K) ORMultiMap[K, E] {
	var back []fact[keyPair[K, E], unit]
	m.at(k, func(x *fact[keyPair[K, E], unit]) bool {
		back = append(back, *x)
		return true
	})
	return ORMultiMap[K, E]{orNil(orEmpty(m.f).apply(back))}
}

// at calls yield for the facts about a key.
func (m ORMultiMap[K, E]) at(k K, yield func(*fact[keyPair[K, E], unit]) bool) {
	orEmpty(m.f).tree.scan(func(x *fact[keyPair[K, E], unit]) bool { return x.key.k < k },
		func(x *fact[keyPair[K, E], unit]) bool { return x.key.k == k && yield(x) })
}

// Has reports whether an element is at a key.
func (m ORMultiMap[K, E]) Has(k K, e E) bool { return orEmpty(m.f).has(keyPair[K, E]{k, e}) }

// At returns the elements at a key in ascending order.
func (m ORMultiMap[K, E]) At(k K) iter.Seq[E] {
	return func(yield func(E) bool) {
		var last *E
		m.at(k, func(x *fact[keyPair[K, E], unit]) bool {
			if last != nil && *last == x.key.e {
				return true
			}
			last = &x.key.e
			return yield(x.key.e)
		})
	}
}

// Len returns the number of elements of all keys together.
func (m ORMultiMap[K, E]) Len() int { return orEmpty(m.f).keys }

// Keys returns the keys that have elements in ascending order.
func (m ORMultiMap[K, E]) Keys() iter.Seq[K] {
	return func(yield func(K) bool) {
		var last *K
		for k := range m.All() {
			if last != nil && *last == k {
				continue
			}
			last = &k
			if !yield(k) {
				return
			}
		}
	}
}

// All returns each element with its key, by key and element in ascending order.
func (m ORMultiMap[K, E]) All() iter.Seq2[K, E] {
	return func(yield func(K, E) bool) {
		orEmpty(m.f).eachKey(func(x *fact[keyPair[K, E], unit]) bool { return yield(x.key.k, x.key.e) })
	}
}

// TypeName is "ormultimap[...,...]".
func (m ORMultiMap[K, E]) TypeName() string {
	return "ormultimap[" + keyName[K]() + "," + keyName[E]() + "]"
}

// Merge returns the join of both.
func (m ORMultiMap[K, E]) Merge(other ORMultiMap[K, E]) ORMultiMap[K, E] {
	return ORMultiMap[K, E]{orNil(orEmpty(m.f).merge(orEmpty(other.f)))}
}

// Delta returns what mutators have added and removed since Settled.
func (m ORMultiMap[K, E]) Delta() (ORMultiMap[K, E], bool) {
	d := orEmpty(m.f).pending
	return ORMultiMap[K, E]{d}, d != nil
}

// Settled returns the map without pending delta.
func (m ORMultiMap[K, E]) Settled() ORMultiMap[K, E] {
	return ORMultiMap[K, E]{orNil(orEmpty(m.f).settled())}
}

// Retire renames the events of the origins that are gone to events of origin zero.
func (m ORMultiMap[K, E]) Retire(gone func(Origin) bool) ORMultiMap[K, E] {
	return ORMultiMap[K, E]{orNil(orEmpty(m.f).retire(gone, nil))}
}

// Size returns about how many bytes of memory the map takes.
func (m ORMultiMap[K, E]) Size() int { return orEmpty(m.f).footprint() }

// AppendBinary appends the canonical encoding. It does not fail.
func (m ORMultiMap[K, E]) AppendBinary(dst []byte) ([]byte, error) { return orEmpty(m.f).append(dst) }

// UnmarshalBinary decodes what AppendBinary has written.
func (m *ORMultiMap[K, E]) UnmarshalBinary(b []byte) error {
	f, err := decodeFacts[keyPair[K, E], unit](b)
	if err == nil {
		m.f = orNil(f)
	}
	return err
}

func (m ORMultiMap[K, E]) store() store { return orEmpty(m.f) }

func (m ORMultiMap[K, E]) with(f store) ORMultiMap[K, E] {
	return ORMultiMap[K, E]{orNil(f.(*facts[keyPair[K, E], unit]))}
}
