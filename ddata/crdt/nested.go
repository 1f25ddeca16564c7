// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package crdt

// Values in an ORMap. Types with a dot store share the context of the map (Almeida et al. 2018, section 7.3): their
// events are events of the map, so that the removal of a key removes all that it has seen in the value there. The map
// uses them by two interfaces: causal is such a type, and store is the dot store of its values.

// store is a dot store, with a context of its own or without one, while it is in a map.
type store interface {
	// bare returns the store without context and pending delta, under the same store with a context.
	bare() store
	under(context dots) store
	// own returns the context of the store itself, and delta the pending delta, nil if
	// there is none.
	own() dots
	delta() store
	empty() bool
	// live appends the dots of facts of the store that are in a set, explains those that a join with o finds without
	// reading the whole store, see [facts.explained].
	live(in dots, list []dot) []dot
	explains(o store, mine, theirs dots, list []dot) []dot
	// joins returns the join of two bare stores under two contexts, see [facts.joinUnder].
	joins(o store, mine, theirs dots, far reach) store
	// renamed retires the store, see dots.retire.
	renamed(names renaming, gone func(Origin) bool) store
	footprint() int
	appendFacts(dst []byte, t *table) ([]byte, error)
	// read reads a store of this type.
	read(r *reader, t *table) store
}

// causal is a type of values with a dot store.
type causal[T any] interface {
	store() store
	with(s store) T
}

// folder is a payload that can be folded: two of origin zero become one.
type folder[P any] interface{ fold(o P) P }

// foldOf returns the function that folds payloads of a type, nil if they are not folded.
func foldOf[P any]() func(a, b P) P {
	var p P
	if _, ok := any(p).(folder[P]); !ok {
		return nil
	}
	return func(a, b P) P { return any(a).(folder[P]).fold(b) }
}

func (f *facts[K, P]) bare() store {
	if f.context == nil && f.pending == nil {
		return f
	}
	return &facts[K, P]{tree: f.tree, keys: f.keys}
}

func (f *facts[K, P]) under(context dots) store {
	return &facts[K, P]{context: context, tree: f.tree, keys: f.keys}
}

func (f *facts[K, P]) own() dots { return f.context }

func (f *facts[K, P]) delta() store {
	if f.pending == nil {
		return nil
	}
	return f.pending
}

func (f *facts[K, P]) empty() bool { return f.keys == 0 }

func (f *facts[K, P]) live(in dots, list []dot) []dot {
	f.tree.each(func(x *fact[K, P]) bool {
		if in.has(x.dot) {
			list = append(list, x.dot)
		}
		return true
	})
	return list
}

func (f *facts[K, P]) explains(o store, mine, theirs dots, list []dot) []dot {
	return f.explained(o.(*facts[K, P]), mine, theirs, list)
}

func (f *facts[K, P]) joins(o store, mine, theirs dots, far reach) store {
	return f.joinUnder(o.(*facts[K, P]), mine, theirs, far)
}

func (f *facts[K, P]) renamed(names renaming, _ func(Origin) bool) store {
	return f.retired(names, foldOf[P]())
}

func (f *facts[K, P]) read(r *reader, t *table) store { return readFacts[K, P](r, t) }

// orEmpty returns the facts, or empty ones for nil, which zero values have.
func orEmpty[K sortKey[K], P part[P]](f *facts[K, P]) *facts[K, P] {
	if f == nil {
		return &facts[K, P]{}
	}
	return f
}

// orNil returns nil for facts that are empty and have seen nothing, so that bottom has one form.
func orNil[K sortKey[K], P part[P]](f *facts[K, P]) *facts[K, P] {
	if f == nil || len(f.context) == 0 && f.keys == 0 {
		return nil
	}
	return f
}

// typeName returns the name of a value's type.
func typeName[V Value[V]]() string {
	var v V
	return v.TypeName()
}

// isCausal reports whether values of a type have a dot store.
func isCausal[V any]() bool {
	var v V
	_, is := any(v).(causal[V])
	return is
}
