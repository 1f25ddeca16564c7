// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// entityState is the state of an entity's instance.
//
//	waiting ──> starting ──> active ──> stopping ──> (gone)
//	   ^            │                       │
//	   │            v      it had failed    │ messages came meanwhile
//	   └───────── failed <──────────────────┴──> starting
type entityState uint8

const (
	entityWaiting  entityState = iota + 1 // Has messages, and no instance while the node is suspended.
	entityStarting                        // OpStart is under way.
	entityActive                          // Has an instance.
	entityStopping                        // OpStop is under way.
	entityFailed                          // Has no instance; refuses until at.
)

// Entity is the record of an entity that has an instance, messages, or a failed
// start behind it. A passive entity has none and costs nothing.
type Entity struct {
	id    string
	epoch *Epoch // One of all entities that were started under it; nil before the first start.
	// Value is the runtime's: the instance. The cell clears it when the instance is
	// gone, and keeps the reason there of an entity that failed.
	Value any

	state     entityState
	passivate bool // Stop once the mailbox is empty.
	held      bool // Not to be stopped for being idle.
	stale     bool // The instance is of a hosting that has ended.
	released  bool // Left behind: it is in no list any more.
	deferred  bool // Its stop waits for the node's standing.
	stuck     bool // It was reported.
	failures  uint8
	// at is when the present state began; while active, when the present message
	// began or the last one ended; while failed, when the rest ends.
	at       machine.Instant
	mailbox  queue
	current  *Message
	ahead    queue // What follows current and was handed out with it.
	withheld *withheld
	failure  *string   // Why the instance is stopping, when it is because it failed.
	pressure *pressure // Nil while nobody waits for room in the mailbox.

	prev, next *Entity
}

// withheld is an answer that waits for the node's standing, and who waits for it.
type withheld struct {
	reply *Reply
	to    gossip.NodeID
}

// ID returns the id.
func (e *Entity) ID() string { return e.id }

// Epoch returns the epoch of the home under which the instance was started: the
// fencing token.
func (e *Entity) Epoch() Epoch {
	if e.epoch == nil {
		return Epoch{}
	}
	return *e.epoch
}

// token returns the epoch of the home, which its entities share: there may be
// millions of them.
func (s *Shard) token() *Epoch {
	if s.started == nil || *s.started != s.epoch {
		epoch := s.epoch
		s.started = &epoch
	}
	return s.started
}

// Message returns the message that is being processed, nil if there is none. It
// belongs to the cell.
func (e *Entity) Message() *Message { return e.current }

// Waiting returns how many messages wait, or were given ahead.
func (e *Entity) Waiting() int { return e.mailbox.n + e.ahead.n }

// Idle reports whether the instance has nothing to do, and since when.
func (e *Entity) Idle() (since machine.Instant, idle bool) {
	return e.at, e.state == entityActive && e.current == nil && e.mailbox.n == 0
}

// Ended reports whether the hosting has ended under which the instance runs.
func (e *Entity) Ended() bool { return e.stale || e.released }

// Live reports whether the instance starts or runs, and has not been told to stop.
func (e *Entity) Live() bool {
	return (e.state == entityStarting || e.state == entityActive) && !e.Ended()
}

// reason is why an entity has failed.
type reason string

func (e *Entity) reason() string {
	r, _ := e.Value.(reason)
	return string(r)
}

// hasInstance reports whether there is an instance, also one that starts or stops.
func (e *Entity) hasInstance() bool {
	return e.state == entityStarting || e.state == entityActive || e.state == entityStopping
}

// Result is the outcome of processing one message.
type Result struct {
	// Reply answers the message; nil for none. The cell fills in the address.
	Reply *Reply
	// Failed says that the instance is not usable any more: it is stopped, and what
	// then happens is up to [OnFailure].
	Failed bool
	// Reason says why, for those whose messages fail until the entity is started
	// anew.
	Reason string
	// Withhold says that the node's clock showed no standing when the message
	// had been processed: the reply waits as if the cell had been suspended.
	Withhold bool
}

// enqueue puts m, of a stream, into its mailbox and takes ownership, unless the code
// says that nobody waits for it any more, that the entity is failing, or that its
// origin sends on although it is held back.
func (s *Shard) enqueue(now machine.Instant, m *Message, out *Actions) Code {
	if m.Expired(now) {
		return CodeExpired // No entity starts for it.
	}
	e := s.entity(m.Entity)
	if e == nil {
		e = s.create(m.Entity)
	}
	if e.state == entityFailed && now < e.at {
		return CodeEntityFailed
	}
	if e.Waiting()+e.kept() >= s.cfg.Mailbox {
		if code := s.overfill(now, e, m, out); code != CodeOK {
			return code
		}
	}
	e.mailbox.push(m)
	s.advance(now, e, out)
	return CodeOK
}

