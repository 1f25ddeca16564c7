// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package crdt

// The ordered collection under all sets and maps: a persistent B+ tree. A change copies one leaf and the branches above
// it, and shares everything else with the tree before, so that adding an element to ten thousand costs a few hundred
// bytes. Leaves have no spare capacity, because they are never appended to: an item costs its size and a few bytes of
// its leaf.

const (
	// maxLeaf and maxBranch bound the nodes. Larger leaves take less memory for each
	// item, and more copying for each change.
	maxLeaf   = 32
	maxBranch = 32
)

// ordered is an item of a tree.
type ordered[T any] interface{ compare(o *T) int }

// tree is sorted by compare and has no two items that compare as equal. Its zero value is
// empty. It never changes.
type tree[T ordered[T]] struct{ root *node[T] }

// node is a leaf with items or a branch with children, never empty.
type node[T ordered[T]] struct {
	items    []T
	children []*node[T]
	size     int // Items below the node.
}

func leaf[T ordered[T]](items []T) *node[T] { return &node[T]{items: items, size: len(items)} }

func branch[T ordered[T]](children []*node[T]) *node[T] {
	n := &node[T]{children: children}
	for _, k := range children {
		n.size += k.size
	}
	return n
}

// least returns the first item below the node.
func (n *node[T]) least() *T {
	for n.children != nil {
		n = n.children[0]
	}
	return &n.items[0]
}

func (t tree[T]) size() int {
	if t.root == nil {
		return 0
	}
	return t.root.size
}

