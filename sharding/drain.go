// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/control"
)

// A node that hosts nothing and stays a member: System.Drain and Undrain give the command by order, one
// after the other, and Drain waits until nothing is hosted any more, which the control machine
// publishes under the number of the command.

// ErrUndrained is the error of [System.Drain] when the node was told to host again meanwhile.
var ErrUndrained = errors.New("sharding: the node was told to host again")

// drains are the callers that wait until this node hosts nothing.
type drains struct {
	turn chan struct{} // Has room for one: taken by whoever gives a command.

	mu      sync.Mutex // Guards all fields below.
	on      bool       // What was asked for last.
	last    uint64     // The number of the last command.
	waiting []drainWaiter
}

// drainWaiter is a caller that waits for the end of a command. done has room for one answer, which
// it gets when it leaves the list.
type drainWaiter struct {
	id   uint64
	done chan error
}

// order posts the command, after all that were given before. done hears of the end of a drain.
func (d *drains) order(ctx context.Context, to *machine.Handle, on bool) (done chan error, err error) {
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	id, done := d.expect(on)
	if err := to.PostWait(ctx, control.Drain{On: on, ID: id}); err != nil {
		d.forget(done)
		return nil, err
	}
	d.ordered(on)
	return done, nil
}

// expect returns the number of the next command, and for a drain where its end is told.
func (d *drains) expect(on bool) (id uint64, done chan error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last++
	if on {
		done = make(chan error, 1)
		d.waiting = append(d.waiting, drainWaiter{d.last, done})
	}
	return d.last, done
}

func (d *drains) forget(done chan error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting = slices.DeleteFunc(d.waiting, func(w drainWaiter) bool { return w.done == done })
}

// ordered notes that a command was given. Who waits for the opposite is told.
func (d *drains) ordered(on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.on = on; !on {
		d.answer(d.last, ErrUndrained)
	}
}

func (d *drains) drained() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.on
}

// vacated tells those who wait for a command, or an earlier one, that nothing is hosted.
func (d *drains) vacated(id uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answer(id, nil)
}

// answer ends the waiting for commands up to a number. The caller holds mu.
func (d *drains) answer(id uint64, err error) {
	d.waiting = slices.DeleteFunc(d.waiting, func(w drainWaiter) bool {
		if w.id > id {
			return false
		}
		w.done <- err
		return true
	})
}
