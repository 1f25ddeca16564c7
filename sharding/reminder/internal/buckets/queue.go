// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package buckets

import (
	"container/heap"

	"github.com/quorate/quorate/machine"
)

// entry is a reminder in memory.
type entry struct {
	Reminder

	page *page
	size int    // Of its encoding.
	seq  uint64 // The order in which entries came, which decides between equal times.

	queue *queue // The one that it is in; nil for none.
	place int    // In that queue.

	busy     bool // A delivery is under way, or was acknowledged and is to be saved.
	replaced bool // A change that replaces or ends it is to be saved; or its page has failed.

	attempts  int             // Deliveries that were not acknowledged.
	notBefore machine.Instant // When the delivery may be repeated.
	failure   string          // Why the last of them was not.
}

// queue has entries in the order of a time: that of reminders, by the wall clock, or that of repetitions, by the
// monotonic clock.
type queue struct {
	all  []*entry
	time func(*entry) int64
}

var _ heap.Interface = (*queue)(nil)

// Len implements [heap.Interface], as do all below.
func (q *queue) Len() int { return len(q.all) }

// Less orders by time, then as the entries came.
func (q *queue) Less(i, j int) bool {
	a, b := q.all[i], q.all[j]
	if x, y := q.time(a), q.time(b); x != y {
		return x < y
	}
	return a.seq < b.seq
}

// Swap exchanges two places.
func (q *queue) Swap(i, j int) {
	q.all[i], q.all[j] = q.all[j], q.all[i]
	q.all[i].place, q.all[j].place = i, j
}

// Push appends an entry.
func (q *queue) Push(x any) {
	e, _ := x.(*entry)
	e.queue, e.place = q, len(q.all)
	q.all = append(q.all, e)
}

// Pop takes the last entry.
func (q *queue) Pop() any {
	last := len(q.all) - 1
	e := q.all[last]
	q.all[last] = nil
	q.all = q.all[:last]
	e.queue = nil
	return e
}

func (q *queue) put(e *entry) { heap.Push(q, e) }

// first returns the entry with the earliest time; nil for none.
func (q *queue) first() *entry {
	if len(q.all) == 0 {
		return nil
	}
	return q.all[0]
}

// dequeue takes the entry out of its queue, if it is in one.
func (e *entry) dequeue() {
	if e.queue != nil {
		heap.Remove(e.queue, e.place)
	}
}
