// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package asking

import (
	"context"
	"slices"
	"sync"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/control"
)

// A node that hosts nothing and stays a member: Order gives the command, one
// after the other, and whoever drains waits until nothing is hosted any more, which the control machine
// publishes under the number of the command.

// Drains are the callers that wait until this node hosts nothing. It is safe for concurrent use.
type Drains struct {
	undrained error         // What they are told when the node is to host again.
	turn      chan struct{} // Has room for one: taken by whoever gives a command.

	mu      sync.Mutex // Guards all fields below.
	on      bool       // What was asked for last.
	last    uint64     // The number of the last command.
	waiting []drainWaiter
}

// NewDrains returns drains whose callers hear undrained when the node is told to host again meanwhile.
func NewDrains(undrained error) *Drains {
	return &Drains{undrained: undrained, turn: make(chan struct{}, 1)}
}

// drainWaiter is a caller that waits for the end of a command. done has room for one answer, which
// it gets when it leaves the list.
type drainWaiter struct {
	id   uint64
	done chan error
}

// Order posts the command, after all that were given before. Done hears of the end of a drain.
func (d *Drains) Order(ctx context.Context, to *machine.Handle, on bool) (done chan error, err error) {
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	id, done := d.expect(on)
	if err := to.PostWait(ctx, control.Drain{On: on, ID: id}); err != nil {
		d.Forget(done)
		return nil, err
	}
	d.ordered(on)
	return done, nil
}

// expect returns the number of the next command, and for a drain where its end is told.
func (d *Drains) expect(on bool) (id uint64, done chan error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last++
	if on {
		done = make(chan error, 1)
		d.waiting = append(d.waiting, drainWaiter{d.last, done})
	}
	return d.last, done
}

// Forget takes a caller out that waits no more.
func (d *Drains) Forget(done chan error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting = slices.DeleteFunc(d.waiting, func(w drainWaiter) bool { return w.done == done })
}

// ordered notes that a command was given. Who waits for the opposite is told.
func (d *Drains) ordered(on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.on = on; !on {
		d.answer(d.last, d.undrained)
	}
}

// Drained reports whether the node was told to host nothing.
func (d *Drains) Drained() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.on
}

// Done tells those who wait for a command, or an earlier one, that nothing is hosted.
func (d *Drains) Done(id uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answer(id, nil)
}

// answer ends the waiting for commands up to a number. The caller holds mu.
func (d *Drains) answer(id uint64, err error) {
	d.waiting = slices.DeleteFunc(d.waiting, func(w drainWaiter) bool {
		if w.id > id {
			return false
		}
		w.done <- err
		return true
	})
}
