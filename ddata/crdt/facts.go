// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package crdt

import (
	"encoding/binary"
	"slices"
)

// The state of every type with removal: a dot store (Almeida et al. 2018, section 7.2). A fact is what one event has
// added at one key, and stays until a later event that has seen it removes it. The join keeps a fact that both sides
// have, and one that one side has and the other side has not seen; a fact that one side has, and the other has seen but
// does not have, was removed. So "add wins": a removal removes what it has seen, and nothing else.
//
// In the file: the store and its one mutator (apply), the join, which is faster for small deltas, retirement, and the
// encoding.

// part is something that can be encoded as part of a value.
type part[T any] interface {
	appendTo(dst []byte) ([]byte, error)
	readFrom(r *reader) T
	size() int // Bytes of memory beyond the Go value itself.
}

// sortKey is what facts belong to, and are sorted by.
type sortKey[K any] interface {
	compareKey(o K) int
	appendKey(dst []byte) []byte
	readFrom(r *reader) K
	size() int
}

// fact is what an event, named by its dot, has added at a key. The payload is the first field, because an empty one at
// the end would cost eight bytes.
type fact[K sortKey[K], P part[P]] struct {
	payload P
	key     K
	dot     dot
}

func (f fact[K, P]) compare(o *fact[K, P]) int {
	if c := f.key.compareKey(o.key); c != 0 {
		return c
	}
	return f.dot.compare(o.dot)
}

// facts is a dot store with its context. Every dot of the store is in the context. Facts that are part of another value
// share its context, and have none of their own. Facts never change once they are shared.
type facts[K sortKey[K], P part[P]] struct {
	context dots
	tree    tree[fact[K, P]]
	keys    int          // How many keys have facts.
	pending *facts[K, P] // The pending delta; nil if there is none.
}

// at calls yield for the facts at a key, until it returns false.
func (f *facts[K, P]) at(key K, yield func(*fact[K, P]) bool) {
	f.tree.scan(func(x *fact[K, P]) bool { return x.key.compareKey(key) < 0 },
		func(x *fact[K, P]) bool { return x.key.compareKey(key) == 0 && yield(x) })
}

// has reports whether there is a fact at a key.
func (f *facts[K, P]) has(key K) bool {
	found := false
	f.at(key, func(*fact[K, P]) bool {
		found = true
		return false
	})
	return found
}

// about returns the facts at a key, all those at all keys.
func (f *facts[K, P]) about(key K) []fact[K, P] {
	var all []fact[K, P]
	f.at(key, func(x *fact[K, P]) bool {
		all = append(all, *x)
		return true
	})
	return all
}

func (f *facts[K, P]) all() []fact[K, P] {
	all := make([]fact[K, P], 0, f.tree.size())
	f.tree.each(func(x *fact[K, P]) bool {
		all = append(all, *x)
		return true
	})
	return all
}

// eachKey calls yield for the first fact of each key in order.
func (f *facts[K, P]) eachKey(yield func(*fact[K, P]) bool) {
	var last *fact[K, P]
	f.tree.each(func(x *fact[K, P]) bool {
		if last != nil && last.key.compareKey(x.key) == 0 {
			return true
		}
		last = x
		return yield(x)
	})
}

// insert and remove change a store that is not shared yet.
func (f *facts[K, P]) insert(x fact[K, P]) {
	if !f.has(x.key) {
		f.keys++
	}
	f.tree = f.tree.put(x)
}

func (f *facts[K, P]) remove(x fact[K, P]) {
	f.tree = f.tree.cut(x)
	if !f.has(x.key) {
		f.keys--
	}
}

// apply is the only mutator: it removes the facts in back, adds those in say, whose dots are new, and adds both to the
// pending delta.
func (f *facts[K, P]) apply(back []fact[K, P], say ...fact[K, P]) *facts[K, P] {
	if len(back)+len(say) == 0 {
		return f
	}
	n, delta := *f, &facts[K, P]{}
	var touched []dot
	for _, x := range back {
		n.remove(x)
		touched = append(touched, x.dot)
	}
	for _, x := range say {
		n.insert(x)
		delta.insert(x)
		touched = append(touched, x.dot)
	}
	delta.context = dotsOf(touched)
	n.context = n.context.join(delta.context)
	if f.pending != nil {
		delta = f.pending.merge(delta)
	}
	n.pending = delta
	return &n
}

