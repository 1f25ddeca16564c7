// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/sharding/internal/cell"
)

// Entities with something to do stand in one queue, and few workers take from it. The file
// follows a job: put, next and exchange hand it to a worker; look, of a timer, finds the
// workers that user code keeps and lets others take their place; trimIdle and trim let workers
// go that are not needed any more.

// job is an entity with something to do, which op says.
type job struct {
	r   *router
	sl  *slot
	e   *cell.Entity
	op  cell.Op
	ctx *Context // Of the steps that the job has taken so far; nil before the first.
}

const (
	// queueLook is the interval at which the queue looks for workers that user code keeps,
	// while jobs wait.
	queueLook = 200 * time.Microsecond

	// queuePatience is the interval at which the queue lets workers go that no job has
	// needed since the last time.
	queuePatience = time.Second

	// queueIdleMost bounds the workers that wait for a job, with some 8 KiB of stack each.
	queueIdleMost = 8192
)

// workQueue is the queue of the entities that have something to do. It has at most one job
// for each entity. As many workers take jobs as the program has processors: more would only
// hand over between themselves. A worker that user code keeps for longer than a look does
// not count: for it another one takes jobs, see [workQueue.look].
//
//	put ──> jobs ──> worker: next ──> steps of the entity ──> next ... idle ──> ends
//	          ^                            │
//	          └──── exchange: others wait ─┘
type workQueue struct {
	run func(w *worker, j job) // Does jobs on a goroutine of its own until next reports false.

	waiting atomic.Int64 // How many jobs stand in the queue.

	mu         sync.Mutex // Guards all fields below.
	jobs       jobRing
	processors int       // GOMAXPROCS, read again from time to time.
	limit      int       // How many workers may do jobs: processors, and one for each that was found kept.
	busy       int       // How many workers do jobs.
	workers    []*worker // All workers, in no order.
	idle       []*worker // The workers that wait for a job. The one that came last is taken first.
	unused     int       // How many workers of idle, from the first on, no job has needed since the last trim.
	looks      uint64    // Counts the looks.
	looking    bool      // The timer of the next look runs.
	timer      *time.Timer
	closed     bool // No worker waits any more.
}

// worker is a goroutine that does one job after the other.
type worker struct {
	jobs  chan job // Capacity one; closed when the worker is to end.
	at    int      // Its place among the workers of the queue.
	busy  bool     // It does a job.
	since uint64   // The count of looks when it took that job.
}

func (q *workQueue) init(run func(*worker, job)) {
	q.run, q.processors = run, runtime.GOMAXPROCS(0)
	q.limit = q.processors
}

// put gives a job to a worker, or lets it stand in the queue if enough workers are busy.
func (q *workQueue) put(j job) {
	q.mu.Lock()
	if q.busy >= q.limit {
		q.push(j)
		q.lookLater()
		q.mu.Unlock()
		return
	}
	w, isNew := q.engage()
	q.mu.Unlock()
	q.hand(w, isNew, j)
}

// engage returns a worker that is busy from now on, and whether it has no goroutine yet. The
// caller holds q.mu, and then hands it a job.
func (q *workQueue) engage() (w *worker, isNew bool) {
	if last := len(q.idle) - 1; last >= 0 {
		w = q.idle[last]
		q.idle[last] = nil
		q.idle, q.unused = q.idle[:last], min(q.unused, last)
	} else {
		w, isNew = &worker{jobs: make(chan job, 1), at: len(q.workers)}, true
		q.workers = append(q.workers, w)
	}
	q.busy++
	w.busy, w.since = true, q.looks
	return w, isNew
}

func (q *workQueue) hand(w *worker, isNew bool, j job) {
	if isNew {
		q.run(w, j)
		return
	}
	w.jobs <- j
}

// next returns the next job of a worker that has done its last one, and waits for it. It
// reports false when the goroutine is to end.
func (q *workQueue) next(w *worker) (job, bool) {
	q.mu.Lock()
	if q.busy <= q.limit && q.jobs.len() > 0 {
		j := q.pop(w)
		q.mu.Unlock()
		return j, true
	}
	q.release(w)
	if q.closed || len(q.idle) >= queueIdleMost {
		q.dismiss(w)
		q.mu.Unlock()
		return job{}, false
	}
	q.idle = append(q.idle, w)
	q.mu.Unlock()
	j, ok := <-w.jobs
	return j, ok
}

