// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell

import "github.com/quorate/quorate/machine"

// round does the work of [Cell.Sweep].
func (r *residents) round(now machine.Instant, most int, out *Actions) (over bool) {
	e := r.sweep
	if !r.sweeping {
		e = r.first
	}
	for ; e != nil && most > 0; most-- {
		next := e.next
		r.inspect(now, e, out)
		e = next
	}
	if r.sweep, r.sweeping = e, e != nil; !r.sweeping {
		r.depth, r.seen = r.seen, depth{}
	}
	return e == nil
}

func (r *residents) inspect(now machine.Instant, e *Entity, out *Actions) {
	r.seen.note(e.mailbox.waiting())
	since, idle := e.Idle()
	rests := now.Sub(since)
	switch {
	case e.state == entityFailed:
		if !r.permanent(e) && rests >= r.cfg.BackoffMax && e.mailbox.n == 0 && !e.withholds() && e.pressure() == nil {
			r.remove(e)
		}
	case e.state == entityWaiting || r.place.isOver():
	case idle:
		e.mailbox.shrink()
		if r.cfg.PassivateAfter > 0 && !r.permanent(e) && rests >= r.cfg.PassivateAfter && !e.held && !e.withholds() && !r.place.isSuspended() {
			r.stop(now, e, out)
		}
	case e.deferred || e.state == entityActive && !e.atWork(): // It waits for standing.
	case r.cfg.StuckAfter > 0 && rests >= r.cfg.StuckAfter && !e.stuck():
		e.stick(true)
		r.stuck++
		out.entity(OpStuck, e)
	}
}
