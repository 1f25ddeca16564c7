// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package recall

import (
	"slices"
	"time"

	"github.com/quorate/quorate/machine"
)

// Calls of the store: which begin, and what follows from the answers.

// want has a shard wait for a call, if it wants one and does not wait yet.
func (d *Desk) want(s *shard) {
	wants := s.state == closed && s.again == 0 || s.state == open && len(s.wishes) > 0
	if wants && !s.queued {
		s.queued = true
		d.ready = append(d.ready, s)
	}
}

// wake has the shards go on whose pause is over.
func (d *Desk) wake(now machine.Instant) {
	if now < d.retry {
		return
	}
	d.retry = machine.Never
	for _, s := range d.order {
		switch {
		case s.state != closed || s.again == 0:
		case s.again <= now:
			s.again = 0
			d.want(s)
		default:
			d.retry = min(d.retry, s.again)
		}
	}
}

// call begins calls, as many as may be under way.
func (d *Desk) call(out *Outbox) {
	for d.calls < d.cfg.Calls && len(d.ready) > 0 {
		s := d.ready[0]
		d.ready = d.ready[1:]
		s.queued = false
		switch {
		case s.state == closed && s.again == 0:
			d.sessions++
			s.state, s.session = opening, d.sessions
			out.Open = append(out.Open, Open{Shard: s.id, Session: s.session, Epoch: s.epoch})
		case s.state == open && len(s.wishes) > 0:
			s.state = changing
			s.take(d.cfg.Batch)
			out.Change = append(out.Change, s.change())
		default:
			continue // It has begun to wait for something else.
		}
		d.calls++
		d.stats.Calls++
	}
}

// change is the call that writes what is being written.
func (s *shard) change() Change {
	c := Change{Shard: s.id, Session: s.session}
	for _, w := range s.flight {
		if w.op == opRemember {
			c.Remember = append(c.Remember, w.id)
		} else {
			c.Forget = append(c.Forget, w.id)
		}
	}
	return c
}

// opened takes the set of a shard, or that it cannot be read.
func (d *Desk) opened(now machine.Instant, in Opened, out *Outbox) {
	d.calls--
	s := d.shards[in.Shard]
	switch {
	case s == nil || s.session != in.Session || s.state != opening:
		d.failure(in.Err, in.Fenced)
	case in.Err != nil:
		d.shut(now, s, in.Err, in.Fenced, out)
	default:
		s.state, s.failures, s.why = open, 0, ""
		d.read(s, in.IDs, out)
		d.want(s)
	}
}

// read takes the ids that the store has. When the set was read before, its entities have begun, and it was
// opened again only for the sake of what is to be written.
func (d *Desk) read(s *shard, ids []string, out *Outbox) {
	var there []string
	first := !s.known && !s.settling
	starts := ids[:0]
	for _, id := range ids {
		o := s.asked(id)
		switch {
		case d.cfg.Fault(s.id, id) != "":
			d.stats.Foreign++
			continue
		case o == opForget:
			continue
		case o == opRemember:
			s.drop(id)
			there = append(there, id)
		}
		starts = append(starts, id)
	}
	s.known = true
	d.kept(s, there, out)
	if !first {
		return
	}
	if !d.cfg.First { // They have begun, or had until a move was called off.
		for _, id := range s.line {
			if s.wishes[id].op == opRemember {
				starts = append(starts, id)
			}
		}
	}
	if s.await(starts); len(starts) > 0 {
		d.starting = append(d.starting, s)
	}
}

// kept tells of entities that wait for the store to have them.
func (d *Desk) kept(s *shard, ids []string, out *Outbox) {
	if d.cfg.First && len(ids) > 0 {
		out.Kept = append(out.Kept, Named{Shard: s.id, IDs: ids})
	}
}

// changed takes that a change is written, or not.
func (d *Desk) changed(now machine.Instant, in Changed, out *Outbox) {
	d.calls--
	s := d.shards[in.Shard]
	switch {
	case s == nil || s.session != in.Session || s.state != changing:
		d.failure(in.Err, in.Fenced)
	case in.Err != nil:
		d.shut(now, s, in.Err, in.Fenced, out)
	default:
		s.state, s.failures, s.why = open, 0, ""
		flight := s.flight
		s.flight = nil
		var there, full []string
		for _, w := range flight {
			switch {
			case w.op == opForget:
				d.stats.Forgotten++
			case slices.Contains(in.Full, w.id):
				d.stats.Full++
				full = append(full, w.id)
			default:
				d.stats.Remembered++
				there = append(there, w.id)
			}
		}
		d.kept(s, slices.DeleteFunc(there, func(id string) bool { return s.asked(id) == opForget }), out)
		if d.cfg.First && len(full) > 0 {
			out.Unkept = append(out.Unkept, Named{Shard: s.id, IDs: full, Why: "it has no room"})
		}
		d.want(s)
	}
}

// shut closes a shard after a call has failed, until a pause is over. Nobody knows what the store has
// of a change that has failed, so all of it is to be written again.
func (d *Desk) shut(now machine.Instant, s *shard, why error, fenced bool, out *Outbox) {
	d.failure(why, fenced)
	pause := d.backoff(s.failures)
	if fenced { // By an owner that should not be: nothing is to be hurried.
		pause = d.cfg.RetryMax
	}
	s.state, s.session, s.why, s.again = closed, 0, why.Error(), now.Add(pause)
	s.failures++
	d.retry = min(d.retry, s.again)
	s.giveBack()
	if d.cfg.First {
		d.refuse(now, s, out)
	}
}

// failure counts a call that has failed, if it has.
func (d *Desk) failure(err error, fenced bool) {
	if err != nil {
		d.stats.Failed++
	}
	if fenced {
		d.stats.Fenced++
	}
}

// refuse tells once of the entities that have waited for too long. Whoever gives them up has them forgotten, since the
// store may have taken them all the same; one that runs meanwhile, since it was read, goes on and stays to be written.
func (d *Desk) refuse(now machine.Instant, s *shard, out *Outbox) {
	var late []string
	for _, id := range s.line {
		if w := s.wishes[id]; w.op == opRemember && now.Sub(w.since) >= d.cfg.Limit {
			late = append(late, id)
			d.stats.Unkept++
			s.wishes[id] = wish{id, opRemember, machine.Never}
		}
	}
	if len(late) == 0 {
		return
	}
	out.Unkept = append(out.Unkept, Named{Shard: s.id, IDs: late, Why: s.why})
}

// backoff returns the pause after so many failures before this one.
func (d *Desk) backoff(failures int) time.Duration {
	pause := d.cfg.RetryMin
	for range failures {
		if pause >= d.cfg.RetryMax/2 {
			return d.cfg.RetryMax
		}
		pause *= 2
	}
	return min(pause, d.cfg.RetryMax)
}
