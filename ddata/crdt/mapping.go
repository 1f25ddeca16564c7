// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package crdt

import (
	"cmp"
	"encoding"
	"encoding/binary"
)

// The state of an ORMap. Each update leaves a mark at its key, a fact whose payload is the
// part of a value that the update's origin has contributed, if V is of a type that does not
// share the context. If it does, the payload is empty, and the store of the value is a kid.
//
// In the file: the state, updates of both sorts, the join, which does not read what a
// small delta does not touch, retirement, and the encoding.

// mapping is the state of an ORMap. The context is that of the marks, for the kids too.
type mapping[K Key, V Value[V]] struct {
	marks   *facts[one[K], share[V]]
	kids    tree[slot[K, V]]
	pending *mapping[K, V]
}

// slot is the store of the value at a key, never empty.
type slot[K Key, V any] struct {
	k     K
	store store
}

func (s slot[K, V]) compare(o *slot[K, V]) int { return cmp.Compare(s.k, o.k) }

// share is the part of a value that one origin has contributed.
type share[V Value[V]] struct{ v V }

func (s share[V]) appendTo(dst []byte) ([]byte, error) {
	if isCausal[V]() {
		return dst, nil
	}
	b, err := s.v.AppendBinary(nil)
	return appendBytes(dst, b), err
}

func (s share[V]) readFrom(r *reader) share[V] {
	if isCausal[V]() {
		return s
	}
	b := r.bytes()
	d, is := any(&s.v).(encoding.BinaryUnmarshaler)
	if !is {
		r.fail("%T cannot be decoded", s.v)
	}
	if r.err == nil {
		if err := d.UnmarshalBinary(b); err != nil {
			r.fail("%v", err)
		}
	}
	return s
}

func (s share[V]) size() int {
	if sized, is := any(s.v).(Sizer); is && !isCausal[V]() {
		return sized.Size()
	}
	return 0
}

// open returns the value of a store.
func (s *mapping[K, V]) open(inner store) V {
	var v V
	return any(v).(causal[V]).with(inner)
}

// bottom returns the store of bottom, for causal V.
func (s *mapping[K, V]) bottom() store {
	var v V
	return any(v).(causal[V]).store()
}

// kid returns the store at a key, nil if there is none.
func (s *mapping[K, V]) kid(k K) store {
	if x := s.kids.find(slot[K, V]{k: k}); x != nil {
		return x.store
	}
	return nil
}

// set puts the store of a key in its place. The mapping must not be shared yet.
func (s *mapping[K, V]) set(k K, inner store) {
	if inner.empty() {
		s.kids = s.kids.cut(slot[K, V]{k: k})
	} else {
		s.kids = s.kids.put(slot[K, V]{k, inner})
	}
}

// parts returns the join of what origins have contributed to a key.
func (s *mapping[K, V]) parts(k K) (v V, is bool) {
	s.marks.at(one[K]{k}, func(x *fact[one[K], share[V]]) bool {
		if is {
			v = v.Merge(x.payload.v)
		} else {
			v, is = x.payload.v, true
		}
		return true
	})
	return v, is
}

// with returns the mapping after a change of before that a delta describes.
func (s *mapping[K, V]) with(before, delta *mapping[K, V]) *mapping[K, V] {
	marks := *s.marks
	marks.context, marks.pending = s.marks.context.join(delta.marks.context), nil
	s.marks = &marks
	if before.pending != nil {
		delta = ORMap[K, V]{before.pending}.Merge(ORMap[K, V]{delta}).state()
	}
	s.pending = delta
	return s
}

// orNil returns nil for a mapping that says nothing and has seen nothing.
func (s *mapping[K, V]) orNil() *mapping[K, V] {
	if s.marks.keys == 0 && len(s.marks.context) == 0 && s.pending == nil {
		return nil
	}
	return s
}

// updateParts changes a value that does not share the context.
func (s *mapping[K, V]) updateParts(at Origin, k K, change func(V) V) *mapping[K, V] {
	key, mark := one[K]{k}, fact[one[K], share[V]]{}
	v, _ := s.parts(k)
	if d, is := any(v).(Differ[V]); is {
		v = d.Settled()
	}
	v = change(v)
	var back []fact[one[K], share[V]]
	d, differs := any(v).(Differ[V])
	for _, x := range s.marks.about(key) {
		if differs && x.dot.at != at {
			continue
		}
		back = append(back, x)
		if differs {
			mark.payload = x.payload
		}
	}
	if !differs {
		mark.payload.v = v
	} else if delta, is := d.Delta(); is {
		mark.payload.v = mark.payload.v.Merge(delta)
	}
	mark.key, mark.dot = key, s.marks.context.next(at)
	changed := s.marks.settled().change(back, mark)
	n := &mapping[K, V]{marks: changed, kids: s.kids}
	return n.with(s, &mapping[K, V]{marks: changed.pending})
}

