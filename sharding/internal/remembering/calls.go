// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package remembering

import (
	"errors"
	"time"

	"github.com/quorate/quorate/machine"
)

// Calls of the store: which begin, and what follows from the answers.

// want queues a set for a call of the store, if the set wants one and is not queued yet.
func (m *Machine) want(s *set) {
	if s.wants() && !s.queued {
		s.queued = true
		m.ready = append(m.ready, s)
	}
}

// wants reports whether a set wants a call.
func (s *set) wants() bool {
	return s.state == closed && s.again == 0 || s.state == open && len(s.requests) > 0 && s.writable()
}

// wake queues the sets whose pause after a failure is over.
func (m *Machine) wake(now machine.Instant) {
	if now < m.retry {
		return
	}
	m.retry = machine.Never
	for _, name := range sortedBy(m.sets, Set.compare) {
		s := m.sets[name]
		switch {
		case s.state != closed || s.again == 0:
		case s.again <= now:
			s.again = 0
			m.want(s)
		default:
			m.retry = min(m.retry, s.again)
		}
	}
}

// call begins calls of the queued sets, up to Config.Calls at a time.
func (m *Machine) call(out *Outbox) {
	for m.calls < m.cfg.Calls && len(m.ready) > 0 {
		s := m.ready[0]
		m.ready = m.ready[1:]
		s.queued = false
		switch {
		case !s.wants(): // It has begun to wait for something else.
			continue
		case s.state == closed:
			m.sessions++
			s.state, s.session = opening, m.sessions
			out.Open = append(out.Open, Open{Set: s.name, Session: s.session, Epoch: s.epoch})
		default:
			s.state = changing
			s.take(m.cfg.Batch)
			out.Change = append(out.Change, s.change())
		}
		m.calls++
		m.stats.Calls++
	}
}

// opened handles the answer to Open: the ids of a set, or why it cannot be read.
func (m *Machine) opened(now machine.Instant, in Opened, out *Outbox) {
	m.calls--
	s := m.sets[in.Set]
	switch {
	case s == nil || s.session != in.Session || s.state != opening:
		m.failure(in.Err, in.Fenced)
		m.closing = append(m.closing, Close{in.Set, in.Session})
	case in.Err != nil:
		m.shut(now, s, in.Err, in.Fenced, out)
	default:
		s.state, s.failures, s.why = open, 0, ""
		s.read(now, in.IDs, out)
		m.want(s)
	}
}

// changed handles the answer to Change.
func (m *Machine) changed(now machine.Instant, in Changed, out *Outbox) {
	m.calls--
	s := m.sets[in.Set]
	if in.Set.IsIndex() && in.Err == nil && len(in.Full) > 0 {
		in.Err = errNoRoom
	}
	switch {
	case s == nil || s.session != in.Session || s.state != changing:
		m.failure(in.Err, in.Fenced)
	case in.Err != nil:
		m.shut(now, s, in.Err, in.Fenced, out)
	default:
		s.state, s.failures, s.why = open, 0, ""
		done, full := s.complete(in.Full)
		s.wrote(now, done, full, out)
		m.want(s)
	}
}

// errNoRoom is the fault of an index that does not take the number of shards, without which nothing is written.
var errNoRoom = errors.New("it has no room")

// shut closes a set after a call has failed, until a pause is over. Nobody knows what the store has
// of a change that has failed, so all of it is to be written again.
func (m *Machine) shut(now machine.Instant, s *set, why error, fenced bool, out *Outbox) {
	m.failure(why, fenced)
	pause := m.backoff(s.failures)
	if fenced { // By an owner that should not be: nothing is to be hurried.
		pause = m.cfg.RetryMax
	}
	m.closing = append(m.closing, Close{s.name, s.session})
	s.state, s.session, s.why, s.again = closed, 0, why.Error(), now.Add(pause)
	s.failures++
	m.retry = min(m.retry, s.again)
	s.giveBack()
	s.failed(now, s.why, out)
}

// failure counts a call that has failed, if it has.
func (m *Machine) failure(err error, fenced bool) {
	if err != nil {
		m.stats.Failed++
	}
	if fenced {
		m.stats.Fenced++
	}
}

// backoff returns the pause after so many failures before this one.
func (m *Machine) backoff(failures int) time.Duration {
	pause := m.cfg.RetryMin
	for range failures {
		if pause >= m.cfg.RetryMax/2 {
			return m.cfg.RetryMax
		}
		pause *= 2
	}
	return min(pause, m.cfg.RetryMax)
}