// settled returns the same facts without a pending delta.
func (f *facts[K, P]) settled() *facts[K, P] {
	if f.pending == nil {
		return f
	}
	return &facts[K, P]{context: f.context, tree: f.tree, keys: f.keys}
}

// merge returns the join of two stores with their contexts.
func (f *facts[K, P]) merge(o *facts[K, P]) *facts[K, P] {
	a, b := f, o
	if a.tree.size() < b.tree.size() {
		a, b = b, a
	}
	n := a.joinUnder(b, a.context, b.context, a.reach(b))
	context := f.context.join(o.context)
	if n.tree == f.tree && f.context.covers(o.context) {
		return f.settled()
	}
	return &facts[K, P]{context: context, tree: n.tree, keys: n.keys}
}

// small reports whether a store of a facts is so much smaller than one of of facts that it is joined fact by fact.
func small(a, of int) bool { return a <= of/8 }

// reach says how much of the larger side of a join has to be read. A removal consists of dots alone, and stores are not
// sorted by dots: what the smaller side has removed is looked for at the keys of that side, and everywhere else only if
// it is not all there.
type reach int

const (
	atKeys     reach = iota // Facts at the same keys.
	inChildren              // In maps, all facts of the values at the same keys.
	everywhere              // All facts.
)

// reach returns how much of this store a join with another one reads, which is not larger.
func (f *facts[K, P]) reach(o *facts[K, P]) reach {
	if small(o.tree.size(), f.tree.size()) && !hasFurther(f.explained(o, f.context, o.context, nil), f.context, o.context) {
		return atKeys
	}
	return everywhere
}

// hasFurther reports whether two contexts have dots in common that are not in a list.
func hasFurther(list []dot, mine, theirs dots) bool {
	slices.SortFunc(list, dot.compare)
	return uint64(len(slices.Compact(list))) < mine.common(theirs)
}

// explained appends those dots in both contexts whose facts are in o, or in f at keys of o: a join finds them at these
// keys.
func (f *facts[K, P]) explained(o *facts[K, P], mine, theirs dots, list []dot) []dot {
	o.tree.each(func(x *fact[K, P]) bool {
		if mine.has(x.dot) {
			list = append(list, x.dot)
		}
		return true
	})
	o.eachKey(func(x *fact[K, P]) bool {
		f.at(x.key, func(y *fact[K, P]) bool {
			if theirs.has(y.dot) {
				list = append(list, y.dot)
			}
			return true
		})
		return true
	})
	return list
}

// joinUnder returns the join of two stores under two contexts, which need not be their own: f itself, if it is the
// join. The result has no context unless it is one of the two stores.
func (f *facts[K, P]) joinUnder(o *facts[K, P], mine, theirs dots, far reach) *facts[K, P] {
	switch {
	case small(o.tree.size(), f.tree.size()):
		return f.joinSmall(o, mine, theirs, far)
	case small(f.tree.size(), o.tree.size()):
		return o.joinSmall(f, theirs, mine, everywhere) // far is for the other direction.
	}
	return f.joinWhole(o, mine, theirs)
}

// joinWhole joins two stores by reading both of them in order, side by side.
func (f *facts[K, P]) joinWhole(o *facts[K, P], mine, theirs dots) *facts[K, P] {
	n, b := &facts[K, P]{}, builder[fact[K, P]]{}
	var last *fact[K, P]
	keep := func(x *fact[K, P]) {
		if last == nil || last.key.compareKey(x.key) != 0 {
			n.keys++
		}
		last = x
		b.add(x)
	}
	x, y, same := f.tree.cursor(), o.tree.cursor(), true
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
		switch {
		case c == 0:
			keep(x.item)
			y.next()
		case c < 0 && !theirs.has(x.item.dot):
			keep(x.item)
		case c > 0 && !mine.has(y.item.dot):
			keep(y.item)
			same = false
		case c < 0:
			same = false
		}
		if c <= 0 {
			x.next()
		} else {
			y.next()
		}
	}
	if same {
		return f
	}
	n.tree = b.tree()
	return n
}

// joinSmall joins a small store o fact by fact.
func (f *facts[K, P]) joinSmall(o *facts[K, P], mine, theirs dots, far reach) *facts[K, P] {
	n := &facts[K, P]{tree: f.tree, keys: f.keys}
	var gone []fact[K, P]
	back := func(x *fact[K, P]) bool {
		if theirs.has(x.dot) && o.tree.find(*x) == nil {
			gone = append(gone, *x)
		}
		return true
	}
	if far == everywhere {
		f.tree.each(back)
	} else {
		o.eachKey(func(x *fact[K, P]) bool {
			f.at(x.key, back)
			return true
		})
	}
	for _, x := range gone {
		n.remove(x)
	}
	o.tree.each(func(x *fact[K, P]) bool {
		if !mine.has(x.dot) {
			n.insert(*x)
		}
		return true
	})
	if n.tree == f.tree {
		return f
	}
	return n
}

