// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"time"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/passivation"
)

// Maintenance is what a cell does about its entities without a message to one of them: sweeps, and stops
// to make room.
type Maintenance struct{ *entityTable }

// Maintenance returns the upkeep of the entities of the cell: sweeps, evictions, changes of the limit.
func (c *Cell) Maintenance() Maintenance { return Maintenance{&c.entities} }

// Sweep looks at up to most entities, from where the last call left off: it stops
// instances that had no message for [Config.PassivateAfter], reports entities
// that have been at one thing for [Config.StuckAfter], and forgets failures
// that are long over. It reports whether the round is over. One call does bounded
// work, so that a shard of any size can be swept while messages come and go.
func (r Maintenance) Sweep(now machine.Instant, most int, out *Actions) (over bool) {
	over = r.walk(most, func(e *Entity) { r.inspect(now, e, out) })
	if over {
		r.depth, r.seen = r.seen, depth{}
	}
	return over
}

// Evict stops the instance of e to make room for others, unless it has something to do or was used
// lately. By is the limiter that gave the handle.
func (r Maintenance) Evict(now machine.Instant, by Limiter, e *Entity, s passivation.Handle, out *Actions) Verdict {
	if r.cfg.Limiter != by || e.handle != s {
		return Gone
	}
	if r.limiter.reveals(e) {
		return Used
	}
	if _, idle := e.Idle(); !idle || e.is(isHeld) || e.Withholds() || r.place.isSuspended() {
		return Busy
	}
	e.set(isEvicted)
	r.stop(now, e, out)
	return Evicted
}

// Reload gives the cell other times. 0 means never, as in [Config].
func (r Maintenance) Reload(passivateAfter, stuckAfter time.Duration) {
	r.cfg.PassivateAfter, r.cfg.StuckAfter = passivateAfter, stuckAfter
}

// Limit has another limiter bound the instances, nil for none. Those that run enter it in the order
// in which they came to life.
func (r Maintenance) Limit(l Limiter) {
	for e := range r.all() {
		r.limiter.leave(e)
	}
	r.cfg.Limiter, r.limiter.uses = l, nil
	for e := range r.all() {
		if l != nil && e.Live() && !r.permanent(e) {
			r.limiter.enter(e)
		}
	}
}

// inspect is the part of Sweep for one entity.
func (r Maintenance) inspect(now machine.Instant, e *Entity, out *Actions) {
	r.seen.note(e.mailbox.waiting())
	since, idle := e.Idle()
	rests := now.Sub(since)
	switch {
	case e.state == entityFailed:
		if !r.permanent(e) && rests >= r.cfg.BackoffMax && e.mailbox.n == 0 && !e.Withholds() && e.pressure() == nil {
			r.remove(e)
		}
	case e.state == entityWaiting || r.place.isOver():
	case idle:
		e.mailbox.shrink()
		if r.cfg.PassivateAfter > 0 && !r.permanent(e) && rests >= r.cfg.PassivateAfter && !e.is(isHeld) && !e.Withholds() && !r.place.isSuspended() {
			e.set(isIdled)
			r.stop(now, e, out)
		}
	case e.is(isDeferred) || e.state == entityActive && !e.atWork(): // It waits for standing.
	case r.cfg.StuckAfter > 0 && rests >= r.cfg.StuckAfter && !e.stuck():
		e.stick(true)
		r.stuck++
		out.entity(OpStuck, e)
	}
}
