// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package machine

// timerKey names a timer of a node.
type timerKey struct {
	of    ID
	timer Timer
}

// armed is a request in a timer queue. It is live when the queue's table
// holds its number.
type armed struct {
	at     Instant
	number uint64
	key    timerKey
}

// timerQueue holds the timers of one node in a heap of requests. Requests that were
// replaced or withdrawn stay in the heap until they surface, or until they are the
// greater part of it. The runtime has a single timer, however many are armed here.
type timerQueue struct {
	heap   []armed
	live   map[timerKey]uint64
	number uint64
}

func (q *timerQueue) arm(key timerKey, at Instant) {
	if q.live == nil {
		q.live = make(map[timerKey]uint64)
	}
	q.number++
	q.live[key] = q.number
	if len(q.heap) > 2*len(q.live)+64 {
		q.compact()
	}
	q.heap = append(q.heap, armed{at: at, number: q.number, key: key})
	q.up(len(q.heap) - 1)
}

func (q *timerQueue) disarm(key timerKey) { delete(q.live, key) }

// next returns when the earliest timer is due, [Never] without a timer.
func (q *timerQueue) next() Instant {
	for len(q.heap) > 0 {
		if q.live[q.heap[0].key] == q.heap[0].number {
			return q.heap[0].at
		}
		q.pop()
	}
	return Never
}

// take removes and returns the earliest timer if it is due at now and its request has
// at most the number last.
func (q *timerQueue) take(now Instant, last uint64) (timerKey, bool) {
	if q.next() > now || len(q.heap) == 0 || q.heap[0].number > last {
		return timerKey{}, false
	}
	key := q.pop().key
	delete(q.live, key)
	return key, true
}

func (q *timerQueue) compact() {
	kept := q.heap[:0]
	for _, a := range q.heap {
		if q.live[a.key] == a.number {
			kept = append(kept, a)
		}
	}
	clear(q.heap[len(kept):])
	q.heap = kept
	for i := len(kept)/2 - 1; i >= 0; i-- {
		q.down(i)
	}
}

func (a armed) before(b armed) bool {
	return a.at < b.at || a.at == b.at && a.number < b.number
}

func (q *timerQueue) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !q.heap[i].before(q.heap[parent]) {
			return
		}
		q.heap[i], q.heap[parent] = q.heap[parent], q.heap[i]
		i = parent
	}
}

func (q *timerQueue) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(q.heap) {
			return
		}
		if right := child + 1; right < len(q.heap) && q.heap[right].before(q.heap[child]) {
			child = right
		}
		if !q.heap[child].before(q.heap[i]) {
			return
		}
		q.heap[i], q.heap[child] = q.heap[child], q.heap[i]
		i = child
	}
}

func (q *timerQueue) pop() armed {
	top, last := q.heap[0], len(q.heap)-1
	q.heap[0] = q.heap[last]
	q.heap[last] = armed{}
	q.heap = q.heap[:last]
	q.down(0)
	return top
}
