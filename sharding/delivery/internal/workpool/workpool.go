// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package workpool

import (
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorate/quorate/sharding/delivery/internal/retry"
)

// The driver puts jobs, and says who the workers are; asks Next for frames to send until there is none, and
// again at Wake; and tells of each frame how it ended: Answered, after it has carried out what Confirms has said, or
// Unanswered.

// Config bounds a pool.
type Config struct {
	Jobs, Bytes        int           // Held in all.
	Frame, FrameBytes  int           // Of one frame; one job may have more bytes.
	RetryMin, RetryMax time.Duration // Until a worker that has failed is asked again, doubling from the one to the other.
}

// Job is one piece of work.
type Job[V any] struct {
	ID       uint64 // From 1, in the order in which jobs were put.
	Number   uint64 // Of its last sending, 0 before the first: another one each time.
	Value    V
	Bytes    int
	Attempts int // How often it was sent.
}

// Frame is what goes to a worker at one time. Without jobs it asks for what the worker takes.
type Frame[V any] struct {
	To   string
	Jobs []Job[V]
}

// Answer is what a worker says to a frame.
type Answer struct {
	Confirmed uint64 // The number of the last job of the frame that was done; 0: none.
	Demand    int    // How many jobs the next frame may have; 0: none at present.
}

// ErrNonsense says that an answer confirms what its frame has not.
var ErrNonsense = errors.New("the answer confirms what was not sent")

// worker is what belongs to one worker.
type worker[V any] struct {
	id     string
	frame  []Job[V] // Under way; nil if none is.
	busy   bool     // A frame is under way, perhaps one without jobs.
	gone   bool     // It is no worker any more; forgotten when its frame has landed.
	credit int      // What it has asked for; one at first and after a failure.
	pauses int      // In a row, without progress between them.
	due    time.Duration
}

// Pool is the machine. Time is that since its beginning.
type Pool[V any] struct {
	cfg          Config
	rand         *rand.Rand
	id, number   uint64       // The last ones given.
	queue        []Job[V]     // In the order in which they are given out.
	workers      []*worker[V] // In the order in which they are asked next.
	held, bytes  int          // Queued, under way, or reserved.
	underWayJobs int
}

// New returns a pool without jobs and workers. The source spreads the pauses.
func New[V any](cfg Config, source *rand.Rand) *Pool[V] { return &Pool[V]{cfg: cfg, rand: source} }

// Held returns how many jobs are not confirmed, with those for which there is room only.
func (p *Pool[V]) Held() int { return p.held }

// Busy returns how many workers have a frame under way.
func (p *Pool[V]) Busy() (n int) {
	for _, w := range p.workers {
		if w.busy {
			n++
		}
	}
	return n
}

// UnderWay returns how many jobs are in the frames under way.
func (p *Pool[V]) UnderWay() int { return p.underWayJobs }

// SetWorkers says who the workers are. What is under way to one that is none any more may still be confirmed.
func (p *Pool[V]) SetWorkers(ids []string) {
	for _, w := range p.workers {
		w.gone = !slices.Contains(ids, w.id)
	}
	p.workers = slices.DeleteFunc(p.workers, func(w *worker[V]) bool { return w.gone && !w.busy })
	for _, id := range ids {
		if p.find(id) == nil {
			p.workers = append(p.workers, &worker[V]{id: id, credit: 1})
		}
	}
}

// Reserve keeps room for a job of a size, and returns its id; false when there is no room.
func (p *Pool[V]) Reserve(bytes int) (id uint64, ok bool) {
	if p.held >= p.cfg.Jobs || p.held > 0 && p.bytes+bytes > p.cfg.Bytes {
		return 0, false
	}
	p.held++
	p.bytes += bytes
	p.id++
	return p.id, true
}

// Cancel gives room back that was kept for a job.
func (p *Pool[V]) Cancel(bytes int) {
	p.held--
	p.bytes -= bytes
}

// Put takes the job for which there is room.
func (p *Pool[V]) Put(id uint64, value V, bytes int) {
	p.queue = append(p.queue, Job[V]{ID: id, Value: value, Bytes: bytes})
}

// Restore puts a job of an earlier pool. The bounds are not applied: what was accepted once is not refused.
func (p *Pool[V]) Restore(id uint64, value V, bytes int) {
	p.held++
	p.bytes += bytes
	p.id = max(p.id, id)
	p.Put(id, value, bytes)
}

