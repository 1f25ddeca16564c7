// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/machine"
)

// entityState is the state of an entity's instance.
//
//	waiting ──> starting ──> active ──> stopping ──> (gone)
//	   ^            │                       │
//	   │            v                       │ messages came meanwhile
//	   └───────── failed <──────────────────┴──> starting
type entityState uint8

const (
	entityWaiting  entityState = iota + 1 // Has messages, and no instance while the node is suspended.
	entityStarting                        // OpStart is under way.
	entityActive                          // Has an instance.
	entityStopping                        // OpStop is under way.
	entityFailed                          // Could not be started; refuses until retryAt.
)

// Entity is the record of an entity that has an instance, messages, or a failed
// start behind it. A passive entity has none and costs nothing.
type Entity struct {
	id    string
	epoch Epoch
	// Value is the runtime's: the instance.
	Value any

	state     entityState
	passivate bool // Stop once the mailbox is empty.
	failures  uint8
	retryAt   machine.Instant
	mailbox   queue
	current   *Message
	withheld  *Reply // Answer that waits for the node's standing.
	owed      gossip.NodeID

	prev, next *Entity
}

// ID returns the id.
func (e *Entity) ID() string { return e.id }

// Epoch returns the epoch of the home under which the instance was started: the
// fencing token.
func (e *Entity) Epoch() Epoch { return e.epoch }

// Message returns the message that is being processed, nil if there is none. It
// belongs to the cell.
func (e *Entity) Message() *Message { return e.current }

// Waiting returns how many messages wait.
func (e *Entity) Waiting() int { return e.mailbox.n }

// Result is the outcome of processing one message.
type Result struct {
	// Reply answers the message; nil for none. The cell fills in the address.
	Reply *Reply
	// Failed says that the instance is not usable any more: it is stopped, and
	// started anew for the next message.
	Failed bool
	// Withhold says that the node's clock showed no standing when the message
	// had been processed: the reply waits as if the cell had been suspended.
	Withhold bool
}

// enqueue puts m into its mailbox and takes ownership, unless the code says that
// the mailbox is full or the entity failing.
func (s *Shard) enqueue(now machine.Instant, m *Message, out *Actions) Code {
	e := s.entities[m.Entity]
	if e == nil {
		e = s.create(m.Entity)
	}
	if e.state == entityFailed && now < e.retryAt {
		return CodeEntityFailed
	}
	if e.mailbox.n >= s.cfg.Mailbox {
		return CodeOverloaded
	}
	e.mailbox.push(m)
	s.advance(now, e, out)
	return CodeOK
}

func (s *Shard) create(id string) *Entity {
	e := &Entity{id: id, state: entityWaiting, prev: s.last}
	if s.entities == nil {
		s.entities = make(map[string]*Entity)
	}
	s.entities[id] = e
	if s.last == nil {
		s.first = e
	} else {
		s.last.next = e
	}
	s.last = e
	return e
}