// retired returns the store after a renaming. If fold is not nil, all facts of origin zero at a key become one, under
// the highest of their dots.
func (f *facts[K, P]) retired(names renaming, fold func(a, b P) P) *facts[K, P] {
	all := make([]fact[K, P], 0, f.tree.size())
	f.tree.each(func(x *fact[K, P]) bool {
		y := *x
		y.dot = names.of(y.dot)
		all = append(all, y)
		return true
	})
	slices.SortFunc(all, func(a, b fact[K, P]) int { return a.compare(&b) })
	n := &facts[K, P]{keys: f.keys}
	b := builder[fact[K, P]]{}
	for i := range all {
		x := &all[i]
		if i+1 < len(all) && fold != nil && x.dot.at == 0 {
			if y := &all[i+1]; y.dot.at == 0 && y.key.compareKey(x.key) == 0 {
				y.payload = fold(x.payload, y.payload)
				continue
			}
		}
		b.add(x)
	}
	n.tree = b.tree()
	return n
}

// retire retires the origins that are gone, in the store and in its context.
func (f *facts[K, P]) retire(gone func(Origin) bool, fold func(a, b P) P) *facts[K, P] {
	context, names := f.context.retire(gone)
	if names == nil {
		return f.settled()
	}
	n := f.retired(names, fold)
	n.context = context
	return n
}

// footprint returns about how many bytes of memory the store takes.
func (f *facts[K, P]) footprint() int {
	var x fact[K, P]
	n := 64 + 24*len(f.context) + f.tree.size()*(sizeOf(x)+4)
	f.tree.each(func(x *fact[K, P]) bool {
		n += x.key.size() + x.payload.size()
		return true
	})
	if f.pending != nil {
		n += f.pending.footprint()
	}
	return n
}

// append appends version, context and facts.
func (f *facts[K, P]) append(dst []byte) ([]byte, error) {
	dst = f.context.append(append(dst, version))
	return f.appendFacts(dst, newTable(f.context))
}

// appendFacts appends how many keys there are, and for each the key, the number of facts
// and the facts.
func (f *facts[K, P]) appendFacts(dst []byte, t *table) ([]byte, error) {
	dst = binary.AppendUvarint(dst, uint64(f.keys))
	var group []*fact[K, P] // The facts about one key.
	for c := f.tree.cursor(); c.item != nil; {
		group = group[:0]
		for c.item != nil && (len(group) == 0 || group[0].key.compareKey(c.item.key) == 0) {
			group = append(group, c.item)
			c.next()
		}
		dst = binary.AppendUvarint(group[0].key.appendKey(dst), uint64(len(group)))
		for _, x := range group {
			var err error
			if dst, err = x.payload.appendTo(t.append(dst, x.dot)); err != nil {
				return dst, err
			}
		}
	}
	return dst, nil
}

// readFacts reads what appendFacts has written.
func readFacts[K sortKey[K], P part[P]](r *reader, t *table) *facts[K, P] {
	f, b := &facts[K, P]{keys: r.count(3)}, builder[fact[K, P]]{}
	var key K
	for i := 0; i < f.keys && r.err == nil; i++ {
		before := key
		key = key.readFrom(r)
		if r.err == nil && i > 0 && before.compareKey(key) >= 0 {
			r.fail("keys out of order")
		}
		n := r.count(2)
		if n == 0 {
			r.fail("a key without facts")
		}
		b.coming = n + f.keys - i - 1
		var last dot
		for j := 0; j < n && r.err == nil; j++ {
			x := fact[K, P]{key: key, dot: t.read(r)}
			x.payload = x.payload.readFrom(r)
			if r.err == nil && j > 0 && last.compare(x.dot) >= 0 {
				r.fail("events out of order")
			}
			last = x.dot
			b.add(&x)
		}
	}
	f.tree = b.tree()
	return f
}

// decodeFacts reads what append has written.
func decodeFacts[K sortKey[K], P part[P]](b []byte) (*facts[K, P], error) {
	r := newReader(b)
	context := r.dots()
	f := readFacts[K, P](r, newTable(context))
	f.context = context
	return f, r.end()
}
