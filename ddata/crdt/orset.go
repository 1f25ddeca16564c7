// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package crdt

import "iter"

// ORSet is a set with removal in which adding wins: a removal removes the additions that it has seen, and an element
// stays as long as one of its additions was seen by no removal (Shapiro et
// al. 2011, specification 15; optimized as in Bieniusa et al. 2012, figure 3, so that
// nothing is left of what was removed; as a delta Almeida et al. 2018, figure 8). Its zero
// value is empty.
type ORSet[E Key] struct{ f *facts[singleKey[E], unit] }

var (
	_ Value[ORSet[string]]   = ORSet[string]{}
	_ Differ[ORSet[string]]  = ORSet[string]{}
	_ Retirer[ORSet[string]] = ORSet[string]{}
	_ causal[ORSet[string]]  = ORSet[string]{}
)

// Add returns the set with an element. Adding an element that is there already protects
// it from removals that have not seen this addition.
func (s ORSet[E]) Add(at Origin, e E) ORSet[E] {
	f := orEmpty(s.f)
	return ORSet[E]{f.apply(f.about(singleKey[E]{e}), fact[singleKey[E], unit]{key: singleKey[E]{e}, dot: f.context.next(at)})}
}

// Remove returns the set without an element. It takes no origin, because a removal is no event: it removes those that
// it has seen.
func (s ORSet[E]) Remove(e E) ORSet[E] {
	f := orEmpty(s.f)
	return ORSet[E]{orNil(f.apply(f.about(singleKey[E]{e})))}
}

// Clear returns the set without all the elements it has.
func (s ORSet[E]) Clear() ORSet[E] {
	f := orEmpty(s.f)
	return ORSet[E]{orNil(f.apply(f.all()))}
}

// Has reports whether an element is in the set.
func (s ORSet[E]) Has(e E) bool { return orEmpty(s.f).has(singleKey[E]{e}) }

// Len returns the number of elements.
func (s ORSet[E]) Len() int { return orEmpty(s.f).keys }

// All returns the elements in ascending order.
func (s ORSet[E]) All() iter.Seq[E] {
	return func(yield func(E) bool) {
		orEmpty(s.f).eachKey(func(x *fact[singleKey[E], unit]) bool { return yield(x.key.k) })
	}
}

// TypeName is "orset[...]".
func (s ORSet[E]) TypeName() string { return "orset[" + keyName[E]() + "]" }

// Merge returns the join of both.
func (s ORSet[E]) Merge(other ORSet[E]) ORSet[E] {
	return ORSet[E]{orNil(orEmpty(s.f).merge(orEmpty(other.f)))}
}

// Delta returns what mutators have added and removed since Settled.
func (s ORSet[E]) Delta() (ORSet[E], bool) {
	d := orEmpty(s.f).pending
	return ORSet[E]{d}, d != nil
}

// Settled returns the set without pending delta.
func (s ORSet[E]) Settled() ORSet[E] { return ORSet[E]{orNil(orEmpty(s.f).settled())} }

// Retire renames the events of the origins that are gone to events of origin zero.
func (s ORSet[E]) Retire(gone func(Origin) bool) ORSet[E] {
	return ORSet[E]{orNil(orEmpty(s.f).retire(gone, nil))}
}

// Size returns about how many bytes of memory the set takes.
func (s ORSet[E]) Size() int { return orEmpty(s.f).footprint() }

// AppendBinary appends the canonical encoding. It does not fail.
func (s ORSet[E]) AppendBinary(dst []byte) ([]byte, error) { return orEmpty(s.f).append(dst) }

// UnmarshalBinary decodes what AppendBinary has written.
func (s *ORSet[E]) UnmarshalBinary(b []byte) error {
	f, err := decodeFacts[singleKey[E], unit](b)
	if err == nil {
		s.f = orNil(f)
	}
	return err
}

func (s ORSet[E]) store() store { return orEmpty(s.f) }

func (s ORSet[E]) with(f store) ORSet[E] { return ORSet[E]{orNil(f.(*facts[singleKey[E], unit]))} }
