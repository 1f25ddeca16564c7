// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package ddata

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
)

// What the node says reaches the machine by a component of the node that only keeps the
// latest, and a goroutine that waits for room in the machine's inbox: however busy the
// machine is, the node never waits.

// feed keeps the events of the node that the machine was not told yet.
type feed struct {
	wake chan struct{}                  // Holds one token when there may be something to tell.
	up   atomic.Pointer[time.Time]      // When the node was first known to be up.
	node atomic.Pointer[machine.Handle] // Feeds Step; nil before the node knows of the feed.

	mu       sync.Mutex         // Guards what follows.
	fenced   []component.Fenced // The removed members that can host nothing any more, each once.
	changed  *component.Changed
	standing *component.Standing
	stopping *component.Stopping
}

// nodeEvent is an event that the machine of the data publishes to the other components of the node.
type nodeEvent struct{ event any }

// say passes on what the machine says. What finds no room is said again.
func (f *feed) say(_ *machine.Component, event any) {
	if to := f.node.Load(); to != nil {
		_ = to.Post(nodeEvent{event})
	}
}

// Step keeps an event of the node. It runs on the goroutine of the node's driver.
func (f *feed) Step(_ machine.Now, in machine.Input, out *machine.Outbox) {
	switch in := in.(type) {
	case machine.Started:
		out.Publish(component.Services{Service: protocol.Service})
		out.Publish(component.Busy{Component: protocol.ComponentName})
	case nodeEvent:
		out.Publish(in.event)
	case component.Fenced:
		f.keep(func() { f.fence(in) })
	case component.Changed:
		if me := in.State.Member(in.Self); me != nil && me.Status.IsUp() && f.up.Load() == nil {
			now := time.Now()
			f.up.Store(&now)
		}
		f.keep(func() { f.changed = &in })
	case component.Standing:
		f.keep(func() { f.standing = &in })
	case component.Stopping:
		f.keep(func() { f.stopping = &in })
	}
}

func (f *feed) keep(set func()) {
	f.mu.Lock()
	set()
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// fence keeps that a member can host nothing any more. The list has no more entries than there
// are removed members that the cluster remembers, since each of them is told once.
func (f *feed) fence(in component.Fenced) {
	if !slices.Contains(f.fenced, in) {
		f.fenced = append(f.fenced, in)
	}
}

// take returns the events that are kept, and drops them.
func (f *feed) take() (all []machine.Input) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, in := range f.fenced {
		all = append(all, in)
	}
	if f.changed != nil {
		all = append(all, *f.changed)
	}
	if f.standing != nil {
		all = append(all, *f.standing)
	}
	if f.stopping != nil {
		all = append(all, *f.stopping)
	}
	f.fenced, f.changed, f.standing, f.stopping = nil, nil, nil, nil
	return all
}

// run hands the events to the machine, until ctx ends.
func (f *feed) run(ctx context.Context, to *machine.Handle) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.wake:
		}
		for _, in := range f.take() {
			if to.PostWait(ctx, in) != nil {
				return
			}
		}
	}
}
