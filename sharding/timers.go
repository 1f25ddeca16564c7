// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"time"

	"github.com/quorate/quorate/sharding/internal/protocol"
)

// ReceiveTimeouter is an optional interface of an entity: ReceiveTimeout runs when
// no message came for the time of [Context.SetReceiveTimeout], and again after each
// further such time. Like Receive it runs alone, and an error means that the entity
// is not usable any more.
type ReceiveTimeouter interface{ ReceiveTimeout(c *Context) error }

// timed is the instance of an entity that has used a timer; it takes the place of
// the bare entity in the record. Guarded by the cell, except for entity.
type timed struct {
	entity any
	named  map[string]*timer
	idle   *timer // The receive timeout, nil when there is none.
	ended  bool   // The instance stops: no timer of it does anything any more.
}

// timer is one timer of an instance.
type timer struct {
	of    *timed
	name  string
	call  func(*Context) error // Nil for the receive timeout.
	after time.Duration
	clock *time.Timer
	over  bool // It was canceled, replaced, or has run.
}

// instanceOf returns the entity of a record; the caller runs it.
func instanceOf(e *protocol.Entity) any {
	if t, ok := e.Value.(*timed); ok {
		return t.entity
	}
	return e.Value
}

// SetReceiveTimeout has the entity hear when no message came, and no timer of it
// ran, for a time. An entity with the method ReceiveTimeout is told by it, any other
// one is stopped as by [Context.Passivate]. Zero or less takes it back. The time
// begins when the present call returns, and anew with each message.
//
// An entity with a receive timeout, or with a timer, is not stopped for being idle
// by sharding.passivate-after: it says itself when it goes.
func (c *Context) SetReceiveTimeout(d time.Duration) {
	c.router.timers(c.entity, func(sl *slot, t *timed) {
		t.idle.cancel()
		t.idle = nil
		if d > 0 {
			t.idle = &timer{of: t, after: d}
			c.router.arm(sl, c.entity, t.idle)
		}
	})
}

// After runs f once after a time, as a message of its own: between other messages,
// with standing, and alone. An error means that the entity is not usable any more,
// as in Receive. A timer with the same name is replaced. The timers of an entity end
// when it stops, be it since its shard moves; what must not be forgotten belongs
// into its storage, and is set anew by Start.
func (c *Context) After(name string, d time.Duration, f func(c *Context) error) {
	c.router.timers(c.entity, func(sl *slot, t *timed) {
		t.named[name].cancel()
		if t.named == nil {
			t.named = make(map[string]*timer)
		}
		t.named[name] = &timer{of: t, name: name, call: f, after: d}
		c.router.arm(sl, c.entity, t.named[name])
	})
}

// CancelTimer cancels a timer that [Context.After] set: after this its function does
// not run. It reports whether there was one.
func (c *Context) CancelTimer(name string) (canceled bool) {
	c.router.timers(c.entity, func(_ *slot, t *timed) {
		canceled = t.named[name] != nil
		t.named[name].cancel()
		delete(t.named, name)
	})
	return canceled
}

// timers changes the timers of an entity, on the goroutine that runs it. It does
// nothing when the entity is stopping.
func (r *router) timers(e *protocol.Entity, change func(*slot, *timed)) {
	sl := r.slotOf(e.ID())
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if !e.Live() {
		return
	}
	t, ok := e.Value.(*timed)
	if !ok {
		t = &timed{entity: e.Value}
		e.Value = t
	}
	change(sl, t)
	sl.cell.Hold(e, t.idle != nil || len(t.named) > 0)
}

// arm sets a timer off; the caller holds the slot.
func (r *router) arm(sl *slot, e *protocol.Entity, t *timer) {
	// Its function runs on a goroutine of the runtime for the time of one step.
	t.clock = time.AfterFunc(max(t.after, 0), func() { r.rang(sl, e, t) })
}

// cancel ends a timer, if there is one; the caller holds the slot.
func (t *timer) cancel() {
	if t != nil {
		t.over = true
		t.clock.Stop()
	}
}

// rang puts a message into the entity's mailbox when its timer rings. A receive
// timeout rings for the time since the last message, so that messages need not
// touch it.
func (r *router) rang(sl *slot, e *protocol.Entity, t *timer) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if t.over || t.of.ended {
		return
	}
	now := r.system.clock.Instant()
	if t.call == nil {
		since, idle := e.Idle()
		if rest := t.after - now.Sub(since); !idle || rest > 0 {
			if !idle {
				rest = t.after
			}
			t.clock.Reset(rest)
			return
		}
	}
	sl.cell.Remind(now, e, &protocol.Message{Kind: r.name, Shard: sl.id, Entity: e.ID(), Value: t}, &sl.out)
	r.carry(sl, nil)
}

// timeUp runs what a timer is for, on the goroutine that runs the entity.
func (r *router) timeUp(ctx *Context, e *protocol.Entity, m *protocol.Message) protocol.Result {
	t, _ := m.Value.(*timer)
	if t.over || t.of.ended || e.Value != any(t.of) {
		return protocol.Result{} // It was canceled while its message waited.
	}
	if t.call != nil {
		r.timers(e, func(_ *slot, of *timed) {
			t.over = true
			delete(of.named, t.name)
		})
	}
	err := r.callTimer(ctx, e, t)
	if err != nil {
		r.system.log.Warn("entity failed", "kind", r.name, "entity", e.ID(), "timer", t.name, "error", err)
		return protocol.Result{Failed: true, Reason: detailOf(err)}
	}
	if t.call == nil {
		r.timers(e, func(*slot, *timed) {
			if !t.over {
				t.clock.Reset(t.after)
			}
		})
	}
	return protocol.Result{}
}

// callTimer calls the entity.
func (r *router) callTimer(ctx *Context, e *protocol.Entity, t *timer) (err error) {
	defer r.recovered(e, &err)
	if t.call != nil {
		return frozen(t.call(ctx))
	}
	if h, ok := instanceOf(e).(ReceiveTimeouter); ok {
		return frozen(h.ReceiveTimeout(ctx))
	}
	ctx.Passivate()
	return nil
}

// endTimers ends the timers of an instance that stops.
func (r *router) endTimers(sl *slot, e *protocol.Entity) {
	t, ok := e.Value.(*timed)
	if !ok {
		return
	}
	sl.mu.Lock()
	defer sl.mu.Unlock()
	t.ended = true
	t.idle.cancel()
	for _, n := range t.named {
		n.cancel()
	}
	t.idle, t.named = nil, nil
}
