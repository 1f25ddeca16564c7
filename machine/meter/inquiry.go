// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"context"
	"sync"
	"time"
)

// inquiryLimit is how long a collection waits for a machine: a driver that is busy
// for longer has other worries, which other metrics show.
const inquiryLimit = 200 * time.Millisecond

// Inquiry asks a machine, at a collection, for what only the machine knows, and
// waits for the answer. Collections take turns.
//
//	callback ── Ask ──> post(id) ──> machine
//	    ^                               │
//	    └────────── Answer(id) <────────┘ published
//
// The zero value is ready to use. It is safe for concurrent use.
type Inquiry[T any] struct {
	turn sync.Mutex // Held while an answer is waited for, which has a limit.

	mu     sync.Mutex // Guards all below; held for a moment.
	id     uint64
	answer chan T // Nil when nobody waits. Capacity one: it gets one answer at most.
}

// Ask posts a question with a fresh id and waits for its answer, for 200 ms at
// most, and until ctx ends or over is closed. Post must not wait.
func (q *Inquiry[T]) Ask(ctx context.Context, over <-chan struct{}, post func(id uint64) error) (answer T, ok bool) {
	q.turn.Lock()
	defer q.turn.Unlock()
	id, waiting := q.begin()
	defer q.end()
	if post(id) != nil {
		return answer, false
	}
	limit := time.NewTimer(inquiryLimit)
	defer limit.Stop()
	select {
	case answer = <-waiting:
		return answer, true
	case <-ctx.Done():
	case <-over:
	case <-limit.C:
	}
	return answer, false
}

// Answer gives the answer to a question. One that nobody waits for any more is
// for nobody.
func (q *Inquiry[T]) Answer(id uint64, answer T) {
	q.mu.Lock()
	defer q.mu.Unlock()
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
