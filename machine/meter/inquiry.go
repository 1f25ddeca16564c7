// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"context"
	"sync"
	"time"
)

// inquiryTimeout is how long a collection waits for a machine. A driver that is busy for
// longer has trouble that other metrics show; the collection gets what the machine said last.
const inquiryTimeout = 200 * time.Millisecond

// Inquiry asks a machine, during a collection of metrics, for values that only the
// machine knows, and waits for the answer. Collections take turns.
//
//	callback ── Ask ──> post(id) ──> machine
//	    ^                               │
//	    └────────── Answer(id) <────────┘ published
//
// The zero value is ready to use. It is safe for concurrent use.
type Inquiry[T any] struct {
	turn sync.Mutex // Held by the collection that waits for an answer, for a limited time.

	mu     sync.Mutex // Guards the fields below; held for a moment.
	id     uint64
	answer chan T // Nil when no collection waits. Capacity one, for the one answer.
	last   T      // The answer to the question of the id lastID, which may have come late; 0: none has come.
	lastID uint64
}

// Ask posts a question with a new id and waits for its answer, for at most 200 ms and
// until ctx ends or over is closed. Of a machine that is late Ask returns the last answer,
// so that values of a busy machine are old, and not gone; ok is false if it has never
// answered, if ctx or the machine has ended, and if post fails. The function post must not wait.
func (q *Inquiry[T]) Ask(ctx context.Context, over <-chan struct{}, post func(id uint64) error) (answer T, ok bool) {
	q.turn.Lock()
	defer q.turn.Unlock()
	id, waiting := q.begin()
	defer q.end()
	if post(id) != nil {
		return answer, false
	}
	limit := time.NewTimer(inquiryTimeout)
	defer limit.Stop()
	select {
	case answer = <-waiting:
		return answer, true
	case <-ctx.Done():
	case <-over:
	case <-limit.C:
		q.mu.Lock()
		defer q.mu.Unlock()
		return q.last, q.lastID > 0
	}
	return answer, false
}

// Answer answers the question with the given id. An answer for which no collection
// waits any more is kept for one that gets none.
func (q *Inquiry[T]) Answer(id uint64, answer T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if id > q.lastID && id <= q.id {
		q.last, q.lastID = answer, id
	}
	if q.answer != nil && id == q.id {
		q.answer <- answer
		q.answer = nil
	}
}

func (q *Inquiry[T]) begin() (uint64, <-chan T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.id++
	q.answer = make(chan T, 1)
	return q.id, q.answer
}

func (q *Inquiry[T]) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.answer = nil
}
