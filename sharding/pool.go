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

// job is an entity with something to do, which op says.
type job struct {
	r  *router
	sl *slot
	e  *protocol.Entity
	op protocol.Op
}

const (
	// poolMost bounds the goroutines that wait for a job: as many as a burst of messages
	// to 8192 entities leaves, with some 8 KiB of stack each, for a second or two.
	poolMost = 8192
	// poolPatience is the interval at which the pool ends the workers that no job has
	// needed since the last time.
	poolPatience = time.Second
)

// workerPool holds the goroutines that wait for a job, so that an entity with one message
// needs no new goroutine, whose stack would have to grow. The worker that came last is
// taken first.
type workerPool struct {
	most int // How many workers may wait.

	mu     sync.Mutex // Guards all fields below.
	idle   []*worker  // The workers that wait for a job.
	unused int        // How many workers of idle, from the first on, no job has needed since the last dismiss.
	closed bool       // No worker waits any more.
}

// worker is a goroutine that does one job after the other.
type worker struct {
	jobs chan job // Capacity one; closed when the worker is to end.
}

// take returns a worker that waits, nil if there is none.
func (p *workerPool) take() *worker {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.idle) - 1
	if last < 0 {
		return nil
	}
	w := p.idle[last]
	p.idle[last] = nil
	p.idle, p.unused = p.idle[:last], min(p.unused, last)
	return w
}

// wait waits for the next job of a worker, which it makes when *w is nil: a goroutine
// becomes a worker when it waits for the first time. It reports false when the goroutine
// should end.
func (p *workerPool) wait(w **worker) (job, bool) {
	p.mu.Lock()
	if p.closed || len(p.idle) >= p.most {
		p.mu.Unlock()
		return job{}, false
	}
	if *w == nil {
		*w = &worker{jobs: make(chan job, 1)}
	}
	p.idle = append(p.idle, *w)
	p.mu.Unlock()
	j, ok := <-(*w).jobs
	return j, ok
}

// trimIdle ends workers that no job needs, and all workers when ctx ends.
func (p *workerPool) trimIdle(ctx context.Context) {
	every := time.NewTicker(poolPatience)
	defer every.Stop()
	for ctx.Err() == nil {
		select {
		case <-every.C:
			p.dismiss(false)
		case <-ctx.Done():
		}
	}
	p.dismiss(true)
}

// dismiss ends the workers that no job has needed since the last dismiss; or all workers,
// for ever.
func (p *workerPool) dismiss(all bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.unused
	if all {
		n, p.closed = len(p.idle), true
	}
	for _, w := range p.idle[:n] {
		close(w.jobs)
	}
	p.idle = slices.Delete(p.idle, 0, n)
	p.unused = len(p.idle)
}
