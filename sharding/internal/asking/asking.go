// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package asking has the answers of a machine find the goroutines that wait for them: a question is put under a number,
// which its answer names.
package asking

import (
	"cmp"
	"context"
	"sync"
	"time"
)

// Questions are those that were put and have no answer yet. The zero value is ready, and safe for concurrent use.
type Questions[A any] struct {
	mu   sync.Mutex        // Guards all fields below.
	last uint64            // The number of the last question.
	open map[uint64]chan A // Where answers go, by the number of the question: each has room for the one.
}

// Ask puts a question under a new number and waits for its answer. There is none, and ok is false, if put fails, ctx
// ends, or over is closed first; an answer that comes later is dropped.
func (q *Questions[A]) Ask(ctx context.Context, over <-chan struct{}, put func(number uint64) error) (answer A, ok bool) {
	number, answered := q.begin()
	defer q.end(number)
	if put(number) != nil {
		return answer, false
	}
	select {
	case answer = <-answered:
		return answer, true
	case <-ctx.Done():
	case <-over:
	}
	return answer, false
}

// Answer answers the question of a number, if somebody still waits. It does not block.
func (q *Questions[A]) Answer(number uint64, answer A) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if c := q.open[number]; c != nil {
		delete(q.open, number)
		c <- answer
	}
}

func (q *Questions[A]) begin() (uint64, <-chan A) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.last++
	if q.open == nil {
		q.open = make(map[uint64]chan A)
	}
	c := make(chan A, 1)
	q.open[q.last] = c
	return q.last, c
}

func (q *Questions[A]) end(number uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.open, number)
}

// Pause waits for a time before a question is repeated. It returns why ctx has ended, if that comes first.
func Pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return cmp.Or(context.Cause(ctx), ctx.Err())
	}
}
