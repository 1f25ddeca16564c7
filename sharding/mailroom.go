// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"context"
	"sync"
	"time"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// mailroom does what a cell may not wait for: it tells the control machine
// what happened to shards, and sends the acknowledgements that are due.
//
// Both lists are bounded by the number of cells: a cell is in the list of
// acknowledgements at most once, and has at most a lookup and a halt to tell.
// Under load one round acknowledges everything that came since the last.
type mailroom struct {
	wake chan struct{} // Holds one token when there is something to do.

	mu    sync.Mutex
	tell  []protocol.FromShard
	dirty []cellOf
}

// cellOf is a cell and its region.
type cellOf struct {
	r *region
	c *cell
}

func (m *mailroom) init() { m.wake = make(chan struct{}, 1) }

// report queues an event of a cell for the control machine.
func (m *mailroom) report(e protocol.FromShard) {
	m.mu.Lock()
	m.tell = append(m.tell, e)
	m.mu.Unlock()
	m.ring()
}

// acknowledge notes that a cell has acknowledgements to send.
func (m *mailroom) acknowledge(r *region, c *cell) {
	if c.dirty.Swap(true) {
		return
	}
	m.mu.Lock()
	m.dirty = append(m.dirty, cellOf{r, c})
	m.mu.Unlock()
	m.ring()
}

func (m *mailroom) ring() {
	select {
	case m.wake <- struct{}{}:
	default: // A token is there already.
	}
}

// acksDelay is how long an acknowledgement waits for others: one for each ask
// would cost as much as its reply. A window holds many times what a sender gets
// through in this time.
const acksDelay = time.Millisecond

// run works until ctx ends.
func (m *mailroom) run(ctx context.Context, control *machine.Handle) {
	delay := time.NewTimer(acksDelay)
	defer delay.Stop()
	waiting := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.wake:
		case <-delay.C:
			waiting = false
			m.acknowledgeAll()
		}
		m.mu.Lock()
		tell, more := m.tell, len(m.dirty) > 0
		m.tell = nil
		m.mu.Unlock()
		if more && !waiting {
			waiting = true
			delay.Reset(acksDelay)
		}
		for _, e := range tell {
			if control.PostWait(ctx, e) != nil {
				return // The node has ended, and nobody is left to tell.
			}
		}
	}
}

// acknowledgeAll sends the acknowledgements of all cells that have any.
func (m *mailroom) acknowledgeAll() {
	m.mu.Lock()
	dirty := m.dirty
	m.dirty = nil
	m.mu.Unlock()
	for _, d := range dirty {
		d.c.dirty.Store(false)
		d.r.step(d.c, func(out *protocol.Actions) { d.c.shard.Acks(out) })
	}
}
