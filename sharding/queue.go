// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"context"
	goruntime "runtime"
	"sync"
	"time"

	"github.com/quorate/quorate/sharding/internal/runtime"
)

// The goroutines of the queue: put, next and exchange hand a job to a worker, as the queue of
// the runtime decides; look, of a timer, gives jobs to more workers where user code keeps
// some; trimIdle ends the workers that are not needed any more.

// job is an entity with something to do.
type job struct {
	of   *program
	task runtime.Task
	ctx  *Context // Holds the steps that the job has taken so far; nil before the first.
}

// class returns the class of the job.
func (j job) class() runtime.Class {
	if j.ctx != nil {
		return j.ctx.job.Class()
	}
	return j.task.Class()
}

// worker is a goroutine that does one job after the other. What it has of its own is the
// channel of its jobs, of capacity one, which is closed when the worker is to end.
type worker = runtime.Worker[chan job]

// workQueue gives the queue of the runtime its goroutines, its lock and its timers. The
// queue says who does what; here it is handed over.
type workQueue struct {
	run func(w *worker, j job) // Does jobs on a goroutine of its own until next reports false.

	mu      sync.Mutex // Guards all fields below.
	queue   runtime.Queue[job, chan job]
	looking bool // The timer of the next look runs.
	timer   *time.Timer
}

func (q *workQueue) init(run func(*worker, job)) {
	q.run = run
	q.queue.Init(goruntime.GOMAXPROCS(0))
}

// crowded reports whether jobs of a class wait for a worker.
func (q *workQueue) crowded(of runtime.Class) bool { return q.queue.Waiting(of) > 0 }

// put gives a job to a worker, or lets it stand in the queue if enough workers are busy.
func (q *workQueue) put(j job) {
	q.mu.Lock()
	s, starts := q.queue.Put(j, j.class())
	if !starts {
		q.lookLater()
	}
	q.mu.Unlock()
	if starts {
		q.start(s)
	}
}

func (q *workQueue) start(s runtime.Start[job, chan job]) {
	if s.IsNew {
		s.Worker.Own = make(chan job, 1)
		q.run(s.Worker, s.Job)
		return
	}
	s.Worker.Own <- s.Job
}

// next returns the next job of a worker that has done its last one, and waits for it. It
// reports false when the goroutine is to end.
func (q *workQueue) next(w *worker) (job, bool) {
	q.mu.Lock()
	j, turn := q.queue.Next(w)
	q.mu.Unlock()
	switch turn {
	case runtime.TurnWork:
		return j, true
	case runtime.TurnWait:
		j, more := <-w.Own
		return j, more
	default:
		return job{}, false
	}
}

// exchange lets others go before a job that is not done, and returns as next does.
func (q *workQueue) exchange(w *worker, j job) (job, bool) {
	if j.class() != w.Class() {
		q.put(j)
		return q.next(w)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.queue.Exchange(w, j), true
}

// leave takes a worker out whose goroutine was ended by user code.
func (q *workQueue) leave(w *worker) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queue.Leave(w)
}

// lookLater arms the timer of the next look, if it does not run. The caller holds q.mu.
func (q *workQueue) lookLater() {
	switch {
	case q.looking || q.queue.Idle():
		return
	case q.timer == nil:
		// The function runs on a goroutine of the Go runtime for the time of one look.
		q.timer = time.AfterFunc(runtime.QueueLook, q.look)
	default:
		q.timer.Reset(runtime.QueueLook)
	}
	q.looking = true
}

// look lets more workers take jobs if user code keeps those that do, while jobs wait.
func (q *workQueue) look() {
	q.mu.Lock()
	q.looking = false
	starts := q.queue.Look()
	q.lookLater()
	q.mu.Unlock()
	for _, s := range starts {
		q.start(s)
	}
}

// trimIdle trims the queue until ctx ends, and then ends all workers that wait.
func (q *workQueue) trimIdle(ctx context.Context) {
	every := time.NewTicker(runtime.QueueTrim)
	defer every.Stop()
	for ctx.Err() == nil {
		select {
		case <-every.C:
			q.trim()
		case <-ctx.Done():
		}
	}
	q.close()
}

// trim ends the workers that no job has needed since the last trim.
func (q *workQueue) trim() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, w := range q.queue.Trim(goruntime.GOMAXPROCS(0)) {
		close(w.Own)
	}
}

// close ends all workers that wait, and the others after their jobs.
func (q *workQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, w := range q.queue.Close() {
		close(w.Own)
	}
}
