// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/quorate/quorate/sharding/state/hold"
	"github.com/quorate/quorate/sharding/state/store"
)

// How a request of an instance becomes a call of the store: attempt makes calls until the hold of the
// instance says that the operation is over; a lane makes one call of the requests that wait at the
// same moment. The goroutine of the first of them makes the call for all; when it has returned, that of
// the first of those who came meanwhile makes the next.

// attempt makes an operation of a handle: it makes calls until the hold has an answer or gives up.
func attempt[A any](ctx context.Context, h *Handle, op string, call func() (A, store.Head, error)) (A, error) {
	var none A
	began := time.Now()
	for {
		answer, head, err := call()
		var step hold.Step
		if err == nil {
			step = h.record.Answered(head)
		} else {
			step = h.record.Unanswered(time.Since(began))
		}
		switch {
		case step.Err != nil:
		case step.Again == 0:
			h.keeper.operated(ctx, op, time.Since(began), nil)
			return answer, nil
		case sleep(ctx, step.Again):
			continue
		default:
			h.record.Abandon()
			err = context.Cause(ctx)
		}
		err = h.end(op, head, err)
		h.keeper.operated(ctx, op, time.Since(began), err)
		return none, err
	}
}

// end notes why a handle has ended, and what the store has said last.
func (h *Handle) end(op string, head store.Head, cause error) error {
	e := &Error{Op: op, Key: h.key, Owner: h.record.Owner(), Found: head, Err: h.record.Err()}
	h.keeper.ended(e)
	if cause != nil {
		e.Err = fmt.Errorf("%w: %w", e.Err, cause)
	}
	h.failed = e
	return e
}

// sleep waits for a time, and reports whether ctx has lasted so long.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// lane makes calls of one kind.
type lane[Q, A any] struct {
	timeout time.Duration
	calls   int
	call    func(context.Context, []Q) ([]A, error)
	called  func(requests int, took time.Duration, err error) // Is told of each call.

	mu      sync.Mutex
	queue   *hold.Queue[*waiter[Q, A]] // Guarded by mu. Each instance has one request at most.
	running int                        // Calls under way. Guarded by mu.
}

// waiter is a request that waits for its call.
type waiter[Q, A any] struct {
	request Q
	answer  A
	err     error

	// told has one token when the request is answered, or when its goroutine is to make a call.
	// Capacity one: no call but its own answers a request whose goroutine makes one.
	told  chan struct{}
	batch []*waiter[Q, A] // The requests of the call to make, this one first; else nil. Guarded by the mutex of the lane.
	over  bool            // The request is answered, or nobody waits for it. Guarded by the mutex of the lane.
}

func newLane[Q, A any](cfg Config, call func(context.Context, []Q) ([]A, error), called func(int, time.Duration, error)) *lane[Q, A] {
	return &lane[Q, A]{
		timeout: cfg.CallTimeout, calls: cfg.Calls, call: call, called: called,
		queue: hold.NewQueue[*waiter[Q, A]](cfg.Batch),
	}
}

// waiting returns how many requests wait for a call.
func (l *lane[Q, A]) waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queue.Len()
}

// do makes a request, of which so many attempts have failed, and returns its answer. If ctx ends before
// that, the request may still be made.
func (l *lane[Q, A]) do(ctx context.Context, request Q, key store.Key, failed int) (A, error) {
	w := &waiter[Q, A]{request: request, told: make(chan struct{}, 1)}
	l.mu.Lock()
	l.queue.Put(key, failed, w)
	l.begin()
	l.mu.Unlock()
	select {
	case <-w.told:
	case <-ctx.Done():
		if !l.wasTold(w) {
			var none A
			return none, context.Cause(ctx)
		}
	}
	if w.batch != nil {
		l.lead(ctx, w.batch)
	}
	return w.answer, w.err
}

// begin has a call made if one waits and may be. The caller holds the mutex.
func (l *lane[Q, A]) begin() {
	if l.running == l.calls {
		return
	}
	if batch := l.queue.Next(); len(batch) > 0 {
		l.running++
		batch[0].batch = batch
		batch[0].told <- struct{}{}
	}
}

// wasTold takes a request back whose context has ended, unless it was told something before, which
// must not be lost.
func (l *lane[Q, A]) wasTold(w *waiter[Q, A]) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.batch != nil || w.over {
		return true
	}
	l.queue.Remove(w)
	w.over = true
	return false
}

// lead makes a call for all of a batch. Its context is not that of the caller, whose request is only
// one of many.
func (l *lane[Q, A]) lead(ctx context.Context, batch []*waiter[Q, A]) {
	var answers []A
	err, began := errDeserted, time.Now()
	defer func() { // Also when the store has ended the goroutine.
		l.called(len(batch), time.Since(began), err)
		l.finish(batch, answers, err)
	}()
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.timeout)
	defer cancel()
	answers, err = l.make(limited, batch)
}

var errDeserted = errors.New("the store has ended the goroutine that called it")

// make calls the store for a batch.
func (l *lane[Q, A]) make(ctx context.Context, batch []*waiter[Q, A]) (answers []A, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the store has panicked: %v", v)
		}
	}()
	requests := make([]Q, len(batch))
	for i, w := range batch {
		requests[i] = w.request
	}
	answers, err = l.call(ctx, requests)
	if err == nil && len(answers) != len(batch) {
		err = fmt.Errorf("the store has given %d answers to %d requests", len(answers), len(batch))
	}
	return answers, err
}

// finish tells the requests of a call, of which the first is that of the caller, and lets the next
// call begin.
func (l *lane[Q, A]) finish(batch []*waiter[Q, A], answers []A, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, w := range batch {
		if w.over {
			continue
		}
		w.over = true
		if w.err = err; err == nil {
			w.answer = answers[i]
		}
		if i > 0 {
			w.told <- struct{}{}
		}
	}
	l.running--
	l.begin()
}