// entity returns the record of an entity, nil if it has none.
func (s *Shard) entity(id string) *Entity {
	if s.recent != nil && s.recent.id == id {
		return s.recent
	}
	e := s.entities[id]
	if e != nil {
		s.recent = e
	}
	return e
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
	if s.recent == e {
		s.recent = nil
	}
	if s.sweep == e {
		s.sweep = e.next
	}
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

// removeIdle removes the record of an entity that needs none: one without an
// instance, without messages, and without a failure that is to be remembered.
func (s *Shard) removeIdle(e *Entity) {
	if !e.hasInstance() && e.mailbox.n == 0 && e.withheld == nil && e.pressure == nil && (e.state != entityFailed || s.state != hostServing || s.abandoned) {
		s.remove(e)
	}
}

// advance begins whatever the entity can begin now.
func (s *Shard) advance(now machine.Instant, e *Entity, out *Actions) {
	if s.suspended || e.current != nil || e.withheld != nil {
		return
	}
	switch e.state {
	case entityWaiting, entityFailed:
		if e.mailbox.n > 0 {
			s.start(now, e, out)
		}
	case entityActive:
		s.begin(now, e, out)
	}
}

func (s *Shard) start(now machine.Instant, e *Entity, out *Actions) {
	s.counts.Started++
	if e.state == entityFailed {
		s.counts.Restarted++
	}
	e.state, e.epoch, e.at, e.Value = entityStarting, s.token(), now, nil
	out.entity(OpStart, e)
}

// begin hands the next message to the instance, or stops it if it should go.
func (s *Shard) begin(now machine.Instant, e *Entity, out *Actions) {
	machine.Assert(!e.Ended(), "an instance begins nothing after its hosting has ended")
	for m := e.mailbox.pop(); m != nil; m = e.mailbox.pop() {
		if m.Expired(now) {
			s.refuse(m, CodeExpired, out)
			continue
		}
		e.current, e.at = m, now
		out.entity(OpRun, e)
		s.relieve(e, out)
		return
	}
	s.relieve(e, out)
	if e.passivate || s.state == hostStopping {
		s.stop(now, e, out)
	}
}

// returned says that e is done with what it was at.
func (s *Shard) returned(e *Entity, out *Actions) {
	if e.stuck {
		e.stuck = false
		s.stuck--
		out.entity(OpReturned, e)
	}
}

// Started says that the instance of e was started, or could not be.
func (s *Shard) Started(now machine.Instant, e *Entity, ok bool, out *Actions) {
	if !ok {
		s.StartFailed(now, e, "", out)
		return
	}
	if e.state != entityStarting {
		return
	}
	s.returned(e, out)
	e.state, e.at = entityActive, now
	if s.abandoned || e.Ended() {
		s.stop(now, e, out)
		return
	}
	s.advance(now, e, out)
}

// StartFailed says that the instance of e could not be started, and why.
func (s *Shard) StartFailed(now machine.Instant, e *Entity, why string, out *Actions) {
	if e.state != entityStarting {
		return
	}
	s.returned(e, out)
	s.counts.StartFailed++
	e.passivate, e.held, e.Value = false, false, nil
	if !e.Ended() {
		e.failures = min(e.failures+1, 16)
		s.rest(now, e, s.backoff(e.failures), why, out)
	}
	s.gone(now, e, out)
}

// backoff returns how long an entity rests after a number of failures, of which
// the first has a rest already.
func (s *Shard) backoff(failures uint8) time.Duration {
	d := s.cfg.BackoffMin
	for range failures - 1 {
		if d >= s.cfg.BackoffMax/2 {
			return s.cfg.BackoffMax // Doubling further could overflow.
		}
		d *= 2
	}
	return min(d, s.cfg.BackoffMax)
}

// rest fails what waits for e, and what comes for a while.
func (s *Shard) rest(now machine.Instant, e *Entity, d time.Duration, why string, out *Actions) {
	e.state, e.at, e.Value = entityFailed, now.Add(d), reason(why)
	for m := e.mailbox.pop(); m != nil; m = e.mailbox.pop() {
		s.refuse(m, CodeEntityFailed, out)
	}
	s.relieve(e, out)
}

// gone goes on without the instance that e had.
func (s *Shard) gone(now machine.Instant, e *Entity, out *Actions) {
	if e.released {
		s.released = slices.DeleteFunc(s.released, func(o *Entity) bool { return o == e })
		return
	}
	if e.hasInstance() {
		e.state = entityWaiting
	}
	e.stale = false
	s.removeIdle(e)
	if s.entities[e.id] == e {
		s.advance(now, e, out)
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
	switch {
	case e.released:
		out.free(m) // Its sender was told.
		s.stop(now, e, out)
	case s.abandoned || e.stale:
		// The hosting has ended since OpRun: there is nothing to wait for.
		s.refuse(m, CodeNotDelivered, out)
		s.stop(now, e, out)
	default:
		e.mailbox.pushFront(m)
		s.retrySoon(now, out)
	}
}

// Lapse gives back the message of an OpRun whose deadline had passed before its
// processing began. The next one may begin at once.
func (s *Shard) Lapse(now machine.Instant, e *Entity, out *Actions) {
	m := e.current
	if m == nil {
		return
	}
	if s.abandoned || e.Ended() {
		s.Postpone(now, e, out)
		return
	}
	e.current, e.at = nil, now
	s.refuse(m, CodeExpired, out)
	s.advance(now, e, out)
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
	if !m.Own {
		s.counts.Handled++
	}
	e.current, e.at = nil, now
	s.returned(e, out)
	if r.Reply != nil && !e.released && !m.Own {
		r.Reply.Correlation = m.Correlation
		switch {
		case !s.suspended && !r.Withhold:
			s.reply(m.Origin, r.Reply, out)
		case !e.stale:
			e.withheld = &withheld{r.Reply, m.Origin}
		}
	}
	out.free(m)
	if r.Failed {
		s.fail(now, e, r.Reason, out)
		return
	}
	e.failures = 0
	switch {
	case s.abandoned:
		e.withheld = nil
		s.stop(now, e, out)
	case e.Ended():
		s.stop(now, e, out)
	case e.withheld != nil && !s.suspended:
		s.retrySoon(now, out)
	default:
		s.advance(now, e, out)
	}
}

// fail stops an instance that is not usable any more.
func (s *Shard) fail(now machine.Instant, e *Entity, why string, out *Actions) {
	s.counts.Failed++
	e.failures = min(e.failures+1, 16)
	if s.abandoned {
		e.withheld = nil
	}
	s.stop(now, e, out)
	if e.withheld != nil && !s.suspended {
		s.retrySoon(now, out)
	}
	if !s.abandoned && !e.Ended() {
		e.failure = &why
	}
}

// Passivate stops the instance of e once its mailbox is empty. A message that
// comes later starts it anew; none is lost.
func (s *Shard) Passivate(now machine.Instant, e *Entity, out *Actions) {
	switch {
	case e.state == entityStarting:
		e.passivate = true
	case e.state != entityActive:
	case e.current == nil && e.mailbox.n == 0 && e.withheld == nil:
		s.stop(now, e, out)
	default:
		e.passivate = true
	}
}

// Hold says whether e must not be stopped for being idle: it has timers, which
// would end with the instance.
func (s *Shard) Hold(e *Entity, hold bool) { e.held = hold && !e.Ended() }

// Remind puts a message of an instance to itself into its mailbox. It does nothing
// when the instance ends: its timers end with it. The mailbox is not bounded for
// these, since their number is.
func (s *Shard) Remind(now machine.Instant, e *Entity, m *Message, out *Actions) {
	if !e.Live() || s.abandoned {
		return
	}
	m.Origin, m.Own = s.cfg.Self, true
	e.mailbox.push(m)
	s.advance(now, e, out)
}

// Stopped says that the instance of e has stopped.
func (s *Shard) Stopped(now machine.Instant, e *Entity, out *Actions) {
	if e.state != entityStopping {
		return
	}
	s.returned(e, out)
	e.Value = nil
	if e.failure == nil && s.state == hostServing && !s.abandoned && !e.Ended() {
		s.counts.Passivated++ // For nothing else an instance stops while its shard stays.
	}
	if e.failure != nil {
		why := *e.failure
		e.failure = nil
		switch {
		case e.Ended() || s.abandoned:
		case s.cfg.OnFailure == StopOnFailure:
			s.rest(now, e, 0, why, out)
		case e.failures > 1:
			s.rest(now, e, s.backoff(e.failures-1), why, out)
		default:
			e.state, e.at, e.Value = entityFailed, now, reason(why)
		}
	}
	s.gone(now, e, out)
}

// restart begins everything that waited for the node's standing.
func (s *Shard) restart(now machine.Instant, out *Actions) {
	for e := s.first; e != nil; {
		next := e.next
		if e.withheld != nil {
			s.reply(e.withheld.to, e.withheld.reply, out)
			e.withheld = nil
		}
		s.stopDeferred(now, e, out)
		s.removeIdle(e)
		if s.entities[e.id] == e {
			s.advance(now, e, out)
		}
		e = next
	}
	s.checkHalted(now, out)
}
