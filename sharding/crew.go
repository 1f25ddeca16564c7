// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/sharding/internal/protocol"
)

// job is an entity with something to do.
type job struct {
	r  *region
	c  *cell
	e  *protocol.Entity
	op protocol.Op
}

const (
	// crewMost bounds the goroutines that wait for a job: those of a burst of messages
	// to as many entities, with some 8 KiB of stack each, for a second or two.
	crewMost = 8192
	// crewPatience is how often those are let go that nobody has needed meanwhile.
	crewPatience = time.Second
)

// crew is the goroutines that wait for a job, so that an entity with one message needs
// no new one, with a stack that must grow. Who came last is taken first.
type crew struct {
	most int // How many may wait.

	mu     sync.Mutex // Guards all below.
	idle   []*worker
	unused int // How many of them, from the first on, nobody has needed since the last look.
	closed bool
}

// worker is a goroutine that does one job after the other.
type worker struct {
	jobs chan job // Of size one; closed when it is to end.
}

// take returns a worker that waits, nil if there is none.
func (w *crew) take() *worker {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := len(w.idle) - 1
	if last < 0 {
		return nil
	}
	one := w.idle[last]
	w.idle[last] = nil
	w.idle, w.unused = w.idle[:last], min(w.unused, last)
	return one
}

// wait has a worker wait for a job, which it makes if it has not waited before. It
// reports false when the worker should end.
func (w *crew) wait(one **worker) (job, bool) {
	w.mu.Lock()
	if w.closed || len(w.idle) >= w.most {
		w.mu.Unlock()
		return job{}, false
	}
	if *one == nil {
		*one = &worker{jobs: make(chan job, 1)}
	}
	w.idle = append(w.idle, *one)
	w.mu.Unlock()
	j, ok := <-(*one).jobs
	return j, ok
}

// tend lets workers go that nobody needs, and all of them when ctx ends.
func (w *crew) tend(ctx context.Context) {
	every := time.NewTicker(crewPatience)
	defer every.Stop()
	for ctx.Err() == nil {
		select {
		case <-every.C:
			w.dismiss(false)
		case <-ctx.Done():
		}
	}
	w.dismiss(true)
}

// dismiss ends the workers that nobody has needed since it was called last, or all of
// them for ever.
func (w *crew) dismiss(all bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.unused
	if all {
		n, w.closed = len(w.idle), true
	}
	for _, one := range w.idle[:n] {
		close(one.jobs)
	}
	w.idle = slices.Delete(w.idle, 0, n)
	w.unused = len(w.idle)
}
