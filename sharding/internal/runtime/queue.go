// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"slices"
	"sync/atomic"
	"time"
)

// Entities with something to do stand in one queue of two classes, and few workers take from it.
// The file follows a job: Put, Next and Exchange give it to a worker; Look finds the workers that
// user code keeps and lets others take their place; Trim lets workers go that are not needed any
// more; class.go has what a class is. The queue decides; whoever owns it has the workers, the
// lock and the timers.

const (
	// QueueLook is the interval at which the owner of a queue calls [Queue.Look] while jobs
	// wait.
	QueueLook = 200 * time.Microsecond

	// QueueTrim is the interval at which the owner of a queue calls [Queue.Trim].
	QueueTrim = time.Second

	// maxIdleWorkers bounds the workers that wait for a job, with some 8 KiB of stack each.
	maxIdleWorkers = 8192
)

// Queue is the queue of the entities that have something to do, which are jobs of type J. It
// has at most one job for each entity. As many workers, of type W, do jobs of the quick class as
// the program has processors: more would only hand over between themselves. A worker that user
// code keeps for longer than a look does not count: for it another one takes jobs, see
// [Queue.Look]. The jobs of entities that are known to keep their workers stand in the slow
// class, which has places of its own.
//
//	Put ──> quick or slow ──> worker: Next ──> steps of the entity ──> Next ... idle ──> ends
//	          ^                                     │
//	          ├──── Exchange: others wait ──────────┤
//	          └──── Put: it is of the other class ──┘
//
// Invariants, between calls:
//
//	Q1  a job stands in one class, or one worker does it;
//	Q2  the workers that do jobs of a class are as many as its busy says, and a worker
//	    has the class of its job: so no slow job has a place of the quick class, nor keeps a
//	    quick one waiting;
//	Q3  jobs of a class are taken in the order in which they came to it;
//	Q4  while jobs of a class wait, at least as many of its jobs are being done as it has
//	    places, but for the time from Leave or Trim to the next look;
//	Q5  after a look, a class in which jobs wait has at least as many places beside the workers
//	    that are kept as it has for good.
//
// All methods but Waiting belong to one goroutine at a time.
type Queue[J, W any] struct {
	classes [classCount]class[J]
	workers []*Worker[W] // All workers, in no order.
	idle    []*Worker[W] // The workers that wait for a job. The one that came last is taken first.
	unused  int          // How many workers of idle, from the first on, no job has needed since the last trim.
	closed  bool         // No worker waits any more.
}

// Worker does one job after the other.
type Worker[W any] struct {
	Own   W      // What the owner of the queue keeps of the worker.
	at    int    // Its place among the workers of the queue.
	class Class  // That of its job.
	seen  uint64 // The count of calls that the last look has seen.

	calls atomic.Uint64 // Counts the begins and the ends of calls of user code: odd while one runs.
}

// Enter says that a call of user code begins. The worker itself says so, without the lock of
// the queue.
func (w *Worker[W]) Enter() { w.calls.Add(1) }

// Return says that the call of user code has ended. The worker itself says so, without the
// lock of the queue.
func (w *Worker[W]) Return() { w.calls.Add(1) }

// kept reports whether user code keeps the worker: the call that runs had begun before the
// last look. A worker that has a job and is in no call waits for a processor, or will be in one
// at once: another worker beside it would wait for the same processor.
func (w *Worker[W]) kept() bool {
	last := w.seen
	w.seen = w.calls.Load()
	return w.seen == last && last%2 == 1
}

// Class returns the class of the job that the worker does.
func (w *Worker[W]) Class() Class { return w.class }

// Assignment is a job for a worker. If IsNew, the worker has not been seen before.
type Assignment[J, W any] struct {
	Worker *Worker[W]
	IsNew  bool
	Job    J
}

// Init prepares an empty queue for a number of processors.
func (q *Queue[J, W]) Init(processors int) {
	for i := range q.classes {
		q.classes[i].fit(Class(i), processors)
		q.classes[i].limit = q.classes[i].least
	}
}

// Waiting returns how many jobs stand in a class. It may be called from any goroutine.
func (q *Queue[J, W]) Waiting(of Class) int { return int(q.classes[of].waiting.Load()) }

