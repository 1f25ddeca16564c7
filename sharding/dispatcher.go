// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"context"
	"sync"
	"time"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/control"
)

// dispatcher takes over the work for which a cell must not wait: it tells the control
// machine what happened to shards, and sends the acknowledgements that are due.
//
// Both lists are bounded by the number of cells: a cell is in the list of
// acknowledgements at most once, and has at most a lookup and a halt to tell.
// Under load one round acknowledges everything that came since the last round.
type dispatcher struct {
	wake chan struct{} // Holds one token when events or dirty has an entry.

	mu     sync.Mutex          // Guards all fields below.
	events []control.FromShard // Events of cells, for the control machine.
	dirty  []dueSlot           // Slots whose cells have acknowledgements to send.
}

// dueSlot is a slot whose cell has acknowledgements to send, with its router.
type dueSlot struct {
	r  *router
	sl *slot
}

func (d *dispatcher) init() { d.wake = make(chan struct{}, 1) }

// report queues an event of a cell for the control machine.
func (d *dispatcher) report(e control.FromShard) {
	d.mu.Lock()
	d.events = append(d.events, e)
	d.mu.Unlock()
	d.signal()
}

// acknowledge notes that a cell has acknowledgements to send.
func (d *dispatcher) acknowledge(r *router, sl *slot) {
	if sl.dirty.Swap(true) {
		return
	}
	d.mu.Lock()
	d.dirty = append(d.dirty, dueSlot{r, sl})
	d.mu.Unlock()
	d.signal()
}

func (d *dispatcher) signal() {
	select {
	case d.wake <- struct{}{}:
	default: // A token is there already.
	}
}

// acksDelay is how long an acknowledgement waits for others: an acknowledgement for each
// ask would cost as much as the reply. A window holds many times what a sender gets
// through in this time.
const acksDelay = time.Millisecond

// run tells the control machine and sends acknowledgements until ctx ends.
func (d *dispatcher) run(ctx context.Context, regions *machine.Handle) {
	delay := time.NewTimer(acksDelay)
	defer delay.Stop()
	waiting := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.wake:
		case <-delay.C:
			waiting = false
			d.acknowledgeAll()
		}
		d.mu.Lock()
		tell, more := d.events, len(d.dirty) > 0
		d.events = nil
		d.mu.Unlock()
		if more && !waiting {
			waiting = true
			delay.Reset(acksDelay)
		}
		for _, e := range tell {
			if regions.PostWait(ctx, e) != nil {
				return // The node has ended, and nobody is left to tell.
			}
		}
	}
}

// acknowledgeAll sends the acknowledgements of all cells that have any.
func (d *dispatcher) acknowledgeAll() {
	d.mu.Lock()
	dirty := d.dirty
	d.dirty = nil
	d.mu.Unlock()
	for _, due := range dirty {
		due.sl.dirty.Store(false)
		due.r.step(due.sl, func(out *cell.Actions) { due.sl.cell.Acks(out) })
	}
}
