// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"time"

	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/runtime"
)

// Timers of entities. A timer is ordered by the entity during a call, and set when that has returned without an error
// or a refusal, under the slot's lock; when it fires,
// rang puts a message of the entity's own into the mailbox; when that message has its turn,
// timeUp calls the entity. The timers end with the instance.

// ReceiveTimeouter is an optional interface of an entity: ReceiveTimeout runs when
// no message came for the time of [Context.SetReceiveTimeout], and again after each
// further such time. Like Receive, ReceiveTimeout runs alone, and its error means that the
// entity is not usable any more.
type ReceiveTimeouter interface{ ReceiveTimeout(c *Context) error }

// timed is the instance of an entity that has used a timer; it takes the place of
// the bare entity in the record. Its fields but entity are guarded by the slot's lock.
type timed struct {
	entity any
	named  map[string]*timer
	idle   *timer // The receive timeout, nil when there is none.
	ended  bool   // The instance stops: none of its timers has an effect any more.
}

// timer is one timer of an instance.
type timer struct {
	of    *timed
	name  string
	call  func(*Context) error // Nil for the receive timeout.
	after time.Duration
	clock *time.Timer
	over  bool // The timer was canceled, replaced, or has run.
}

// instanceOf returns the program's entity of a record; only the goroutine that runs the
// entity may call it.
func instanceOf(e *cell.Entity) any {
	if t, ok := e.Value.(*timed); ok {
		return t.entity
	}
	return e.Value
}

// SetReceiveTimeout sets a receive timeout, which is due when no message of the entity
// came, and none of its timers ran, for a time. An entity with the method ReceiveTimeout
// is told by that method, any other entity is stopped as by [Context.Passivate]. Zero or
// less cancels the receive timeout. The time begins when the present call returns, and
// anew with each message.
//
// An entity with a receive timeout, or with a timer, is not stopped for being idle
// by sharding.passivate-after: the entity says itself when it stops.
func (c *Context) SetReceiveTimeout(d time.Duration) {
	c.effects = append(c.effects, effect{do: func() {
		c.program.timers(&c.job, func(t *timed) {
			t.idle.cancel()
			t.idle = nil
			if d > 0 {
				t.idle = &timer{of: t, after: d}
				c.program.arm(&c.job, t.idle)
			}
		})
	}})
}

// After runs f once after a time, as a message of its own: between other messages,
// with standing, and alone. An error means that the entity is not usable any more,
// as in Receive. A timer with the same name is replaced. The timers of an entity end
// when it stops, also when its shard moves. An appointment that must not be forgotten
// belongs into the entity's storage, from which Start sets the timer anew.
func (c *Context) After(name string, d time.Duration, f func(c *Context) error) {
	due := time.Now().Add(d)
	c.effects = append(c.effects, effect{timer: name, named: true, sets: true, do: func() {
		c.program.timers(&c.job, func(t *timed) {
			t.named[name].cancel()
			if t.named == nil {
				t.named = make(map[string]*timer)
			}
			t.named[name] = &timer{of: t, name: name, call: f, after: time.Until(due)}
			c.program.arm(&c.job, t.named[name])
		})
	}})
}

// CancelTimer cancels a timer that [Context.After] set: its function does not run after
// the call. It reports whether there was such a timer.
func (c *Context) CancelTimer(name string) (canceled bool) {
	if !c.hasTimer(name) {
		return false
	}
	c.effects = append(c.effects, effect{timer: name, named: true, do: func() {
		c.program.timers(&c.job, func(t *timed) {
			t.named[name].cancel()
			delete(t.named, name)
		})
	}})
	return true
}

// timers changes the timers of an entity by a function, on the goroutine that runs the
// entity. It does nothing when the entity is stopping.
func (p *program) timers(j *runtime.Job, change func(*timed)) {
	e := j.Entity()
	j.Slot().Do(func(c *cell.Cell) {
		if !e.Live() {
			return
		}
		t, ok := e.Value.(*timed)
		if !ok {
			t = &timed{entity: e.Value}
			e.Value = t
		}
		change(t)
		c.Hold(e, t.idle != nil || len(t.named) > 0)
	})
}

// arm sets a timer off; the caller holds the slot.
func (p *program) arm(j *runtime.Job, t *timer) {
	sl, e := j.Slot(), j.Entity() // The job is used for others when the timer rings.
	// The timer's function runs on a goroutine of the Go runtime for the time of one step.
	t.clock = time.AfterFunc(max(t.after, 0), func() { p.rang(sl, e, t) })
}

// cancel ends a timer, if there is one; the caller holds the slot.
func (t *timer) cancel() {
	if t != nil {
		t.over = true
		t.clock.Stop()
	}
}

// rang puts a message into the entity's mailbox when one of its timers fires. A receive
// timeout that fires is set again for the time that is left since the last message, so
// that messages need not touch the timer.
func (p *program) rang(sl *runtime.Slot, e *cell.Entity, t *timer) {
	sl.Step(func(c *cell.Cell, out *cell.Actions) {
		if t.over || t.of.ended {
			return
		}
		now := p.system.clock.Instant()
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
		c.Remind(now, e, &cell.Message{Kind: p.kind, Shard: sl.Shard(), Entity: e.ID(), Value: t}, out)
	})
}

// timeUp handles the message of a timer that has fired, on the goroutine that runs the
// entity.
func (p *program) timeUp(ctx *Context, m cell.Mail) cell.Result {
	e := ctx.job.Entity()
	t, _ := m.Value.(*timer)
	if t.over || t.of.ended || e.Value != any(t.of) {
		return cell.Result{} // The timer was canceled while its message waited.
	}
	if t.call != nil {
		p.timers(&ctx.job, func(of *timed) {
			t.over = true
			delete(of.named, t.name)
		})
	}
	err := p.callTimer(ctx, e, t)
	if err != nil {
		p.system.log.Warn("entity failed", "kind", p.kind, "entity", e.ID(), "timer", t.name, "error", err)
		return cell.Result{Failed: true, Reason: detailOf(err)}
	}
	if t.call == nil {
		p.timers(&ctx.job, func(*timed) {
			if !t.over {
				t.clock.Reset(t.after)
			}
		})
	}
	return cell.Result{}
}

// callTimer calls the function of a timer, or the entity's ReceiveTimeout.
func (p *program) callTimer(ctx *Context, e *cell.Entity, t *timer) (err error) {
	defer p.recovered(e.ID(), &err)
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
func (p *program) endTimers(ctx *Context) {
	t, ok := ctx.job.Entity().Value.(*timed)
	if !ok {
		return
	}
	ctx.job.Slot().Do(func(*cell.Cell) {
		t.ended = true
		t.idle.cancel()
		for _, n := range t.named {
			n.cancel()
		}
		t.idle, t.named = nil, nil
	})
}
