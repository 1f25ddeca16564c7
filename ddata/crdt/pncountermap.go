// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package crdt

import (
	"encoding/binary"
	"iter"
	"math"
)

// PNCounterMap is a map from keys to counters that grow and shrink. For each key it holds
// one fact of each origin, which says all that this origin has counted since its count was
// last removed: the dot store of the counter of Almeida et al. 2018, section 7.4. Its zero
// value is empty.
//
// A removal removes the counts that it has seen. An origin that counts at the same time, without having seen the
// removal, keeps what it has counted there before, also the part that the removal has seen; the counts of other origins
// are gone. So no count is lost that the removal has not seen, but some of what was removed may come back. For a
// counter that has to be reset without that, use a new key.
type PNCounterMap[K Key] struct{ f *facts[singleKey[K], amount] }

var (
	_ Value[PNCounterMap[string]]   = PNCounterMap[string]{}
	_ Differ[PNCounterMap[string]]  = PNCounterMap[string]{}
	_ Retirer[PNCounterMap[string]] = PNCounterMap[string]{}
	_ causal[PNCounterMap[string]]  = PNCounterMap[string]{}
)

// Add returns the map with n more at a key, or less if n is negative. A key that is not
// in the map begins at zero, and is in the map afterwards even if n is zero.
func (m PNCounterMap[K]) Add(at Origin, k K, n int64) PNCounterMap[K] {
	f, key := orEmpty(m.f), singleKey[K]{k}
	x := fact[singleKey[K], amount]{key: key, dot: f.context.next(at)}
	var back []fact[singleKey[K], amount]
	for _, y := range f.about(key) {
		if y.dot.at == at {
			x.payload = x.payload.fold(y.payload)
			back = append(back, y)
		}
	}
	up, down := amounts(n)
	x.payload = x.payload.fold(amount{up, down})
	return PNCounterMap[K]{f.apply(back, x)}
}

// Remove returns the map without a key.
func (m PNCounterMap[K]) Remove(k K) PNCounterMap[K] {
	f := orEmpty(m.f)
	return PNCounterMap[K]{orNil(f.apply(f.about(singleKey[K]{k})))}
}

// Get returns the count of a key, and whether it is in the map.
func (m PNCounterMap[K]) Get(k K) (int64, bool) {
	sum, is := amount{}, false
	orEmpty(m.f).at(singleKey[K]{k}, func(x *fact[singleKey[K], amount]) bool {
		sum, is = sum.fold(x.payload), true
		return true
	})
	return sum.value(), is
}

// Len returns the number of keys.
func (m PNCounterMap[K]) Len() int { return orEmpty(m.f).keys }

// All returns the keys in ascending order with their counts.
func (m PNCounterMap[K]) All() iter.Seq2[K, int64] {
	return func(yield func(K, int64) bool) {
		orEmpty(m.f).eachKey(func(x *fact[singleKey[K], amount]) bool {
			n, _ := m.Get(x.key.k)
			return yield(x.key.k, n)
		})
	}
}

// TypeName is "pncountermap[...]".
func (m PNCounterMap[K]) TypeName() string { return "pncountermap[" + keyName[K]() + "]" }

// amount is what one origin has counted up and down.
type amount struct{ up, down uint64 }

// fold returns the sum of two amounts.
func (a amount) fold(b amount) amount {
	return amount{bounded(a.up, b.up), bounded(a.down, b.down)}
}

func (a amount) value() int64 {
	return int64(min(a.up, math.MaxInt64)) - int64(min(a.down, math.MaxInt64))
}

func (a amount) appendTo(dst []byte) ([]byte, error) { //nolint:unparam // Other payloads can fail.
	return binary.AppendUvarint(binary.AppendUvarint(dst, a.up), a.down), nil
}

func (a amount) readFrom(r *reader) amount { return amount{r.uint(maxCount), r.uint(maxCount)} }

func (a amount) size() int { return 0 }

// Merge returns the join of both.
func (m PNCounterMap[K]) Merge(other PNCounterMap[K]) PNCounterMap[K] {
	return PNCounterMap[K]{orNil(orEmpty(m.f).merge(orEmpty(other.f)))}
}

// Delta returns what mutators have added and removed since Settled.
func (m PNCounterMap[K]) Delta() (PNCounterMap[K], bool) {
	d := orEmpty(m.f).pending
	return PNCounterMap[K]{d}, d != nil
}

// Settled returns the map without pending delta.
func (m PNCounterMap[K]) Settled() PNCounterMap[K] {
	return PNCounterMap[K]{orNil(orEmpty(m.f).settled())}
}

// Retire renames the events of the origins that are gone to events of origin zero,
// and adds up their counts.
func (m PNCounterMap[K]) Retire(gone func(Origin) bool) PNCounterMap[K] {
	return PNCounterMap[K]{orNil(orEmpty(m.f).retire(gone, amount.fold))}
}

// Size returns about how many bytes of memory the map takes.
func (m PNCounterMap[K]) Size() int { return orEmpty(m.f).footprint() }

// AppendBinary appends the canonical encoding. It does not fail.
func (m PNCounterMap[K]) AppendBinary(dst []byte) ([]byte, error) { return orEmpty(m.f).append(dst) }

// UnmarshalBinary decodes what AppendBinary has written.
func (m *PNCounterMap[K]) UnmarshalBinary(b []byte) error {
	f, err := decodeFacts[singleKey[K], amount](b)
	if err == nil {
		m.f = orNil(f)
	}
	return err
}

func (m PNCounterMap[K]) store() store { return orEmpty(m.f) }

func (m PNCounterMap[K]) with(f store) PNCounterMap[K] {
	return PNCounterMap[K]{orNil(f.(*facts[singleKey[K], amount]))}
}
