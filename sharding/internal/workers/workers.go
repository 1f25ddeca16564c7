// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package workers runs the goroutines that do the jobs of entities: a [Pool] gives the queue of package runtime, which
// says who does what, its goroutines, its lock and its timers.
//
//	Put ──> a worker, or the queue ──> worker: job, Next, job, Next ... ──> Next says that the goroutine ends
//
// Whoever owns the pool has its workers run, ends each when Next says so, and ends the pool by the context of
// [Pool.TrimIdle]. The pool is safe for concurrent use.
package workers

import (
	"context"
	goruntime "runtime"
	"sync"
	"time"

	"github.com/quorate/quorate/sharding/internal/runtime"
)

// Worker is a goroutine that does one job after the other. What it has of its own is the
// channel of its jobs, of capacity one, which is closed when the worker is to end.
type Worker[J any] = runtime.Worker[chan J]

// Pool hands jobs to workers, as the queue of the runtime decides.
type Pool[J any] struct {
	run func(w *Worker[J], j J) // Does jobs on a goroutine of its own until Next reports false.

	mu      sync.Mutex // Guards all fields below.
	queue   runtime.Queue[J, chan J]
	looking bool // The timer of the next look runs.
	timer   *time.Timer
}

// Init prepares the pool: run is called for each new worker, with its first job, and must not block.
func (p *Pool[J]) Init(run func(*Worker[J], J)) {
	p.run = run
	p.queue.Init(goruntime.GOMAXPROCS(0))
}

// Crowded reports whether jobs of a class wait for a worker.
func (p *Pool[J]) Crowded(of runtime.Class) bool { return p.queue.Waiting(of) > 0 }

// Limit returns how many workers may do jobs of a class at present.
func (p *Pool[J]) Limit(of runtime.Class) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queue.Limit(of)
}

// Put gives a job of a class to a worker, or lets it stand in the queue if enough workers are busy.
func (p *Pool[J]) Put(j J, of runtime.Class) {
	p.mu.Lock()
	s, starts := p.queue.Put(j, of)
	if !starts {
		p.lookLater()
	}
	p.mu.Unlock()
	if starts {
		p.start(s)
	}
}

func (p *Pool[J]) start(s runtime.Assignment[J, chan J]) {
	if s.IsNew {
		s.Worker.Own = make(chan J, 1)
		p.run(s.Worker, s.Job)
		return
	}
	s.Worker.Own <- s.Job
}

// Next returns the next job of a worker that has done its last one, and waits for it. It
// reports false when the goroutine is to end.
func (p *Pool[J]) Next(w *Worker[J]) (j J, more bool) {
	p.mu.Lock()
	j, turn := p.queue.Next(w)
	p.mu.Unlock()
	switch turn {
	case runtime.TurnWork:
		return j, true
	case runtime.TurnWait:
		j, more = <-w.Own
		return j, more
	default:
		return j, false
	}
}

// Exchange lets others go before a job that is not done, and is of a class by now. It returns as Next does.
func (p *Pool[J]) Exchange(w *Worker[J], j J, of runtime.Class) (next J, more bool) {
	if of != w.Class() {
		p.Put(j, of)
		return p.Next(w)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queue.Exchange(w, j), true
}

// Leave takes a worker out whose goroutine was ended by user code.
func (p *Pool[J]) Leave(w *Worker[J]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue.Leave(w)
}

// lookLater arms the timer of the next look, if it does not run. The caller holds p.mu.
func (p *Pool[J]) lookLater() {
	switch {
	case p.looking || p.queue.Idle():
		return
	case p.timer == nil:
		// The function runs on a goroutine of the Go runtime for the time of one look.
		p.timer = time.AfterFunc(runtime.QueueLook, p.look)
	default:
		p.timer.Reset(runtime.QueueLook)
	}
	p.looking = true
}

// look lets more workers take jobs if user code keeps those that do, while jobs wait.
func (p *Pool[J]) look() {
	p.mu.Lock()
	p.looking = false
	starts := p.queue.Look()
	p.lookLater()
	p.mu.Unlock()
	for _, s := range starts {
		p.start(s)
	}
}

// TrimIdle trims the queue until ctx ends, and then ends all workers that wait.
func (p *Pool[J]) TrimIdle(ctx context.Context) {
	every := time.NewTicker(runtime.QueueTrim)
	defer every.Stop()
	for ctx.Err() == nil {
		select {
		case <-every.C:
			p.trim()
		case <-ctx.Done():
		}
	}
	p.close()
}

// trim ends the workers that no job has needed since the last trim.
func (p *Pool[J]) trim() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.queue.Trim(goruntime.GOMAXPROCS(0)) {
		close(w.Own)
	}
}

// close ends all workers that wait, and the others after their jobs.
func (p *Pool[J]) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.queue.Close() {
		close(w.Own)
	}
}
