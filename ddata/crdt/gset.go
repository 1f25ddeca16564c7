// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package crdt

import (
	"encoding/binary"
	"iter"
)

// The set without removal: an ordered tree of elements. In the file: the mutator and the methods that read, the union,
// element by element or side by side, and the encoding.

// GSet is a set that only grows (Shapiro et al. 2011, specification 11; as a delta Almeida
// et al. 2018, section 5). Its zero value is empty.
type GSet[E Key] struct{ s *gsetState[E] }

// gsetState is the state of a GSet.
type gsetState[E Key] struct {
	tree    tree[singleKey[E]]
	pending tree[singleKey[E]]
}

var (
	_ Value[GSet[string]]  = GSet[string]{}
	_ Differ[GSet[string]] = GSet[string]{}
)

func (g GSet[E]) state() gsetState[E] {
	if g.s == nil {
		return gsetState[E]{}
	}
	return *g.s
}

// Add returns the set with an element. It takes no origin, since it makes no difference which one has added it.
func (g GSet[E]) Add(e E) GSet[E] {
	s := g.state()
	if s.tree.find(singleKey[E]{e}) != nil {
		return g
	}
	return GSet[E]{&gsetState[E]{s.tree.put(singleKey[E]{e}), s.pending.put(singleKey[E]{e})}}
}

// Has reports whether an element is in the set.
func (g GSet[E]) Has(e E) bool { return g.state().tree.find(singleKey[E]{e}) != nil }

// Len returns the number of elements.
func (g GSet[E]) Len() int { return g.state().tree.size() }

// All returns the elements in ascending order.
func (g GSet[E]) All() iter.Seq[E] {
	return func(yield func(E) bool) {
		g.state().tree.each(func(x *singleKey[E]) bool { return yield(x.k) })
	}
}

// TypeName is "gset[...]".
func (g GSet[E]) TypeName() string { return "gset[" + keyName[E]() + "]" }

// Merge returns the union.
func (g GSet[E]) Merge(other GSet[E]) GSet[E] {
	a, b := g, other
	if a.Len() < b.Len() {
		a, b = b, a
	}
	s, t := a.state().tree, b.state().tree
	if small(t.size(), s.size()) {
		t.each(func(x *singleKey[E]) bool {
			if s.find(*x) == nil {
				s = s.put(*x)
			}
			return true
		})
	} else {
		s = unionOf(s, t)
	}
	if a.s != nil && s == a.s.tree {
		return a.Settled()
	}
	return newGSet(s)
}

// unionOf returns the union of two trees, read side by side.
func unionOf[E Key](s, t tree[singleKey[E]]) tree[singleKey[E]] {
	var b builder[singleKey[E]]
	x, y := s.cursor(), t.cursor()
	for x.item != nil || y.item != nil {
		c := 0
		switch {
		case y.item == nil:
			c = -1
		case x.item == nil:
			c = 1
		default:
			c = x.item.compare(y.item)
		}
		if c <= 0 {
			b.add(x.item)
			x.next()
		} else {
			b.add(y.item)
		}
		if c >= 0 {
			y.next()
		}
	}
	if len(b.leaves)*fill+len(b.items) == s.size() {
		return s
	}
	return b.tree()
}

func newGSet[E Key](t tree[singleKey[E]]) GSet[E] {
	if t.root == nil {
		return GSet[E]{}
	}
	return GSet[E]{&gsetState[E]{tree: t}}
}

// Delta returns the elements added since Settled.
func (g GSet[E]) Delta() (GSet[E], bool) {
	d := newGSet(g.state().pending)
	return d, d.s != nil
}

// Settled returns the set without pending delta.
func (g GSet[E]) Settled() GSet[E] {
	if g.s == nil || g.s.pending.root == nil {
		return g
	}
	return newGSet(g.s.tree)
}

// Size returns about how many bytes of memory the set takes.
func (g GSet[E]) Size() int {
	n := 24 + g.Len()*(sizeOf(singleKey[E]{})+4)
	for e := range g.All() {
		n += keySize(e)
	}
	return n
}

// AppendBinary appends the canonical encoding. It does not fail.
func (g GSet[E]) AppendBinary(dst []byte) ([]byte, error) {
	dst = binary.AppendUvarint(append(dst, version), uint64(g.Len()))
	for e := range g.All() {
		dst = appendKey(dst, e)
	}
	return dst, nil
}

// UnmarshalBinary decodes what AppendBinary has written.
func (g *GSet[E]) UnmarshalBinary(data []byte) error {
	r, b := newReader(data), builder[singleKey[E]]{}
	var last singleKey[E]
	b.coming = r.count(1)
	for i := range b.coming {
		x := last.readFrom(r)
		if r.err == nil && i > 0 && last.compareKey(x) >= 0 {
			r.fail("elements out of order")
		}
		if r.err != nil {
			break
		}
		b.add(&x)
		last = x
	}
	if err := r.end(); err != nil {
		return err
	}
	*g = newGSet(b.tree())
	return nil
}
