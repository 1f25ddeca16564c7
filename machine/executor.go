// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// Calls of strategies on goroutines of their own. Each component, port and key has a
// worker, which runs one call at a time and answers it, at the latest at its deadline;
// a call that ignores its deadline keeps the worker, and further calls are answered
// [ErrBusy].

// ErrBusy answers a [Call] whose port and key cannot take another: one call runs and
// one waits, or an earlier call went past its limit and has not returned.
var ErrBusy = errors.New("machine: an earlier call to this port has not returned")

// PanicError is the answer to a [Call] that panicked. Strategies are foreign code:
// their panic is an answer, unlike a panic of a machine.
type PanicError struct {
	Port  string
	Value any
	Stack string
}

// Error returns the port and the value. The stack is for logs.
func (e *PanicError) Error() string {
	return fmt.Sprintf("machine: call %q panicked: %v", e.Port, e.Value)
}

// maxObey is how long a call may take to return after its context has ended, before it
// counts as ignoring the context.
const maxObey = 100 * time.Millisecond

// executor runs calls with one worker for each component, port and key, which runs one
// call while one other may wait. A machine has few keys, and a worker stays once it
// has been started. Workers are started by the driver's goroutine, end with the
// executor's context, and are waited for by close. A call that ignores its context
// cannot be ended in Go: its goroutine is abandoned and counted.
type executor struct {
	perform   func(ctx context.Context, component string, c Call) (any, error)
	answer    func(to ID, called Called)
	workers   map[workerKey]chan<- job // Used by the driver's goroutine alone.
	ctx       context.Context          //nolint:containedctx // The lifetime of the workers, ended by close.
	cancel    context.CancelFunc
	wg        sync.WaitGroup
	abandoned atomic.Uint64
}

type workerKey struct {
	component ID
	port, key string
}

type job struct {
	to        ID
	component string
	call      Call
	deadline  time.Time
}

func newExecutor(
	perform func(context.Context, string, Call) (any, error), answer func(ID, Called),
) *executor {
	ctx, cancel := context.WithCancel(context.Background())
	return &executor{
		perform: perform, answer: answer, ctx: ctx, cancel: cancel,
		workers: make(map[workerKey]chan<- job),
	}
}

// submit hands a call to its worker. It never blocks; it returns false when the worker
// is busy.
func (x *executor) submit(to ID, component string, c Call) bool {
	Assert(c.Limit > 0, "a call has a limit", "port", c.Port, "limit", c.Limit)
	key := workerKey{component: to, port: c.Port, key: c.Key}
	jobs, ok := x.workers[key]
	if !ok {
		// Capacity one: the call that waits while another runs. When it is
		// taken the machine is told ErrBusy.
		line := make(chan job, 1)
		x.workers[key], jobs = line, line
		x.wg.Add(1)
		go x.work(line) // Ends with x.ctx; close waits for it.
	}
	select {
	case jobs <- job{to: to, component: component, call: c, deadline: time.Now().Add(c.Limit)}:
		return true
	default:
		return false
	}
}

// close ends all calls, and waits for the workers.
func (x *executor) close() {
	x.cancel()
	x.wg.Wait()
}

func (x *executor) work(jobs <-chan job) {
	defer x.wg.Done()
	for {
		select {
		case <-x.ctx.Done():
			return
		case j := <-jobs:
			x.run(j, jobs)
		}
	}
}

// run performs one call and answers it, at the latest at its deadline. It returns when
// the call has returned or the executor has closed.
func (x *executor) run(j job, jobs <-chan job) {
	ctx, cancel := context.WithDeadline(x.ctx, j.deadline)
	defer cancel()
	returned := make(chan Called, 1) // Capacity one: an abandoned call can still return.
	go func() {                      // Ends when the call returns, see executor.
		returned <- x.guard(ctx, j)
	}()
	select {
	case called := <-returned:
		x.answer(j.to, called)
		return
	case <-ctx.Done():
	}
	obey := time.NewTimer(maxObey)
	defer obey.Stop()
	x.answer(j.to, Called{ID: j.call.ID, Err: context.DeadlineExceeded})
	select {
	case <-returned:
		return
	case <-obey.C:
		x.abandoned.Add(1)
	}
	for {
		select {
		case <-x.ctx.Done():
			return
		case <-returned:
			return
		case next := <-jobs:
			x.answer(next.to, Called{ID: next.call.ID, Err: ErrBusy})
		}
	}
}

func (x *executor) guard(ctx context.Context, j job) (called Called) {
	called.ID = j.call.ID
	defer func() {
		if v := recover(); v != nil {
			called.Result = nil
			called.Err = &PanicError{Port: j.call.Port, Value: v, Stack: string(debug.Stack())}
		}
	}()
	result, err := x.perform(ctx, j.component, j.call)
	if err != nil {
		_ = err.Error() // It may be code of a program too, and panic: here, and not where the machine reads it.
		return Called{ID: j.call.ID, Err: err}
	}
	return Called{ID: j.call.ID, Result: result}
}
