// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"slices"
	"sync/atomic"
	"time"
)

// Entities with something to do stand in one queue, and few workers take from it. The file
// follows a job: Put, Next and Exchange give it to a worker; Look finds the workers that user
// code keeps and lets others take their place; Trim lets workers go that are not needed any
// more. The queue decides; whoever owns it has the workers, the lock and the timers.

const (
	// QueueLook is the interval at which the owner of a queue calls [Queue.Look] while jobs
	// wait.
	QueueLook = 200 * time.Microsecond

	// QueueTrim is the interval at which the owner of a queue calls [Queue.Trim].
	QueueTrim = time.Second

	// queueIdleMost bounds the workers that wait for a job, with some 8 KiB of stack each.
	queueIdleMost = 8192
)

// Queue is the queue of the entities that have something to do, which are jobs of type J. It
// has at most one job for each entity. As many workers, of type W, take jobs as the program
// has processors: more would only hand over between themselves. A worker that user code
// keeps for longer than a look does not count: for it another one takes jobs, see
// [Queue.Look].
//
//	Put ──> jobs ──> worker: Next ──> steps of the entity ──> Next ... idle ──> ends
//	          ^                            │
//	          └──── Exchange: others wait ─┘
//
// All methods but Waiting belong to one goroutine at a time.
type Queue[J, W any] struct {
	waiting atomic.Int64 // How many jobs stand in the queue.

	jobs       jobRing[J]
	processors int          // For how many workers there are processors.
	limit      int          // How many workers may do jobs: processors, and one for each that was found kept.
	busy       int          // How many workers do jobs.
	workers    []*Worker[W] // All workers, in no order.
	idle       []*Worker[W] // The workers that wait for a job. The one that came last is taken first.
	unused     int          // How many workers of idle, from the first on, no job has needed since the last trim.
	looks      uint64       // Counts the looks.
	closed     bool         // No worker waits any more.
}

// Worker does one job after the other.
type Worker[W any] struct {
	Own   W      // What the owner of the queue keeps of the worker.
	at    int    // Its place among the workers of the queue.
	busy  bool   // It does a job.
	since uint64 // The count of looks when it took that job.
}

// Start is a job for a worker. If IsNew, the worker has not been seen before.
type Start[J, W any] struct {
	Worker *Worker[W]
	IsNew  bool
	Job    J
}

// Init prepares an empty queue for a number of processors.
func (q *Queue[J, W]) Init(processors int) { q.processors, q.limit = processors, processors }

// Waiting returns how many jobs stand in the queue. It may be called from any goroutine.
func (q *Queue[J, W]) Waiting() int { return int(q.waiting.Load()) }

// Busy returns how many workers do jobs.
func (q *Queue[J, W]) Busy() int { return q.busy }

// Workers returns how many workers there are.
func (q *Queue[J, W]) Workers() int { return len(q.workers) }

// Limit returns how many workers may do jobs at present.
func (q *Queue[J, W]) Limit() int { return q.limit }

// Put finds a worker for a job, or lets it stand in the queue if enough workers are busy,
// and reports false then.
func (q *Queue[J, W]) Put(j J) (Start[J, W], bool) {
	if q.busy >= q.limit {
		q.push(j)
		return Start[J, W]{}, false
	}
	return q.engage(j), true
}

// engage gives a job to a worker, which is busy from now on.
func (q *Queue[J, W]) engage(j J) Start[J, W] {
	s := Start[J, W]{Job: j}
	if last := len(q.idle) - 1; last >= 0 {
		s.Worker = q.idle[last]
		q.idle[last] = nil
		q.idle, q.unused = q.idle[:last], min(q.unused, last)
	} else {
		s.Worker, s.IsNew = &Worker[W]{at: len(q.workers)}, true
		q.workers = append(q.workers, s.Worker)
	}
	q.busy++
	s.Worker.busy, s.Worker.since = true, q.looks
	return s
}

// Turn says what becomes of a worker that has done its job.
type Turn uint8

// The turns.
const (
	TurnWork Turn = iota // It does the job that [Queue.Next] returned.
	TurnWait             // It waits until it is given a job by another call.
	TurnEnd              // It ends.
)

