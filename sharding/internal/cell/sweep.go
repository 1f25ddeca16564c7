// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell

import "github.com/quorate/quorate/machine"

// Sweep looks at up to most entities, from where the last call left off: it stops
// instances that had no message for [Config.PassivateAfter], reports entities
// that have been at one thing for [Config.StuckAfter], and forgets failures
// that are long over. It reports whether the round is over. One call does bounded
// work, so that a shard of any size can be swept while messages come and go.
func (c *Cell) Sweep(now machine.Instant, most int, out *Actions) (over bool) {
	e := c.sweep
	if !c.sweeping {
		e = c.first
	}
	for ; e != nil && most > 0; most-- {
		next := e.next
		c.inspect(now, e, out)
		e = next
	}
	if c.sweep, c.sweeping = e, e != nil; !c.sweeping {
		c.depth, c.seen = c.seen, depth{}
	}
	return e == nil
}

func (c *Cell) inspect(now machine.Instant, e *Entity, out *Actions) {
	c.seen.note(e.mailbox.n)
	since, idle := e.Idle()
	rests := now.Sub(since)
	switch {
	case e.state == entityFailed:
		if rests >= c.cfg.BackoffMax && e.mailbox.n == 0 && e.withheld == nil && e.pressure == nil {
			c.remove(e)
		}
	case e.state == entityWaiting || c.abandoned:
	case idle:
		if c.cfg.PassivateAfter > 0 && rests >= c.cfg.PassivateAfter && !e.held && e.withheld == nil && !c.suspended {
			c.stop(now, e, out)
		}
	case e.deferred || e.state == entityActive && e.current == nil: // It waits for standing.
	case c.cfg.StuckAfter > 0 && rests >= c.cfg.StuckAfter && !e.stuck:
		e.stuck = true
		c.stuck++
		out.entity(OpStuck, e)
	}
}