func (s *Shard) remove(e *Entity) {
	delete(s.entities, e.id)
	if e.prev == nil {
		s.first = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		s.last = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.prev, e.next = nil, nil
}

// advance begins whatever the entity can begin now.
func (s *Shard) advance(now machine.Instant, e *Entity, out *Actions) {
	if s.suspended || e.current != nil || e.withheld != nil {
		return
	}
	switch e.state {
	case entityWaiting, entityFailed:
		if e.mailbox.n > 0 {
			s.start(e, out)
		}
	case entityActive:
		s.begin(now, e, out)
	}
}

func (s *Shard) start(e *Entity, out *Actions) {
	e.state, e.epoch = entityStarting, s.epoch
	s.alive++
	out.entity(OpStart, e)
}

// begin hands the next message to the instance, or stops it if it should go.
func (s *Shard) begin(now machine.Instant, e *Entity, out *Actions) {
	for m := e.mailbox.pop(); m != nil; m = e.mailbox.pop() {
		if m.Expired(now) {
			s.refuse(m, CodeExpired, out)
			continue
		}
		e.current = m
		out.entity(OpRun, e)
		return
	}
	if e.passivate || s.state == hostStopping {
		s.stop(e, out)
	}
}

func (s *Shard) stop(e *Entity, out *Actions) {
	e.state, e.passivate = entityStopping, false
	out.entity(OpStop, e)
}

// Started says that the instance of e was started, or could not be.
func (s *Shard) Started(now machine.Instant, e *Entity, ok bool, out *Actions) {
	if e.state != entityStarting {
		return
	}
	switch {
	case ok:
		e.state, e.failures = entityActive, 0
		if s.abandoned {
			s.stop(e, out)
			return
		}
		s.advance(now, e, out)
	default:
		s.startFailed(now, e, out)
	}
}

// startFailed fails what waits for e, and lets it rest for a while.
func (s *Shard) startFailed(now machine.Instant, e *Entity, out *Actions) {
	s.alive--
	e.state, e.passivate = entityFailed, false
	e.failures = min(e.failures+1, 16)
	e.retryAt = now.Add(min(s.cfg.BackoffMin<<(e.failures-1), s.cfg.BackoffMax))
	for m := e.mailbox.pop(); m != nil; m = e.mailbox.pop() {
		s.refuse(m, CodeEntityFailed, out)
	}
	if s.state != hostServing || s.abandoned {
		s.remove(e)
	}
	s.checkHalted(now, out)
}

// Postpone gives back the message of an OpRun whose processing did not begin,
// since the node's clock showed no standing. It begins after [Unsuspend] or,
// should the clock show standing again, after a short time.
func (s *Shard) Postpone(now machine.Instant, e *Entity, out *Actions) {
	if e.current == nil {
		return
	}
	m := e.current
	e.current = nil
	if s.abandoned || s.state == hostNone {
		// The hosting has ended since OpRun: there is nothing to wait for.
		s.refuse(m, CodeNotDelivered, out)
		s.stop(e, out)
		return
	}
	e.mailbox.pushFront(m)
	s.retrySoon(now, out)
}

// postponeRetry is how soon the clock is asked again for standing.
const postponeRetry = 50 * time.Millisecond

func (s *Shard) retrySoon(now machine.Instant, out *Actions) {
	s.postponed, s.waking = true, true
	out.add(Action{Op: OpWake, At: now.Add(postponeRetry)})
}

// Done says that e has processed its message. The next one may begin at once.
func (s *Shard) Done(now machine.Instant, e *Entity, r Result, out *Actions) {
	m := e.current
	if m == nil {
		return
	}
	e.current = nil
	if r.Reply != nil {
		r.Reply.Correlation = m.Correlation
		if s.suspended || r.Withhold {
			e.withheld, e.owed = r.Reply, m.Origin
		} else {
			s.reply(m.Origin, r.Reply, out)
		}
	}
	out.free(m)
	switch {
	case s.abandoned:
		e.withheld = nil
		s.stop(e, out)
	case r.Failed:
		s.stop(e, out)
	case e.withheld != nil && !s.suspended:
		s.retrySoon(now, out)
	default:
		s.advance(now, e, out)
	}
}

// Passivate stops the instance of e once its mailbox is empty. A message that
// comes later starts it anew; none is lost.
func (s *Shard) Passivate(_ machine.Instant, e *Entity, out *Actions) {
	if e.state != entityActive {
		return
	}
	e.passivate = true
	if e.current == nil && e.mailbox.n == 0 && e.withheld == nil {
		s.stop(e, out)
	}
}

// Stopped says that the instance of e has stopped.
func (s *Shard) Stopped(now machine.Instant, e *Entity, out *Actions) {
	if e.state != entityStopping {
		return
	}
	s.alive--
	e.Value = nil
	e.state = entityWaiting
	if e.withheld == nil && (e.mailbox.n == 0 || s.abandoned) {
		s.remove(e)
	} else {
		s.advance(now, e, out)
	}
	s.checkHalted(now, out)
}

// restart begins everything that waited for the node's standing.
func (s *Shard) restart(now machine.Instant, out *Actions) {
	for e := s.first; e != nil; {
		next := e.next
		if e.withheld != nil {
			s.reply(e.owed, e.withheld, out)
			e.withheld, e.owed = nil, gossip.NodeID{}
		}
		if e.state == entityWaiting && e.mailbox.n == 0 {
			s.remove(e)
		} else {
			s.advance(now, e, out)
		}
		e = next
	}
	s.checkHalted(now, out)
}
