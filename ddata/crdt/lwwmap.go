// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package crdt

import "iter"

// LWWMap is a map of which the last write to a key wins, by the rules of [LWWRegister] for
// time and ties; a write that has not seen a removal survives it. Its facts are those of a
// map of registers with one context (Almeida et al. 2018, section 7.4). Its zero value is
// empty.
//
// Nothing is kept of the time of a key that was removed: the first write after the removal has the time that it is
// given.
type LWWMap[K Key, V any] struct {
	f *facts[singleKey[K], timedContent[V]]
}

var (
	_ Value[LWWMap[string, int]]   = LWWMap[string, int]{}
	_ Differ[LWWMap[string, int]]  = LWWMap[string, int]{}
	_ Retirer[LWWMap[string, int]] = LWWMap[string, int]{}
	_ causal[LWWMap[string, int]]  = LWWMap[string, int]{}
)

// Put returns the map with a content at a key, written now: a time in any unit, as long as
// all writers have the same. It counts as at least one later than what it replaces.
func (m LWWMap[K, V]) Put(at Origin, now int64, k K, v V) LWWMap[K, V] {
	f, key := orEmpty(m.f), singleKey[K]{k}
	back := f.about(key)
	for _, x := range back {
		now = after(now, x.payload.time)
	}
	return LWWMap[K, V]{f.apply(back, fact[singleKey[K], timedContent[V]]{
		payload: timedContent[V]{at, now, ownedCopy(v)}, key: key, dot: f.context.next(at),
	})}
}

// Remove returns the map without a key.
func (m LWWMap[K, V]) Remove(k K) LWWMap[K, V] {
	f := orEmpty(m.f)
	return LWWMap[K, V]{orNil(f.apply(f.about(singleKey[K]{k})))}
}

// Get returns the content of a key, and whether it is in the map.
func (m LWWMap[K, V]) Get(k K) (V, bool) {
	var best *timedContent[V]
	orEmpty(m.f).at(singleKey[K]{k}, func(x *fact[singleKey[K], timedContent[V]]) bool {
		if best == nil || x.payload.wins(*best) {
			best = &x.payload
		}
		return true
	})
	if best == nil {
		var zero V
		return zero, false
	}
	return ownedCopy(best.v), true
}

// Len returns the number of keys.
func (m LWWMap[K, V]) Len() int { return orEmpty(m.f).keys }

// All returns the keys in ascending order with their contents.
func (m LWWMap[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		orEmpty(m.f).eachKey(func(x *fact[singleKey[K], timedContent[V]]) bool {
			v, _ := m.Get(x.key.k)
			return yield(x.key.k, v)
		})
	}
}

// Replaces implements [Replacer].
func (LWWMap[K, V]) Replaces() {}

// TypeName is "lwwmap[...,...]".
func (m LWWMap[K, V]) TypeName() string {
	return "lwwmap[" + keyName[K]() + "," + contentName[V]() + "]"
}

// Merge returns the join of both.
func (m LWWMap[K, V]) Merge(other LWWMap[K, V]) LWWMap[K, V] {
	return LWWMap[K, V]{orNil(orEmpty(m.f).merge(orEmpty(other.f)))}
}

// Delta returns what mutators have added and removed since Settled.
func (m LWWMap[K, V]) Delta() (LWWMap[K, V], bool) {
	d := orEmpty(m.f).pending
	return LWWMap[K, V]{d}, d != nil
}

// Settled returns the map without pending delta.
func (m LWWMap[K, V]) Settled() LWWMap[K, V] { return LWWMap[K, V]{orNil(orEmpty(m.f).settled())} }

// Retire renames the events of the origins that are gone to events of origin zero.
// Ties go on being broken by the origins that wrote.
func (m LWWMap[K, V]) Retire(gone func(Origin) bool) LWWMap[K, V] {
	return LWWMap[K, V]{orNil(orEmpty(m.f).retire(gone, nil))}
}

// Size returns about how many bytes of memory the map takes.
func (m LWWMap[K, V]) Size() int { return orEmpty(m.f).footprint() }

// AppendBinary appends the canonical encoding. It fails with [ErrType] if V has no encoding.
func (m LWWMap[K, V]) AppendBinary(dst []byte) ([]byte, error) { return orEmpty(m.f).append(dst) }

// UnmarshalBinary decodes what AppendBinary has written.
func (m *LWWMap[K, V]) UnmarshalBinary(b []byte) error {
	f, err := decodeFacts[singleKey[K], timedContent[V]](b)
	if err == nil {
		m.f = orNil(f)
	}
	return err
}

func (m LWWMap[K, V]) store() store { return orEmpty(m.f) }

func (m LWWMap[K, V]) with(f store) LWWMap[K, V] {
	return LWWMap[K, V]{orNil(f.(*facts[singleKey[K], timedContent[V]]))}
}
