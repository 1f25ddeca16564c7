// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"iter"
	"slices"

	"github.com/quorate/quorate/sharding/internal/protocol"
)

// layers has a value for each shard of some layouts.
type layers[T any] struct {
	layers []layer[T] // By the number of the layout.
	visits uint64     // How many values all has gone over: the work of a step is measured by it.
}

type layer[T any] struct {
	protocol.Layout
	values []T
}

// add adds a layout, if it is not there.
func (l *layers[T]) add(layout protocol.Layout) {
	if !slices.ContainsFunc(l.layers, func(o layer[T]) bool { return o.Number == layout.Number }) {
		l.layers = append(l.layers, layer[T]{layout, make([]T, layout.Shards)})
		slices.SortFunc(l.layers, func(a, b layer[T]) int { return a.Compare(b.Layout) })
	}
}

// keep drops the layouts for which f returns false.
func (l *layers[T]) keep(f func(protocol.Layout) bool) {
	l.layers = slices.DeleteFunc(l.layers, func(o layer[T]) bool { return !f(o.Layout) })
}

// at returns the place of the value of a shard; nil: there is no such shard.
func (l *layers[T]) at(id protocol.ShardID) *T {
	for i := range l.layers {
		if l.layers[i].Has(id) {
			return &l.layers[i].values[id.Index()]
		}
	}
	return nil
}

// len returns the number of shards.
func (l *layers[T]) len() int {
	n := 0
	for i := range l.layers {
		n += len(l.layers[i].values)
	}
	return n
}

// all yields the shards and the places of their values, in order.
func (l *layers[T]) all() iter.Seq2[protocol.ShardID, *T] {
	return func(yield func(protocol.ShardID, *T) bool) {
		for i := range l.layers {
			values := l.layers[i].values
			l.visits += uint64(len(values))
			for at := range values {
				if !yield(l.layers[i].Shard(uint32(at)), &values[at]) { // Below the number of shards.
					return
				}
			}
		}
	}
}

// layouts returns the layouts, by number.
func (l *layers[T]) layouts() []protocol.Layout {
	var all []protocol.Layout
	for i := range l.layers {
		all = append(all, l.layers[i].Layout)
	}
	return all
}
