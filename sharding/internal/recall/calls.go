// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package recall

import (
	"errors"
	"time"

	"github.com/quorate/quorate/machine"
)

// Calls of the store: which begin, and what follows from the answers.

// want has a set wait for a call, if it wants one and does not wait yet.
func (d *Desk) want(s *set) {
	if s.wants() && !s.queued {
		s.queued = true
		d.ready = append(d.ready, s)
	}
}

// wants reports whether a set wants a call.
func (s *set) wants() bool {
	return s.state == closed && s.again == 0 || s.state == open && len(s.wishes) > 0 && s.writable()
}

// wake has the sets go on whose pause is over.
func (d *Desk) wake(now machine.Instant) {
	if now < d.retry {
		return
	}
	d.retry = machine.Never
	for _, name := range sortedBy(d.sets, Set.compare) {
		s := d.sets[name]
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
		case !s.wants(): // It has begun to wait for something else.
			continue
		case s.state == closed:
			d.sessions++
			s.state, s.session = opening, d.sessions
			out.Open = append(out.Open, Open{Set: s.name, Session: s.session, Epoch: s.epoch})
		default:
			s.state = changing
			s.take(d.cfg.Batch)
			out.Change = append(out.Change, s.change())
		}
		d.calls++
		d.stats.Calls++
	}
}

// opened takes what a set has, or that it cannot be read.
func (d *Desk) opened(now machine.Instant, in Opened, out *Outbox) {
	d.calls--
	s := d.sets[in.Set]
	switch {
	case s == nil || s.session != in.Session || s.state != opening:
		d.failure(in.Err, in.Fenced)
		d.closing = append(d.closing, Close{in.Set, in.Session})
	case in.Err != nil:
		d.shut(now, s, in.Err, in.Fenced, out)
	default:
		s.state, s.failures, s.why = open, 0, ""
		s.read(now, in.IDs, out)
		d.want(s)
	}
}

// changed takes that a change is written, or not.
func (d *Desk) changed(now machine.Instant, in Changed, out *Outbox) {
	d.calls--
	s := d.sets[in.Set]
	if in.Set.IsIndex() && in.Err == nil && len(in.Full) > 0 {
		in.Err = errNoRoom
	}
	switch {
	case s == nil || s.session != in.Session || s.state != changing:
		d.failure(in.Err, in.Fenced)
	case in.Err != nil:
		d.shut(now, s, in.Err, in.Fenced, out)
	default:
		s.state, s.failures, s.why = open, 0, ""
		done, full := s.landed(in.Full)
		s.wrote(now, done, full, out)
		d.want(s)
	}
}

// errNoRoom is the fault of an index that does not take the number of shards, without which nothing is written.
var errNoRoom = errors.New("it has no room")

// shut closes a set after a call has failed, until a pause is over. Nobody knows what the store has
// of a change that has failed, so all of it is to be written again.
func (d *Desk) shut(now machine.Instant, s *set, why error, fenced bool, out *Outbox) {
	d.failure(why, fenced)
	pause := d.backoff(s.failures)
	if fenced { // By an owner that should not be: nothing is to be hurried.
		pause = d.cfg.RetryMax
	}
	d.closing = append(d.closing, Close{s.name, s.session})
	s.state, s.session, s.why, s.again = closed, 0, why.Error(), now.Add(pause)
	s.failures++
	d.retry = min(d.retry, s.again)
	s.giveBack()
	s.failed(now, s.why, out)
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