// Next returns a frame that is to be sent at once; false when there is none. Of the workers that can be asked it is
// the one that has waited longest. Jobs are spread: a worker gets its part of those that are queued, even if it
// takes more.
func (p *Pool[V]) Next(now time.Duration) (Frame[V], bool) {
	if len(p.queue) == 0 {
		return Frame[V]{}, false
	}
	at, free := -1, 0
	for i, w := range p.workers {
		if w.busy || w.gone || w.due > now {
			continue
		}
		if free++; at < 0 {
			at = i
		}
	}
	if at < 0 {
		return Frame[V]{}, false
	}
	w := p.workers[at]
	p.workers = append(slices.Delete(p.workers, at, at+1), w)
	n := min(w.credit, p.cfg.Frame, (len(p.queue)+free-1)/free)
	bytes := 0
	for i := range n {
		if bytes += p.queue[i].Bytes; i > 0 && bytes > p.cfg.FrameBytes {
			n = i
			break
		}
	}
	w.frame, w.busy = slices.Clone(p.queue[:n]), true
	p.queue = slices.Delete(p.queue, 0, n)
	for i := range w.frame {
		p.number++
		w.frame[i].Number = p.number
		w.frame[i].Attempts++
	}
	p.underWayJobs += n
	return Frame[V]{To: w.id, Jobs: w.frame}, true
}

// Wake returns when Next is to be asked again if nothing happens before; false for never.
func (p *Pool[V]) Wake() (at time.Duration, ok bool) {
	if len(p.queue) == 0 {
		return 0, false
	}
	for _, w := range p.workers {
		if !w.busy && !w.gone && (!ok || w.due < at) {
			at, ok = w.due, true
		}
	}
	return at, ok
}

// Confirms returns the jobs that an answer to the frame under way to a worker confirms. The error is
// [ErrNonsense].
func (p *Pool[V]) Confirms(to string, a Answer) ([]Job[V], error) {
	w := p.find(to)
	n, err := w.covered(a)
	return slices.Clone(w.frame[:n]), err
}

// covered returns how many jobs of the frame under way an answer confirms.
func (w *worker[V]) covered(a Answer) (int, error) {
	if a.Confirmed == 0 {
		return 0, nil
	}
	for i, j := range w.frame {
		if j.Number == a.Confirmed {
			return i + 1, nil
		}
	}
	return 0, ErrNonsense
}

// Answered takes the answer to the frame under way to a worker: what it confirms is gone, and what it does not
// confirm is given to whoever is free. It reports how many pauses the worker was given in a row.
func (p *Pool[V]) Answered(now time.Duration, to string, a Answer) (pauses int) {
	w := p.find(to)
	n, err := w.covered(a)
	if err != nil {
		return p.Unanswered(now, to)
	}
	for _, j := range w.frame[:n] {
		p.held--
		p.bytes -= j.Bytes
	}
	probe := len(w.frame) == 0
	p.land(w, n)
	w.credit = max(a.Demand, 0)
	if n > 0 || probe && w.credit > 0 {
		w.pauses = 0
	}
	if w.credit == 0 || n == 0 && !probe {
		p.pause(now, w)
	}
	return w.pauses
}

// Unanswered says that the frame under way to a worker has had no answer of use: its jobs may have been done, or may be
// later. Others get them, while the worker is left alone for a time.
func (p *Pool[V]) Unanswered(now time.Duration, to string) (pauses int) {
	w := p.find(to)
	w.credit = min(w.credit, 1)
	p.land(w, 0)
	p.pause(now, w)
	return w.pauses
}

// land ends a frame of which the first n jobs are done: the others come first again.
func (p *Pool[V]) land(w *worker[V], n int) {
	p.underWayJobs -= len(w.frame)
	p.queue = slices.Insert(p.queue, 0, w.frame[n:]...)
	w.frame, w.busy = nil, false
	if w.gone {
		p.workers = slices.DeleteFunc(p.workers, func(other *worker[V]) bool { return other == w })
	}
}

// pause leaves a worker alone for a time, which doubles with each attempt that had no success.
func (p *Pool[V]) pause(now time.Duration, w *worker[V]) {
	w.due = now + retry.Pause(p.rand, p.cfg.RetryMin, p.cfg.RetryMax, w.pauses)
	w.pauses++
}

func (p *Pool[V]) find(id string) *worker[V] {
	for _, w := range p.workers {
		if w.id == id {
			return w
		}
	}
	return nil
}
