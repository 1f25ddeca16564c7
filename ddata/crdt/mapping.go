// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package crdt

import (
	"cmp"
	"encoding"
	"encoding/binary"
)

// The state of an ORMap. Each update adds a fact at its key, the mark. If V is of a type that does not share the
// context, the payload of the mark is what the origin has contributed to the value. Otherwise the payload is empty, and
// the store of the value is a child.
//
// In the file: the state, updates of both kinds of values, the join, which does not read what a small delta does not
// touch, retirement, and the encoding.

// mapping is the state of an ORMap. The context of the marks is that of the children too.
type mapping[K Key, V Value[V]] struct {
	marks    *facts[singleKey[K], share[V]]
	children tree[slot[K, V]]
	pending  *mapping[K, V] // The pending delta; nil if there is none.
}

// slot is the store of the value at a key, never empty.
type slot[K Key, V any] struct {
	k     K
	store store
}

func (s slot[K, V]) compare(o *slot[K, V]) int { return cmp.Compare(s.k, o.k) }

// share is what one origin has contributed to a value.
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

// bottom returns the store of the bottom of V, which is of a type with a dot store.
func (s *mapping[K, V]) bottom() store {
	var v V
	return any(v).(causal[V]).store()
}

// child returns the store at a key, nil if there is none.
func (s *mapping[K, V]) child(k K) store {
	if x := s.children.find(slot[K, V]{k: k}); x != nil {
		return x.store
	}
	return nil
}

// put sets the store at a key, or removes it if it is empty. The mapping must not be shared yet.
func (s *mapping[K, V]) put(k K, inner store) {
	if inner.empty() {
		s.children = s.children.cut(slot[K, V]{k: k})
	} else {
		s.children = s.children.put(slot[K, V]{k, inner})
	}
}

// parts returns the join of what origins have contributed to a key.
func (s *mapping[K, V]) parts(k K) (v V, is bool) {
	s.marks.at(singleKey[K]{k}, func(x *fact[singleKey[K], share[V]]) bool {
		if is {
			v = v.Merge(x.payload.v)
		} else {
			v, is = x.payload.v, true
		}
		return true
	})
	return v, is
}

// with completes a mapping that was made from before by an update: it gets the context and the pending delta that
// follow from the delta of the update.
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

// orNil returns nil for a mapping that is empty and has seen nothing, so that bottom has one form.
func (s *mapping[K, V]) orNil() *mapping[K, V] {
	if s.marks.keys == 0 && len(s.marks.context) == 0 && s.pending == nil {
		return nil
	}
	return s
}

// updateParts changes a value that does not share the context.
func (s *mapping[K, V]) updateParts(at Origin, k K, change func(V) V) *mapping[K, V] {
	key, mark := singleKey[K]{k}, fact[singleKey[K], share[V]]{}
	v, _ := s.parts(k)
	if d, is := any(v).(Differ[V]); is {
		v = d.Settled()
	}
	v = change(v)
	var back []fact[singleKey[K], share[V]]
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
	changed := s.marks.settled().apply(back, mark)
	n := &mapping[K, V]{marks: changed, children: s.children}
	return n.with(s, &mapping[K, V]{marks: changed.pending})
}

// updateNested changes a value that shares the context.
func (s *mapping[K, V]) updateNested(at Origin, k K, change func(V) V) *mapping[K, V] {
	child := s.child(k)
	if child == nil {
		child = s.bottom()
	}
	inner := any(change(s.open(child.under(s.marks.context)))).(causal[V]).store()
	delta, context := &mapping[K, V]{}, s.marks.context
	var seen dots
	if d := inner.delta(); d != nil {
		seen = d.own()
		context = context.join(seen)
		delta.put(k, d.bare())
	}
	if own := inner.own(); len(own) != len(context) || !own.covers(context) {
		panic("crdt: the function given to ORMap.Update returned a value that does not come from its argument")
	}
	marks := *s.marks
	marks.context, marks.pending = context, nil
	changed := marks.apply(marks.about(singleKey[K]{k}), fact[singleKey[K], share[V]]{key: singleKey[K]{k}, dot: context.next(at)})
	mark := *changed.pending
	mark.context = mark.context.join(seen)
	delta.marks = &mark
	n := &mapping[K, V]{marks: changed, children: s.children}
	n.put(k, inner.bare())
	return n.with(s, delta)
}

// weight is the size by which the smaller side of a join is found.
func (s *mapping[K, V]) weight() int { return s.marks.tree.size() + s.children.size() }

// reach returns how much of this mapping a join with another one reads, which does not weigh more.
func (s *mapping[K, V]) reach(o *mapping[K, V]) reach {
	mine, theirs := s.marks.context, o.marks.context
	switch {
	case !small(o.weight(), s.weight()):
		return everywhere
	case !hasFurther(s.explains(o, mine, theirs, nil), mine, theirs):
		return atKeys
	}
	list := s.marks.explained(o.marks, mine, theirs, nil)
	s.touched(o, func(_ K, a, b store) { list = b.live(mine, a.live(theirs, list)) })
	if !hasFurther(list, mine, theirs) {
		return inChildren
	}
	return everywhere
}

