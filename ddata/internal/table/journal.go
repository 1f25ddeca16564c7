// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"slices"
	"sync"

	"github.com/quorate/quorate/ddata/crdt"
)

// What has changed in a table and was not taken out yet: local updates that have to be sent to other replicas
// ([pending]), and keys that have changed, for subscribers and the store. Both are queues with each key at most once,
// so that the keys of the table bound them.

// journal are the two queues.
type journal struct {
	mu      sync.Mutex
	pending queue[*pending]
	changed queue[string]
}

func (j *journal) pushPending(p *pending) {
	j.mu.Lock()
	j.pending.push(p)
	j.mu.Unlock()
}

func (j *journal) pushChanged(key string) {
	j.mu.Lock()
	j.changed.push(key)
	j.mu.Unlock()
}

func (j *journal) popPending() (*pending, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.pending.pop()
}

func (j *journal) popChanged() (string, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.changed.pop()
}

// queue is first in, first out.
type queue[T any] struct {
	items []T
	head  int
}

func (q *queue[T]) push(item T) {
	if q.head > 0 && len(q.items) == cap(q.items) && q.head >= len(q.items)/2 {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, item)
}

func (q *queue[T]) pop() (T, bool) {
	var zero T
	if q.head == len(q.items) {
		return zero, false
	}
	item := q.items[q.head]
	q.items[q.head] = zero
	if q.head++; q.head == len(q.items) {
		const keep = 1 << 16 // The room of a burst is given back.
		if cap(q.items) > keep {
			q.items = nil
		}
		q.items, q.head = q.items[:0], 0
	}
	return item, true
}

func (q *queue[T]) len() int { return len(q.items) - q.head }

// pending are local updates (from, to] of one key. The fields are guarded by the mutex of the
// key's bucket until the record is taken out of its cell, and belong to whoever took it
// out afterwards.
type pending struct {
	key      string
	kind     *kind
	origin   crdt.Origin
	from, to uint64
	// deltas are to be merged, in this order, all of them by whoever takes the record.
	deltas []delta
	// dead says that the updates are not to be sent: the key has expired, or was deleted or dropped.
	dead bool
}

// delta is the join of as many updates as its weight says.
type delta struct {
	value  any
	weight int
}

// mergeAt is how many deltas of a key may wait before they are merged.
const mergeAt = 32

// add adds the next update, and reports whether there are so many deltas that they are
// to be merged.
func (p *pending) add(value any) bool {
	p.to++
	if p.kind.whole {
		p.deltas = append(p.deltas[:0], delta{value, 1})
		return false
	}
	p.deltas = append(p.deltas, delta{value, 1})
	return len(p.deltas) >= mergeAt
}

// compacted returns the deltas with the last ones merged: those of the last mergeAt
// updates, and then earlier ones as long as they are not much larger. So the cost of
// an update is logarithmic in how many wait, even for types of which a merge costs as
// much as the larger side.
func compacted(typ crdt.Type, deltas []delta) []delta {
	last := deltas[len(deltas)-1]
	deltas = deltas[:len(deltas)-1]
	for len(deltas) > 0 && deltas[len(deltas)-1].weight < 2*last.weight {
		before := deltas[len(deltas)-1]
		// The later value first: where it covers the earlier, types return it as it is.
		last = delta{typ.Merge(last.value, before.value), last.weight + before.weight}
		deltas = deltas[:len(deltas)-1]
	}
	return append(slices.Clip(deltas), last)
}

// merged returns the join of all deltas.
func merged(typ crdt.Type, deltas []delta) any {
	last := deltas[len(deltas)-1].value
	for i := len(deltas) - 2; i >= 0; i-- {
		last = typ.Merge(last, deltas[i].value)
	}
	return last
}

// change returns the record as a change.
func (p *pending) change() Change {
	return Change{
		Key: p.key, Type: p.kind.typ, Origin: p.origin, From: p.from, To: p.to,
		Delta: merged(p.kind.typ, p.deltas), Whole: p.kind.whole,
	}
}

// retire folds owners that are gone in the updates.
func (p *pending) retire(gone func(crdt.Origin) bool) {
	folded := make([]delta, len(p.deltas)) // Somebody may be merging the old ones.
	for i, d := range p.deltas {
		folded[i] = delta{p.kind.typ.Retire(d.value, gone), d.weight}
	}
	p.deltas = folded
}