// Idle reports whether no job stands in the queue.
func (q *Queue[J, W]) Idle() bool {
	return q.classes[ClassQuick].jobs.len() == 0 && q.classes[ClassSlow].jobs.len() == 0
}

// Busy returns how many workers do jobs of a class.
func (q *Queue[J, W]) Busy(of Class) int { return q.classes[of].busy }

// Workers returns how many workers there are.
func (q *Queue[J, W]) Workers() int { return len(q.workers) }

// Limit returns how many workers may do jobs of a class at present.
func (q *Queue[J, W]) Limit(of Class) int { return q.classes[of].limit }

// Put finds a worker for a job of a class, or lets it stand there if enough workers are busy,
// and reports false then.
func (q *Queue[J, W]) Put(j J, of Class) (Assignment[J, W], bool) {
	if c := &q.classes[of]; c.busy >= c.limit {
		c.push(j)
		return Assignment[J, W]{}, false
	}
	return q.engage(j, of), true
}

// engage gives a job of a class to a worker, which is busy from now on.
func (q *Queue[J, W]) engage(j J, of Class) Assignment[J, W] {
	s := Assignment[J, W]{Job: j}
	if last := len(q.idle) - 1; last >= 0 {
		s.Worker = q.idle[last]
		q.idle[last] = nil
		q.idle, q.unused = q.idle[:last], min(q.unused, last)
	} else {
		s.Worker, s.IsNew = &Worker[W]{at: len(q.workers)}, true
		q.workers = append(q.workers, s.Worker)
	}
	q.classes[of].busy++
	s.Worker.class = of
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
	if c := &q.classes[w.class]; c.busy <= c.limit && c.jobs.len() > 0 {
		return c.pop(), TurnWork
	}
	q.release(w)
	if q.closed || len(q.idle) >= maxIdleWorkers {
		q.dismiss(w)
		return j, TurnEnd
	}
	q.idle = append(q.idle, w)
	return j, TurnWait
}

// Exchange puts a job that is not done to the end of its class, and returns the first one: an
// entity whose messages never end shares its worker with those that wait. One that turns out
// to be of the other class than its worker is Put there, and the worker gets another job by
// Next.
func (q *Queue[J, W]) Exchange(w *Worker[W], j J) J {
	c := &q.classes[w.class]
	c.push(j)
	return c.pop()
}

// Leave takes a worker out that is gone in the middle of a job. Jobs that stand in the queue
// find another worker at the next look at the latest.
func (q *Queue[J, W]) Leave(w *Worker[W]) {
	q.release(w)
	q.dismiss(w)
}

// release takes a worker, which has no job any more, out of its place.
func (q *Queue[J, W]) release(w *Worker[W]) { q.classes[w.class].busy-- }

// dismiss takes a worker that is not busy, and does not wait, out of the list of all.
func (q *Queue[J, W]) dismiss(w *Worker[W]) {
	last := len(q.workers) - 1
	q.workers[w.at] = q.workers[last]
	q.workers[w.at].at = w.at
	q.workers[last] = nil
	q.workers = q.workers[:last]
}

// Look lets more workers take jobs if user code keeps those that do, while jobs wait. A
// worker counts as kept that has been in the same call since before the last look: its entity
// sleeps, waits for another one, or computes. That it has had the same job for as long would not
// do: where the processors have other work, workers have their jobs for long and have
// not begun them, and more workers would be added until each job has one of its own.
func (q *Queue[J, W]) Look() (starts []Assignment[J, W]) {
	var kept [classCount]int
	for _, w := range q.workers {
		if w.kept() {
			kept[w.class]++
		}
	}
	for i := range q.classes {
		c := &q.classes[i]
		if c.jobs.len() > 0 {
			c.grow(kept[i])
		}
		for c.vacant() {
			starts = append(starts, q.engage(c.pop(), Class(i)))
		}
	}
	return starts
}

// Trim takes out the workers that no job has needed since the last call, and returns them:
// they end. It lowers the number of additional workers by a quarter. The number of
// processors may have changed.
func (q *Queue[J, W]) Trim(processors int) []*Worker[W] {
	for i := range q.classes {
		q.classes[i].fit(Class(i), processors)
		q.classes[i].shrink()
	}
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