// Next returns the next job of a worker that has done its last one.
func (q *Queue[J, W]) Next(w *Worker[W]) (j J, turn Turn) {
	if q.busy <= q.limit && q.jobs.len() > 0 {
		return q.pop(w), TurnWork
	}
	q.release(w)
	if q.closed || len(q.idle) >= queueIdleMost {
		q.dismiss(w)
		return j, TurnEnd
	}
	q.idle = append(q.idle, w)
	return j, TurnWait
}

// Exchange puts a job that is not done to the end of the queue, and returns the first one:
// an entity whose messages never end shares its worker with those that wait.
func (q *Queue[J, W]) Exchange(w *Worker[W], j J) J {
	q.push(j)
	return q.pop(w)
}

// Leave takes a worker out that is gone in the middle of a job. Jobs that stand in the queue
// find another worker at the next look at the latest.
func (q *Queue[J, W]) Leave(w *Worker[W]) {
	q.release(w)
	q.dismiss(w)
}

func (q *Queue[J, W]) push(j J) {
	q.jobs.push(j)
	q.waiting.Add(1)
}

func (q *Queue[J, W]) pop(w *Worker[W]) J {
	q.waiting.Add(-1)
	w.since = q.looks
	return q.jobs.pop()
}

// release ends that a worker is busy.
func (q *Queue[J, W]) release(w *Worker[W]) {
	w.busy = false
	q.busy--
}

// dismiss takes a worker that is not busy, and does not wait, out of the list of all.
func (q *Queue[J, W]) dismiss(w *Worker[W]) {
	last := len(q.workers) - 1
	q.workers[w.at] = q.workers[last]
	q.workers[w.at].at = w.at
	q.workers[last] = nil
	q.workers = q.workers[:last]
}

// Look lets more workers take jobs if user code keeps those that do, while jobs wait. A
// worker counts as kept that has done the same job since before the last look: its entity
// sleeps, waits for another one, or computes. If fewer are left than there are processors,
// the number of additional workers is doubled at least, so that a few looks find enough of
// them for entities that all block for a short time; Trim lowers it slowly.
func (q *Queue[J, W]) Look() (starts []Start[J, W]) {
	q.looks++
	if q.jobs.len() == 0 {
		return nil
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
	for q.busy < q.limit && q.jobs.len() > 0 {
		q.waiting.Add(-1)
		starts = append(starts, q.engage(q.jobs.pop()))
	}
	return starts
}

// Trim takes out the workers that no job has needed since the last call, and returns them:
// they end. It lowers the number of additional workers by a quarter. The number of
// processors may have changed.
func (q *Queue[J, W]) Trim(processors int) []*Worker[W] {
	q.processors = processors
	q.limit = q.processors + max(0, q.limit-q.processors)*3/4
	return q.end(q.unused)
}

// Close takes out all workers that wait, and returns them: they end, and so does every
// other worker after its job.
func (q *Queue[J, W]) Close() []*Worker[W] {
	q.closed = true
	return q.end(len(q.idle))
}

// end takes the first n workers that wait out of the queue.
func (q *Queue[J, W]) end(n int) []*Worker[W] {
	ended := slices.Clone(q.idle[:n])
	for _, w := range ended {
		q.dismiss(w)
	}
	q.idle = slices.Delete(q.idle, 0, n)
	q.unused = len(q.idle)
	return ended
}

// jobRing is a queue of jobs that reuses its memory.
type jobRing[J any] struct {
	ring        []J
	head, count int
}

func (r *jobRing[J]) len() int { return r.count }

func (r *jobRing[J]) push(j J) {
	if r.count == len(r.ring) {
		larger := make([]J, max(64, 2*r.count))
		n := copy(larger, r.ring[r.head:])
		copy(larger[n:], r.ring[:r.head])
		r.ring, r.head = larger, 0
	}
	r.ring[(r.head+r.count)%len(r.ring)] = j
	r.count++
}

func (r *jobRing[J]) pop() J {
	var none J
	j := r.ring[r.head]
	r.ring[r.head] = none // For the collector.
	r.head = (r.head + 1) % len(r.ring)
	r.count--
	return j
}
