// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import "github.com/quorate/quorate/machine"

// Sweep looks at up to most entities, from where the last call left off: it stops
// instances that had no message for [ShardConfig.PassivateAfter], reports entities
// that have been at one thing for [ShardConfig.StuckAfter], and forgets failures
// that are long over. It reports whether the round is over. One call does bounded
// work, so that a shard of any size can be swept while messages come and go.
func (s *Shard) Sweep(now machine.Instant, most int, out *Actions) (over bool) {
	e := s.sweep
	if !s.sweeping {
		e = s.first
	}
	for ; e != nil && most > 0; most-- {
		next := e.next
		s.inspect(now, e, out)
		e = next
	}
	if s.sweep, s.sweeping = e, e != nil; !s.sweeping {
		s.depth, s.seen = s.seen, depth{}
	}
	return e == nil
}

func (s *Shard) inspect(now machine.Instant, e *Entity, out *Actions) {
	s.seen.note(e.mailbox.n)
	since, idle := e.Idle()
	rests := now.Sub(since)
	switch {
	case e.state == entityFailed:
		if rests >= s.cfg.BackoffMax && e.mailbox.n == 0 && e.withheld == nil && e.pressure == nil {
			s.remove(e)
		}
	case e.state == entityWaiting || s.abandoned:
	case idle:
		if s.cfg.PassivateAfter > 0 && rests >= s.cfg.PassivateAfter && !e.held && e.withheld == nil && !s.suspended {
			s.stop(now, e, out)
		}
	case e.deferred || e.state == entityActive && e.current == nil: // It waits for standing.
	case s.cfg.StuckAfter > 0 && rests >= s.cfg.StuckAfter && !e.stuck:
		e.stuck = true
		s.stuck++
		out.entity(OpStuck, e)
	}
}