// updateNested changes a value that shares the context.
func (s *mapping[K, V]) updateNested(at Origin, k K, change func(V) V) *mapping[K, V] {
	kid := s.kid(k)
	if kid == nil {
		kid = s.bottom()
	}
	inner := any(change(s.open(kid.under(s.marks.context)))).(causal[V]).store()
	delta, context := &mapping[K, V]{}, s.marks.context
	var seen dots
	if d := inner.delta(); d != nil {
		seen = d.own()
		context = context.join(seen)
		delta.set(k, d.bare())
	}
	if own := inner.own(); len(own) != len(context) || !own.covers(context) {
		panic("crdt: the function given to ORMap.Update returned a value that does not come from its argument")
	}
	marks := *s.marks
	marks.context, marks.pending = context, nil
	changed := marks.change(marks.about(one[K]{k}), fact[one[K], share[V]]{key: one[K]{k}, dot: context.next(at)})
	mark := *changed.pending
	mark.context = mark.context.join(seen)
	delta.marks = &mark
	n := &mapping[K, V]{marks: changed, kids: s.kids}
	n.set(k, inner.bare())
	return n.with(s, delta)
}

// weight is what decides which side of a join is the small one.
func (s *mapping[K, V]) weight() int { return s.marks.tree.size() + s.kids.size() }

// reach returns how far a join with a mapping that does not weigh more must reach.
func (s *mapping[K, V]) reach(o *mapping[K, V]) reach {
	mine, theirs := s.marks.context, o.marks.context
	switch {
	case !small(o.weight(), s.weight()):
		return everywhere
	case !unexplained(s.explains(o, mine, theirs, nil), mine, theirs):
		return atKeys
	}
	list := s.marks.explained(o.marks, mine, theirs, nil)
	s.touched(o, func(_ K, a, b store) { list = b.live(mine, a.live(theirs, list)) })
	if !unexplained(list, mine, theirs) {
		return inKids
	}
	return everywhere
}

// touched calls yield for the keys of o, of which a join with s changes the kids, and for
// both kids, bottom where there is none.
func (s *mapping[K, V]) touched(o *mapping[K, V], yield func(k K, mine, theirs store)) {
	if !isCausal[V]() {
		return
	}
	bottom := s.bottom()
	for k := range (ORMap[K, V]{o}).Keys() {
		mine, theirs := s.kid(k), o.kid(k)
		if mine == nil {
			mine = bottom
		}
		if theirs == nil {
			theirs = bottom
		}
		yield(k, mine, theirs)
	}
}

func (s *mapping[K, V]) explains(other store, mine, theirs dots, list []dot) []dot {
	o := other.(*mapping[K, V])
	list = s.marks.explained(o.marks, mine, theirs, list)
	s.touched(o, func(_ K, a, b store) { list = a.explains(b, mine, theirs, list) })
	return list
}

// joined returns the join of two mappings under two contexts, s itself if it is that. The
// result has no context unless it is one of the two.
func (s *mapping[K, V]) joined(o *mapping[K, V], mine, theirs dots, far reach) *mapping[K, V] {
	if s.weight() < o.weight() {
		s, o, mine, theirs, far = o, s, theirs, mine, everywhere
	}
	n := &mapping[K, V]{marks: s.marks.joined(o.marks, mine, theirs, far), kids: s.kids}
	inside := far
	if far == inKids {
		inside = everywhere
	}
	s.touched(o, func(k K, a, b store) {
		if joined := a.joins(b, mine, theirs, inside); joined != a {
			n.set(k, joined)
		}
	})
	if far == everywhere && isCausal[V]() {
		bottom := s.bottom()
		s.kids.each(func(x *slot[K, V]) bool {
			if o.marks.has(one[K]{x.k}) || o.kid(x.k) != nil {
				return true
			}
			if joined := x.store.joins(bottom, mine, theirs, everywhere); joined != x.store {
				n.set(x.k, joined)
			}
			return true
		})
	}
	if n.marks == s.marks && n.kids == s.kids {
		return s
	}
	return n
}

