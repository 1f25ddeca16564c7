// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package dispatch takes over the work for which a cell must not wait.
package dispatch

import (
	"context"
	"sync"
	"time"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/control"
)

// Dispatcher tells the control machine what happened to shards, and has the acknowledgements sent that are due. It is
// safe for concurrent use.
//
// The list of events is bounded by the number of cells: each has at most a lookup and a halt
// to tell.
type Dispatcher struct {
	acknowledge func()        // Sends all acknowledgements that are due.
	wake        chan struct{} // Holds one token when there are events, or acknowledgements are due.

	mu     sync.Mutex          // Guards all fields below.
	events []control.FromShard // Events of cells, for the control machine.
	due    bool                // Acknowledgements are due.
}

// Init prepares the dispatcher. Acknowledge sends all acknowledgements that are due.
func (d *Dispatcher) Init(acknowledge func()) {
	d.acknowledge, d.wake = acknowledge, make(chan struct{}, 1)
}

// Report queues an event of a cell for the control machine.
func (d *Dispatcher) Report(e control.FromShard) {
	d.mu.Lock()
	d.events = append(d.events, e)
	d.mu.Unlock()
	d.signal()
}

// AcksDue notes that acknowledgements are due.
func (d *Dispatcher) AcksDue() {
	d.mu.Lock()
	d.due = true
	d.mu.Unlock()
	d.signal()
}

func (d *Dispatcher) signal() {
	select {
	case d.wake <- struct{}{}:
	default: // A token is there already.
	}
}

// acksDelay is how long an acknowledgement waits for others: an acknowledgement for each
// ask would cost as much as the reply. A sender may get through its window in this time; the
// runtime begins a round before that.
const acksDelay = time.Millisecond

// Run tells the control machine and sends acknowledgements until ctx ends.
func (d *Dispatcher) Run(ctx context.Context, regions *machine.Handle) {
	delay := time.NewTimer(acksDelay)
	defer delay.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.wake:
		case <-delay.C:
			d.acknowledge()
		}
		d.mu.Lock()
		tell, due := d.events, d.due
		d.events, d.due = nil, false
		d.mu.Unlock()
		if due {
			delay.Reset(acksDelay)
		}
		for _, e := range tell {
			if regions.PostWait(ctx, e) != nil {
				return // The node has ended, and nobody is left to tell.
			}
		}
	}
}