// exchange puts a job that is not done to the end of the queue, and returns the first one:
// an entity whose messages never end shares its worker with those that wait.
func (q *workQueue) exchange(w *worker, j job) job {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.push(j)
	return q.pop(w)
}

// leave takes a worker out whose goroutine was ended by user code. Jobs that stand in the
// queue find another worker at the next look at the latest.
func (q *workQueue) leave(w *worker) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.release(w)
	q.dismiss(w)
}

func (q *workQueue) push(j job) {
	q.jobs.push(j)
	q.waiting.Add(1)
}

func (q *workQueue) pop(w *worker) job {
	q.waiting.Add(-1)
	w.since = q.looks
	return q.jobs.pop()
}

// release ends that a worker is busy.
func (q *workQueue) release(w *worker) {
	w.busy = false
	q.busy--
}

// dismiss takes a worker that is not busy, and does not wait, out of the list of all.
func (q *workQueue) dismiss(w *worker) {
	last := len(q.workers) - 1
	q.workers[w.at] = q.workers[last]
	q.workers[w.at].at = w.at
	q.workers[last] = nil
	q.workers = q.workers[:last]
}

// lookLater arms the timer of the next look, if it does not run. The caller holds q.mu.
func (q *workQueue) lookLater() {
	switch {
	case q.looking || q.jobs.len() == 0:
		return
	case q.timer == nil:
		// The function runs on a goroutine of the Go runtime for the time of one look.
		q.timer = time.AfterFunc(queueLook, q.look)
	default:
		q.timer.Reset(queueLook)
	}
	q.looking = true
}

// look lets more workers take jobs if user code keeps those that do, while jobs wait. A
// worker counts as kept that has done the same job since before the last look: its entity
// sleeps, waits for another one, or computes. If fewer are left than there are processors,
// the number of additional workers is doubled at least, so that a few looks find enough of
// them for entities that all block for a short time; trim lowers it slowly.
func (q *workQueue) look() {
	q.mu.Lock()
	q.looking = false
	q.looks++
	if q.jobs.len() == 0 {
		q.mu.Unlock()
		return
	}
	kept := 0
	for _, w := range q.workers {
		if w.busy && w.since+1 < q.looks {
			kept++
		}
	}
	if q.limit-kept < q.processors {
		q.limit = max(q.processors+kept, 2*q.limit-q.processors)
	}
	type start struct {
		w     *worker
		isNew bool
		j     job
	}
	var starts []start
	for q.busy < q.limit && q.jobs.len() > 0 {
		w, isNew := q.engage()
		starts = append(starts, start{w, isNew, q.pop(w)})
	}
	q.lookLater()
	q.mu.Unlock()
	for _, s := range starts {
		q.hand(s.w, s.isNew, s.j)
	}
}

// trimIdle trims the queue until ctx ends, and then ends all workers that wait.
func (q *workQueue) trimIdle(ctx context.Context) {
	every := time.NewTicker(queuePatience)
	defer every.Stop()
	for ctx.Err() == nil {
		select {
		case <-every.C:
			q.trim(false)
		case <-ctx.Done():
		}
	}
	q.trim(true)
}

// trim ends the workers that no job has needed since the last trim, or all that wait, for
// ever; and lowers the number of additional workers by a quarter.
func (q *workQueue) trim(all bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.processors = runtime.GOMAXPROCS(0)
	q.limit = q.processors + max(0, q.limit-q.processors)*3/4
	n := q.unused
	if all {
		n, q.closed = len(q.idle), true
	}
	for _, w := range q.idle[:n] {
		q.dismiss(w)
		close(w.jobs)
	}
	q.idle = slices.Delete(q.idle, 0, n)
	q.unused = len(q.idle)
}

// jobRing is a queue of jobs that reuses its memory.
type jobRing struct {
	ring        []job
	head, count int
}

func (r *jobRing) len() int { return r.count }

func (r *jobRing) push(j job) {
	if r.count == len(r.ring) {
		larger := make([]job, max(64, 2*r.count))
		n := copy(larger, r.ring[r.head:])
		copy(larger[n:], r.ring[:r.head])
		r.ring, r.head = larger, 0
	}
	r.ring[(r.head+r.count)%len(r.ring)] = j
	r.count++
}

func (r *jobRing) pop() job {
	j := r.ring[r.head]
	r.ring[r.head] = job{} // For the collector.
	r.head = (r.head + 1) % len(r.ring)
	r.count--
	return j
}