func (s *mapping[K, V]) bare() store {
	if s.marks.context == nil && s.pending == nil {
		return s
	}
	return &mapping[K, V]{marks: s.marks.bare().(*facts[one[K], share[V]]), kids: s.kids}
}

func (s *mapping[K, V]) under(context dots) store {
	return &mapping[K, V]{marks: s.marks.under(context).(*facts[one[K], share[V]]), kids: s.kids}
}

func (s *mapping[K, V]) own() dots { return s.marks.context }

func (s *mapping[K, V]) delta() store {
	if s.pending == nil {
		return nil
	}
	return s.pending
}

func (s *mapping[K, V]) empty() bool { return s.marks.keys == 0 && s.kids.root == nil }

func (s *mapping[K, V]) live(in dots, list []dot) []dot {
	list = s.marks.live(in, list)
	s.kids.each(func(x *slot[K, V]) bool {
		list = x.store.live(in, list)
		return true
	})
	return list
}

func (s *mapping[K, V]) joins(o store, mine, theirs dots, far reach) store {
	return s.joined(o.(*mapping[K, V]), mine, theirs, far)
}

// retired returns the mapping after a renaming, without context. The parts of origin zero
// become one before their values are retired, because values fold what is gone by adding:
// two parts that are folded apart would be joined, not added.
func (s *mapping[K, V]) retired(names renaming, gone func(Origin) bool) *mapping[K, V] {
	n := &mapping[K, V]{}
	if isCausal[V]() {
		n.marks = s.marks.retired(names, nil)
		var b builder[slot[K, V]]
		s.kids.each(func(x *slot[K, V]) bool {
			b.add(&slot[K, V]{x.k, x.store.renamed(names, gone)})
			return true
		})
		n.kids = b.tree()
		return n
	}
	n.marks = s.marks.retired(names, func(a, b share[V]) share[V] { return share[V]{a.v.Merge(b.v)} })
	var b builder[fact[one[K], share[V]]]
	n.marks.tree.each(func(x *fact[one[K], share[V]]) bool {
		y := *x
		if v, is := any(y.payload.v).(Retirer[V]); is {
			y.payload.v = v.Retire(gone)
		}
		b.add(&y)
		return true
	})
	n.marks.tree = b.tree()
	return n
}

func (s *mapping[K, V]) renamed(names renaming, gone func(Origin) bool) store {
	return s.retired(names, gone)
}

func (s *mapping[K, V]) footprint() int {
	n := s.marks.footprint()
	s.kids.each(func(x *slot[K, V]) bool {
		n += sizeOf(*x) + keySize(x.k) + x.store.footprint()
		return true
	})
	if s.pending != nil {
		n += s.pending.footprint()
	}
	return n
}

// appendFacts appends the marks, and then, if V shares the context, the number of kids and
// each with its key.
func (s *mapping[K, V]) appendFacts(dst []byte, t *table) ([]byte, error) {
	dst, err := s.marks.appendFacts(dst, t)
	if err != nil || !isCausal[V]() {
		return dst, err
	}
	dst = binary.AppendUvarint(dst, uint64(s.kids.size()))
	s.kids.each(func(x *slot[K, V]) bool {
		dst, err = x.store.appendFacts(appendKey(dst, x.k), t)
		return err == nil
	})
	return dst, err
}

func (s *mapping[K, V]) read(r *reader, t *table) store { return readMapping[K, V](r, t) }

// readMapping reads what appendFacts has written.
func readMapping[K Key, V Value[V]](r *reader, t *table) *mapping[K, V] {
	s := &mapping[K, V]{marks: readFacts[one[K], share[V]](r, t)}
	if !isCausal[V]() {
		return s
	}
	var b builder[slot[K, V]]
	var last K
	bottom := s.bottom()
	b.coming = r.count(2)
	for i := range b.coming {
		k := readKey[K](r)
		if i > 0 && k <= last {
			r.fail("keys out of order")
		}
		x := slot[K, V]{k, bottom.read(r, t)}
		if r.err == nil && x.store.empty() {
			r.fail("a key without facts")
		}
		if r.err != nil {
			break
		}
		b.add(&x)
		last = k
	}
	s.kids = b.tree()
	return s
}
