// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package timers has the timers of entities. A timer is set by the goroutine that runs the entity, under the slot's
// lock; when it fires, a message of the entity's own goes into the mailbox; when that message has its turn, [Due] says
// which timer it is, whose call the program then makes. The timers end with the instance.
//
//	Set ──> fires ──> mailbox ──> Due ──> the call
//	  └── Cancel, End, or Set by the same name: nothing comes of it any more
package timers

import (
	"time"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/runtime"
)

// Clock tells the time of the node.
type Clock interface{ Instant() machine.Instant }

// instance is the instance of an entity that has used a timer; it takes the place of
// the bare entity in the record. Its fields but entity are guarded by the slot's lock.
type instance struct {
	entity any
	named  map[string]*Timer
	idle   *Timer // The receive timeout, nil when there is none.
	ended  bool   // The instance stops: none of its timers has an effect any more.
}

// Timer is one timer of an instance.
type Timer struct {
	Name string
	Call any // What the program has given for the call; nil for the receive timeout.

	of    *instance
	after time.Duration
	clock *time.Timer
	over  bool // The timer was canceled, replaced, or has run.
}

// Instance returns the program's entity of a record; only the goroutine that runs the
// entity may call it.
func Instance(e *cell.Entity) any {
	if t, ok := e.Value.(*instance); ok {
		return t.entity
	}
	return e.Value
}

// SetIdle sets the receive timeout of an entity in place of the one that it has; none if d is not above 0.
func SetIdle(clock Clock, j *runtime.Job, d time.Duration) {
	change(j, func(t *instance) {
		t.idle.cancel()
		t.idle = nil
		if d > 0 {
			t.idle = &Timer{of: t, after: d}
			t.idle.arm(clock, j)
		}
	})
}

// Set sets a timer of an entity in place of the one with the same name.
func Set(clock Clock, j *runtime.Job, name string, after time.Duration, call any) {
	change(j, func(t *instance) {
		t.named[name].cancel()
		if t.named == nil {
			t.named = make(map[string]*Timer)
		}
		t.named[name] = &Timer{of: t, Name: name, Call: call, after: after}
		t.named[name].arm(clock, j)
	})
}

// Cancel cancels a timer of an entity, if there is one with the name.
func Cancel(j *runtime.Job, name string) {
	change(j, func(t *instance) {
		t.named[name].cancel()
		delete(t.named, name)
	})
}

// Has reports whether an entity has a timer with a name.
func Has(j *runtime.Job, name string) (has bool) {
	e := j.Entity()
	j.Slot().Do(func(*cell.Cell) {
		t, ok := e.Value.(*instance)
		has = ok && e.Live() && t.named[name] != nil
	})
	return has
}

// change changes the timers of an entity by a function, on the goroutine that runs the
// entity. It does nothing when the entity is stopping.
func change(j *runtime.Job, change func(*instance)) {
	e := j.Entity()
	j.Slot().Do(func(*cell.Cell) {
		if !e.Live() {
			return
		}
		t, ok := e.Value.(*instance)
		if !ok {
			t = &instance{entity: e.Value}
			e.Value = t
		}
		change(t)
		e.Hold(t.idle != nil || len(t.named) > 0)
	})
}

// arm sets a timer off; the caller holds the slot.
func (t *Timer) arm(clock Clock, j *runtime.Job) {
	sl, e := j.Slot(), j.Entity() // The job is used for others when the timer fires.
	// The timer's function runs on a goroutine of the Go runtime for the time of one step.
	t.clock = time.AfterFunc(max(t.after, 0), func() { t.fired(clock, sl, e) })
}

// cancel ends a timer, if there is one; the caller holds the slot.
func (t *Timer) cancel() {
	if t != nil {
		t.over = true
		t.clock.Stop()
	}
}

// fired puts a message into the entity's mailbox when one of its timers fires. A receive
// timeout that fires is set again for the time that is left since the last message, so
// that messages need not touch the timer.
func (t *Timer) fired(clock Clock, sl *runtime.Slot, e *cell.Entity) {
	sl.Step(func(c *cell.Cell, out *cell.Actions) {
		if t.over || t.of.ended {
			return
		}
		now := clock.Instant()
		if t.Call == nil {
			since, idle := e.Idle()
			if rest := t.after - now.Sub(since); !idle || rest > 0 {
				if !idle {
					rest = t.after
				}
				t.clock.Reset(rest)
				return
			}
		}
		c.Instances().Remind(now, e, &cell.Message{Kind: sl.Kind(), Shard: sl.Shard(), Entity: e.ID(), Value: t}, out)
	})
}

// Due returns the timer of a message, on the goroutine that runs the entity; nil if the timer was canceled while its
// message waited. A timer with a name has run then.
func Due(j *runtime.Job, m cell.Mail) *Timer {
	t, _ := m.Value.(*Timer)
	if t.over || t.of.ended || j.Entity().Value != any(t.of) {
		return nil
	}
	if t.Call != nil {
		change(j, func(of *instance) {
			t.over = true
			delete(of.named, t.Name)
		})
	}
	return t
}

// Again has a receive timeout begin anew, after its call.
func (t *Timer) Again(j *runtime.Job) {
	if t.Call != nil {
		return
	}
	change(j, func(*instance) {
		if !t.over {
			t.clock.Reset(t.after)
		}
	})
}

// End ends the timers of an instance that stops.
func End(j *runtime.Job) {
	t, ok := j.Entity().Value.(*instance)
	if !ok {
		return
	}
	j.Slot().Do(func(*cell.Cell) {
		t.ended = true
		t.idle.cancel()
		for _, n := range t.named {
			n.cancel()
		}
		t.idle, t.named = nil, nil
	})
}
