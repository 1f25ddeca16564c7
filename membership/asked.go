// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership

import "sync"

// pendingCommands has the callers that wait for the machine's answers to their commands; an answer is an A.
// There are as many as there are callers. The zero value is ready to use.
type pendingCommands[A any] struct {
	mu      sync.Mutex // Guards all below; held for a moment.
	last    uint64     // Number of the last command.
	waiting map[uint64]chan A
}

// ask returns the number of a new command, and the channel of its answer. The capacity is
// one: there is one answer.
func (q *pendingCommands[A]) ask() (uint64, <-chan A) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting == nil {
		q.waiting = make(map[uint64]chan A)
	}
	q.last++
	q.waiting[q.last] = make(chan A, 1)
	return q.last, q.waiting[q.last]
}

// answer delivers the answer to a command, unless its caller has stopped waiting.
func (q *pendingCommands[A]) answer(id uint64, a A) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if asker := q.waiting[id]; asker != nil {
		asker <- a
		delete(q.waiting, id)
	}
}

// forget drops the wait for an answer.
func (q *pendingCommands[A]) forget(id uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.waiting, id)
}