// touched calls yield for each key of o with the children of both mappings, bottom where there is none: a join with o
// may change those of s.
func (s *mapping[K, V]) touched(o *mapping[K, V], yield func(k K, mine, theirs store)) {
	if !isCausal[V]() {
		return
	}
	bottom := s.bottom()
	for k := range (ORMap[K, V]{o}).Keys() {
		mine, theirs := s.child(k), o.child(k)
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

// joinUnder returns the join of two mappings under two contexts, s itself if it is that. The
// result has no context unless it is one of the two.
func (s *mapping[K, V]) joinUnder(o *mapping[K, V], mine, theirs dots, far reach) *mapping[K, V] {
	if s.weight() < o.weight() {
		s, o, mine, theirs, far = o, s, theirs, mine, everywhere
	}
	n := &mapping[K, V]{marks: s.marks.joinUnder(o.marks, mine, theirs, far), children: s.children}
	inside := far
	if far == inChildren {
		inside = everywhere
	}
	s.touched(o, func(k K, a, b store) {
		if joined := a.joins(b, mine, theirs, inside); joined != a {
			n.put(k, joined)
		}
	})
	if far == everywhere && isCausal[V]() {
		bottom := s.bottom()
		s.children.each(func(x *slot[K, V]) bool {
			if o.marks.has(singleKey[K]{x.k}) || o.child(x.k) != nil {
				return true
			}
			if joined := x.store.joins(bottom, mine, theirs, everywhere); joined != x.store {
				n.put(x.k, joined)
			}
			return true
		})
	}
	if n.marks == s.marks && n.children == s.children {
		return s
	}
	return n
}

func (s *mapping[K, V]) bare() store {
	if s.marks.context == nil && s.pending == nil {
		return s
	}
	return &mapping[K, V]{marks: s.marks.bare().(*facts[singleKey[K], share[V]]), children: s.children}
}

func (s *mapping[K, V]) under(context dots) store {
	return &mapping[K, V]{marks: s.marks.under(context).(*facts[singleKey[K], share[V]]), children: s.children}
}

func (s *mapping[K, V]) own() dots { return s.marks.context }

func (s *mapping[K, V]) delta() store {
	if s.pending == nil {
		return nil
	}
	return s.pending
}

func (s *mapping[K, V]) empty() bool { return s.marks.keys == 0 && s.children.root == nil }

func (s *mapping[K, V]) live(in dots, list []dot) []dot {
	list = s.marks.live(in, list)
	s.children.each(func(x *slot[K, V]) bool {
		list = x.store.live(in, list)
		return true
	})
	return list
}

func (s *mapping[K, V]) joins(o store, mine, theirs dots, far reach) store {
	return s.joinUnder(o.(*mapping[K, V]), mine, theirs, far)
}

// retired returns the mapping after a renaming, without context. The shares of origin zero are made one before their
// values are retired. Retiring a value adds what origins that are gone have contributed; two shares that are retired
// apart would be joined afterwards, and not added.
func (s *mapping[K, V]) retired(names renaming, gone func(Origin) bool) *mapping[K, V] {
	n := &mapping[K, V]{}
	if isCausal[V]() {
		n.marks = s.marks.retired(names, nil)
		var b builder[slot[K, V]]
		s.children.each(func(x *slot[K, V]) bool {
			b.add(&slot[K, V]{x.k, x.store.renamed(names, gone)})
			return true
		})
		n.children = b.tree()
		return n
	}
	n.marks = s.marks.retired(names, func(a, b share[V]) share[V] { return share[V]{a.v.Merge(b.v)} })
	var b builder[fact[singleKey[K], share[V]]]
	n.marks.tree.each(func(x *fact[singleKey[K], share[V]]) bool {
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
	s.children.each(func(x *slot[K, V]) bool {
		n += sizeOf(*x) + keySize(x.k) + x.store.footprint()
		return true
	})
	if s.pending != nil {
		n += s.pending.footprint()
	}
	return n
}

// appendFacts appends the marks, and then, if V shares the context, the number of children and
// each with its key.
func (s *mapping[K, V]) appendFacts(dst []byte, t *table) ([]byte, error) {
	dst, err := s.marks.appendFacts(dst, t)
	if err != nil || !isCausal[V]() {
		return dst, err
	}
	dst = binary.AppendUvarint(dst, uint64(s.children.size()))
	s.children.each(func(x *slot[K, V]) bool {
		dst, err = x.store.appendFacts(appendKey(dst, x.k), t)
		return err == nil
	})
	return dst, err
}

func (s *mapping[K, V]) read(r *reader, t *table) store { return readMapping[K, V](r, t) }

// readMapping reads what appendFacts has written.
func readMapping[K Key, V Value[V]](r *reader, t *table) *mapping[K, V] {
	s := &mapping[K, V]{marks: readFacts[singleKey[K], share[V]](r, t)}
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
	s.children = b.tree()
	return s
}
