// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"iter"
	"slices"

	"github.com/quorate/quorate/sharding/internal/protocol"
)

// shardMap has a value for each shard of some layouts.
type shardMap[T any] struct {
	parts  []layoutValues[T] // By the number of the layout.
	visits uint64            // How many values all has gone over: the work of a step is measured by it.
}

type layoutValues[T any] struct {
	protocol.Layout
	values []T
}

// add adds a layout, if it is not there.
func (l *shardMap[T]) add(layout protocol.Layout) {
	if !slices.ContainsFunc(l.parts, func(o layoutValues[T]) bool { return o.Number == layout.Number }) {
		l.parts = append(l.parts, layoutValues[T]{layout, make([]T, layout.Shards)})
		slices.SortFunc(l.parts, func(a, b layoutValues[T]) int { return a.Compare(b.Layout) })
	}
}

// keep drops the layouts for which f returns false.
func (l *shardMap[T]) keep(f func(protocol.Layout) bool) {
	l.parts = slices.DeleteFunc(l.parts, func(o layoutValues[T]) bool { return !f(o.Layout) })
}

// at returns the place of the value of a shard; nil: there is no such shard.
func (l *shardMap[T]) at(id protocol.ShardID) *T {
	for i := range l.parts {
		if l.parts[i].Has(id) {
			return &l.parts[i].values[id.Index()]
		}
	}
	return nil
}

// len returns the number of shards.
func (l *shardMap[T]) len() int {
	n := 0
	for i := range l.parts {
		n += len(l.parts[i].values)
	}
	return n
}

// all yields the shards and the places of their values, in order.
func (l *shardMap[T]) all() iter.Seq2[protocol.ShardID, *T] {
	return func(yield func(protocol.ShardID, *T) bool) {
		for i := range l.parts {
			values := l.parts[i].values
			l.visits += uint64(len(values))
			for at := range values {
				if !yield(l.parts[i].Shard(uint32(at)), &values[at]) { // Below the number of shards.
					return
				}
			}
		}
	}
}

// layouts returns the layouts, by number.
func (l *shardMap[T]) layouts() []protocol.Layout {
	var all []protocol.Layout
	for i := range l.parts {
		all = append(all, l.parts[i].Layout)
	}
	return all
}
