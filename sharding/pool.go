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
	r  *router
	sl *slot
	e  *protocol.Entity
	op protocol.Op
}

const (
	// poolMost bounds the goroutines that wait for a job: those of a burst of messages
	// to as many entities, with some 8 KiB of stack each, for a second or two.
	poolMost = 8192
	// poolPatience is how often those are let go that nobody has needed meanwhile.
	poolPatience = time.Second
)

// workerPool is the goroutines that wait for a job, so that an entity with one message needs
// no new one, with a stack that must grow. Who came last is taken first.
type workerPool struct {
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
func (p *workerPool) take() *worker {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.idle) - 1
	if last < 0 {
		return nil
	}
	one := p.idle[last]
	p.idle[last] = nil
	p.idle, p.unused = p.idle[:last], min(p.unused, last)
	return one
}

// wait has a worker wait for a job, which it makes if it has not waited before. It
// reports false when the worker should end.
func (p *workerPool) wait(one **worker) (job, bool) {
	p.mu.Lock()
	if p.closed || len(p.idle) >= p.most {
		p.mu.Unlock()
		return job{}, false
	}
	if *one == nil {
		*one = &worker{jobs: make(chan job, 1)}
	}
	p.idle = append(p.idle, *one)
	p.mu.Unlock()
	j, ok := <-(*one).jobs
	return j, ok
}

// trimIdle lets workers go that nobody needs, and all of them when ctx ends.
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

// dismiss ends the workers that nobody has needed since it was called last, or all of
// them for ever.
func (p *workerPool) dismiss(all bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.unused
	if all {
		n, p.closed = len(p.idle), true
	}
	for _, one := range p.idle[:n] {
		close(one.jobs)
	}
	p.idle = slices.Delete(p.idle, 0, n)
	p.unused = len(p.idle)
}