// search returns how many of the items of a leaf, or of the children of a branch, begin before a place in the order,
// which before tells.
func (n *node[T]) search(before func(*T) bool) int {
	lo, hi := 0, max(len(n.items), len(n.children))
	for lo < hi {
		mid := (lo + hi) / 2
		item := (*T)(nil)
		if n.children != nil {
			item = n.children[mid].least()
		} else {
			item = &n.items[mid]
		}
		if before(item) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// scan calls yield for the items that are not before a place in the order, until it
// returns false. Items must not be changed.
func (t tree[T]) scan(before func(*T) bool, yield func(*T) bool) {
	if t.root != nil {
		t.root.scan(before, yield)
	}
}

func (n *node[T]) scan(before func(*T) bool, yield func(*T) bool) bool {
	i := n.search(before)
	if n.children == nil {
		for ; i < len(n.items); i++ {
			if !yield(&n.items[i]) {
				return false
			}
		}
		return true
	}
	if i > 0 && !n.children[i-1].scan(before, yield) {
		return false
	}
	for ; i < len(n.children); i++ {
		if !n.children[i].each(yield) {
			return false
		}
	}
	return true
}

// each calls yield for all items in order until it returns false.
func (t tree[T]) each(yield func(*T) bool) {
	if t.root != nil {
		t.root.each(yield)
	}
}

func (n *node[T]) each(yield func(*T) bool) bool {
	for i := range n.items {
		if !yield(&n.items[i]) {
			return false
		}
	}
	for _, k := range n.children {
		if !k.each(yield) {
			return false
		}
	}
	return true
}

// find returns the item that compares as equal to x, nil if there is none.
func (t tree[T]) find(x T) *T {
	n := t.root
	if n == nil {
		return nil
	}
	for n.children != nil {
		i := n.search(func(y *T) bool { return x.compare(y) >= 0 })
		if i == 0 {
			return nil
		}
		n = n.children[i-1]
	}
	i := n.search(func(y *T) bool { return x.compare(y) > 0 })
	if i == len(n.items) || x.compare(&n.items[i]) != 0 {
		return nil
	}
	return &n.items[i]
}

// put returns the tree with x in the place of the item that is equal to it, or added.
func (t tree[T]) put(x T) tree[T] {
	if t.root == nil {
		return tree[T]{leaf([]T{x})}
	}
	left, right := t.root.put(x)
	if right == nil {
		return tree[T]{left}
	}
	return tree[T]{branch([]*node[T]{left, right})}
}

// put returns one node, or two if one would have been too large.
func (n *node[T]) put(x T) (left, right *node[T]) {
	if n.children == nil {
		i := n.search(func(y *T) bool { return x.compare(y) > 0 })
		taken := 0
		if i < len(n.items) && x.compare(&n.items[i]) == 0 {
			taken = 1
		}
		items := spliced(n.items, i, taken, x)
		if len(items) <= maxLeaf {
			return leaf(items), nil
		}
		mid := len(items) / 2
		return leaf(exact(items[:mid])), leaf(exact(items[mid:]))
	}
	i := max(0, n.search(func(y *T) bool { return x.compare(y) >= 0 })-1)
	a, b := n.children[i].put(x)
	children := []*node[T](nil)
	if b == nil {
		children = spliced(n.children, i, 1, a)
	} else {
		children = spliced(n.children, i, 1, a, b)
	}
	if len(children) <= maxBranch {
		return branch(children), nil
	}
	mid := len(children) / 2
	return branch(exact(children[:mid])), branch(exact(children[mid:]))
}

// spliced returns a copy of list with taken items at i replaced by others, exactly as long
// as it needs to be.
func spliced[E any](list []E, i, taken int, others ...E) []E {
	out := make([]E, 0, len(list)-taken+len(others))
	return append(append(append(out, list[:i]...), others...), list[i+taken:]...)
}

// exact returns a copy without spare room.
func exact[E any](list []E) []E { return append(make([]E, 0, len(list)), list...) }

// cut returns the tree without the item that is equal to x; the same tree if there is none.
func (t tree[T]) cut(x T) tree[T] {
	if t.find(x) == nil {
		return t
	}
	n := t.root.cut(x)
	for n != nil && len(n.children) == 1 {
		n = n.children[0]
	}
	return tree[T]{n}
}

// cut returns the node without x, which is below it; nil if nothing is left.
func (n *node[T]) cut(x T) *node[T] {
	if n.children == nil {
		if len(n.items) == 1 {
			return nil
		}
		i := n.search(func(y *T) bool { return x.compare(y) > 0 })
		return leaf(spliced(n.items, i, 1))
	}
	i := n.search(func(y *T) bool { return x.compare(y) >= 0 }) - 1
	k := n.children[i].cut(x)
	switch {
	case k == nil && len(n.children) == 1:
		return nil
	case k == nil:
		return branch(spliced(n.children, i, 1))
	}
	j := min(i, len(n.children)-2) // The child and one next to it become one if both are small.
	if j >= 0 {
		pair := [2]*node[T]{n.children[j], n.children[j+1]}
		pair[i-j] = k
		if m := merged(pair[0], pair[1]); m != nil {
			return branch(spliced(n.children, j, 2, m))
		}
	}
	return branch(spliced(n.children, i, 1, k))
}

// merged returns two nodes next to each other as one; nil if that would be more than half full, so that a few items
// more would divide it again.
func merged[T ordered[T]](a, b *node[T]) *node[T] {
	switch {
	case a.children == nil && len(a.items)+len(b.items) <= maxLeaf/2:
		return leaf(spliced(a.items, len(a.items), 0, b.items...))
	case a.children != nil && len(a.children)+len(b.children) <= maxBranch/2:
		return branch(spliced(a.children, len(a.children), 0, b.children...))
	}
	return nil
}

// builder makes a tree of items that are added in order.
type builder[T ordered[T]] struct {
	leaves []*node[T]
	items  []T
	coming int // How many items are still to come, if that is known; leaves have no more room than that.
}

// fill is how full built leaves are, so that the next items do not divide each of them.
const fill = maxLeaf * 3 / 4

func (b *builder[T]) add(x *T) {
	if len(b.items) == fill {
		b.leaves = append(b.leaves, leaf(b.items))
		b.items = nil
	}
	if b.items == nil {
		room := fill
		if b.coming > 0 {
			room = min(fill, b.coming)
		}
		b.items = make([]T, 0, room)
	}
	b.items = append(b.items, *x)
	b.coming--
}

// tree returns the tree of all items. The builder must not be used any more.
func (b *builder[T]) tree() tree[T] {
	level := b.leaves
	if len(b.items) > 0 {
		if len(b.items) < cap(b.items) {
			b.items = exact(b.items)
		}
		level = append(level, leaf(b.items))
	}
	for len(level) > 1 {
		var above []*node[T]
		for len(level) > 0 {
			n := min(len(level), maxBranch*3/4)
			above = append(above, branch(exact(level[:n])))
			level = level[n:]
		}
		level = above
	}
	if len(level) == 0 {
		return tree[T]{}
	}
	return tree[T]{level[0]}
}

// cursor walks over a tree in order.
type cursor[T ordered[T]] struct {
	path []step[T]
	item *T // The current item, nil at the end.
}

// step is a node of the way to the current item, and which of its parts comes next.
type step[T ordered[T]] struct {
	n *node[T]
	i int
}

func (t tree[T]) cursor() *cursor[T] {
	c := &cursor[T]{}
	if t.root != nil {
		c.path = append(c.path, step[T]{n: t.root})
	}
	c.next()
	return c
}

// next goes to the next item.
func (c *cursor[T]) next() {
	c.item = nil
	for len(c.path) > 0 {
		s := &c.path[len(c.path)-1]
		switch {
		case s.i < len(s.n.items):
			c.item = &s.n.items[s.i]
			s.i++
			return
		case s.i < len(s.n.children):
			s.i++
			c.path = append(c.path, step[T]{n: s.n.children[s.i-1]})
		default:
			c.path = c.path[:len(c.path)-1]
		}
	}
}
