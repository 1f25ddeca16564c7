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
func (c *Cell) token() *Epoch {
	if c.started == nil || *c.started != c.epoch {
		epoch := c.epoch
		c.started = &epoch
	}
	return c.started
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
func (c *Cell) enqueue(now machine.Instant, m *Message, out *Actions) Code {
	if m.Expired(now) {
		return CodeExpired // No entity starts for it.
	}
	e := c.entity(m.Entity)
	if e == nil {
		e = c.create(m.Entity)
	}
	if e.state == entityFailed && now < e.at {
		return CodeEntityFailed
	}
	if e.Waiting()+e.kept() >= c.cfg.Mailbox {
		if code := c.overfill(now, e, m, out); code != CodeOK {
			return code
		}
	}
	e.mailbox.push(m)
	c.advance(now, e, out)
	return CodeOK
}

// entity returns the record of an entity, nil if it has none.
func (c *Cell) entity(id string) *Entity {
	if c.recent != nil && c.recent.id == id {
		return c.recent
	}
	e := c.entities[id]
	if e != nil {
		c.recent = e
	}
	return e
}

func (c *Cell) create(id string) *Entity {
	e := &Entity{id: id, state: entityWaiting, prev: c.last}
	if c.entities == nil {
		c.entities = make(map[string]*Entity)
	}
	c.entities[id] = e
	if c.last == nil {
		c.first = e
	} else {
		c.last.next = e
	}
	c.last = e
	return e
}

func (c *Cell) remove(e *Entity) {
	delete(c.entities, e.id)
	if c.recent == e {
		c.recent = nil
	}
	if c.sweep == e {
		c.sweep = e.next
	}
	if e.prev == nil {
		c.first = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		c.last = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.prev, e.next = nil, nil
}

// removeIdle removes the record of an entity that needs none: one without an
// instance, without messages, and without a failure that is to be remembered.
func (c *Cell) removeIdle(e *Entity) {
	if !e.hasInstance() && e.mailbox.n == 0 && e.withheld == nil && e.pressure == nil && (e.state != entityFailed || c.state != hostServing || c.abandoned) {
		c.remove(e)
	}
}

// advance begins whatever the entity can begin now.
func (c *Cell) advance(now machine.Instant, e *Entity, out *Actions) {
	if c.suspended || e.current != nil || e.withheld != nil {
		return
	}
	switch e.state {
	case entityWaiting, entityFailed:
		if e.mailbox.n > 0 {
			c.start(now, e, out)
		}
	case entityActive:
		c.begin(now, e, out)
	}
}

func (c *Cell) start(now machine.Instant, e *Entity, out *Actions) {
	c.counts.Started++
	if e.state == entityFailed {
		c.counts.Restarted++
	}
	e.state, e.epoch, e.at, e.Value = entityStarting, c.token(), now, nil
	out.entity(OpStart, e)
}

// begin hands the next message to the instance, or stops it if it should go.
func (c *Cell) begin(now machine.Instant, e *Entity, out *Actions) {
	machine.Assert(!e.Ended(), "an instance begins nothing after its hosting has ended")
	for m := e.mailbox.pop(); m != nil; m = e.mailbox.pop() {
		if m.Expired(now) {
			c.refuse(m, CodeExpired, out)
			continue
		}
		e.current, e.at = m, now
		out.entity(OpRun, e)
		c.relieve(e, out)
		return
	}
	c.relieve(e, out)
	if e.passivate || c.state == hostStopping {
		c.stop(now, e, out)
	}
}

// returned says that e is done with what it was at.
func (c *Cell) returned(e *Entity, out *Actions) {
	if e.stuck {
		e.stuck = false
		c.stuck--
		out.entity(OpReturned, e)
	}
}

// Started says that the instance of e was started, or could not be.
func (c *Cell) Started(now machine.Instant, e *Entity, ok bool, out *Actions) {
	if !ok {
		c.StartFailed(now, e, "", out)
		return
	}
	if e.state != entityStarting {
		return
	}
	c.returned(e, out)
	e.state, e.at = entityActive, now
	if c.abandoned || e.Ended() {
		c.stop(now, e, out)
		return
	}
	c.advance(now, e, out)
}

// StartFailed says that the instance of e could not be started, and why.
func (c *Cell) StartFailed(now machine.Instant, e *Entity, why string, out *Actions) {
	if e.state != entityStarting {
		return
	}
	c.returned(e, out)
	c.counts.StartFailed++
	e.passivate, e.held, e.Value = false, false, nil
	if !e.Ended() {
		e.failures = min(e.failures+1, 16)
		c.rest(now, e, c.backoff(e.failures), why, out)
	}
	c.gone(now, e, out)
}

// backoff returns how long an entity rests after a number of failures, of which
// the first has a rest already.
func (c *Cell) backoff(failures uint8) time.Duration {
	d := c.cfg.BackoffMin
	for range failures - 1 {
		if d >= c.cfg.BackoffMax/2 {
			return c.cfg.BackoffMax // Doubling further could overflow.
		}
		d *= 2
	}
	return min(d, c.cfg.BackoffMax)
}

// rest fails what waits for e, and what comes for a while.
func (c *Cell) rest(now machine.Instant, e *Entity, d time.Duration, why string, out *Actions) {
	e.state, e.at, e.Value = entityFailed, now.Add(d), reason(why)
	for m := e.mailbox.pop(); m != nil; m = e.mailbox.pop() {
		c.refuse(m, CodeEntityFailed, out)
	}
	c.relieve(e, out)
}

// gone goes on without the instance that e had.
func (c *Cell) gone(now machine.Instant, e *Entity, out *Actions) {
	if e.released {
		c.released = slices.DeleteFunc(c.released, func(o *Entity) bool { return o == e })
		return
	}
	if e.hasInstance() {
		e.state = entityWaiting
	}
	e.stale = false
	c.removeIdle(e)
	if c.entities[e.id] == e {
		c.advance(now, e, out)
	}
	c.checkHalted(now, out)
}

// Postpone gives back the message of an OpRun whose processing did not begin,
// since the node's clock showed no standing. It begins after [Unsuspend] or,
// should the clock show standing again, after a short time.
func (c *Cell) Postpone(now machine.Instant, e *Entity, out *Actions) {
	if e.current == nil {
		return
	}
	m := e.current
	e.current = nil
	switch {
	case e.released:
		out.free(m) // Its sender was told.
		c.stop(now, e, out)
	case c.abandoned || e.stale:
		// The hosting has ended since OpRun: there is nothing to wait for.
		c.refuse(m, CodeNotDelivered, out)
		c.stop(now, e, out)
	default:
		e.mailbox.pushFront(m)
		c.retrySoon(now, out)
	}
}

// Lapse gives back the message of an OpRun whose deadline had passed before its
// processing began. The next one may begin at once.
func (c *Cell) Lapse(now machine.Instant, e *Entity, out *Actions) {
	m := e.current
	if m == nil {
		return
	}
	if c.abandoned || e.Ended() {
		c.Postpone(now, e, out)
		return
	}
	e.current, e.at = nil, now
	c.refuse(m, CodeExpired, out)
	c.advance(now, e, out)
}

// postponeRetry is how soon the clock is asked again for standing.
const postponeRetry = 50 * time.Millisecond

func (c *Cell) retrySoon(now machine.Instant, out *Actions) {
	c.postponed, c.waking = true, true
	out.add(Action{Op: OpWake, At: now.Add(postponeRetry)})
}

// Done says that e has processed its message. The next one may begin at once.
func (c *Cell) Done(now machine.Instant, e *Entity, r Result, out *Actions) {
	m := e.current
	if m == nil {
		return
	}
	if !m.Own {
		c.counts.Handled++
	}
	e.current, e.at = nil, now
	c.returned(e, out)
	if r.Reply != nil && !e.released && !m.Own {
		r.Reply.Correlation = m.Correlation
		switch {
		case !c.suspended && !r.Withhold:
			c.reply(m.Origin, r.Reply, out)
		case !e.stale:
			e.withheld = &withheld{r.Reply, m.Origin}
		}
	}
	out.free(m)
	if r.Failed {
		c.fail(now, e, r.Reason, out)
		return
	}
	e.failures = 0
	switch {
	case c.abandoned:
		e.withheld = nil
		c.stop(now, e, out)
	case e.Ended():
		c.stop(now, e, out)
	case e.withheld != nil && !c.suspended:
		c.retrySoon(now, out)
	default:
		c.advance(now, e, out)
	}
}

// fail stops an instance that is not usable any more.
func (c *Cell) fail(now machine.Instant, e *Entity, why string, out *Actions) {
	c.counts.Failed++
	e.failures = min(e.failures+1, 16)
	if c.abandoned {
		e.withheld = nil
	}
	c.stop(now, e, out)
	if e.withheld != nil && !c.suspended {
		c.retrySoon(now, out)
	}
	if !c.abandoned && !e.Ended() {
		e.failure = &why
	}
}

// Passivate stops the instance of e once its mailbox is empty. A message that
// comes later starts it anew; none is lost.
func (c *Cell) Passivate(now machine.Instant, e *Entity, out *Actions) {
	switch {
	case e.state == entityStarting:
		e.passivate = true
	case e.state != entityActive:
	case e.current == nil && e.mailbox.n == 0 && e.withheld == nil:
		c.stop(now, e, out)
	default:
		e.passivate = true
	}
}

// Hold says whether e must not be stopped for being idle: it has timers, which
// would end with the instance.
func (c *Cell) Hold(e *Entity, hold bool) { e.held = hold && !e.Ended() }

// Remind puts a message of an instance to itself into its mailbox. It does nothing
// when the instance ends: its timers end with it. The mailbox is not bounded for
// these, since their number is.
func (c *Cell) Remind(now machine.Instant, e *Entity, m *Message, out *Actions) {
	if !e.Live() || c.abandoned {
		return
	}
	m.Origin, m.Own = c.cfg.Self, true
	e.mailbox.push(m)
	c.advance(now, e, out)
}

// Stopped says that the instance of e has stopped.
func (c *Cell) Stopped(now machine.Instant, e *Entity, out *Actions) {
	if e.state != entityStopping {
		return
	}
	c.returned(e, out)
	e.Value = nil
	if e.failure == nil && c.state == hostServing && !c.abandoned && !e.Ended() {
		c.counts.Passivated++ // For nothing else an instance stops while its shard stays.
	}
	if e.failure != nil {
		why := *e.failure
		e.failure = nil
		switch {
		case e.Ended() || c.abandoned:
		case c.cfg.OnFailure == StopOnFailure:
			c.rest(now, e, 0, why, out)
		case e.failures > 1:
			c.rest(now, e, c.backoff(e.failures-1), why, out)
		default:
			e.state, e.at, e.Value = entityFailed, now, reason(why)
		}
	}
	c.gone(now, e, out)
}

// restart begins everything that waited for the node's standing.
func (c *Cell) restart(now machine.Instant, out *Actions) {
	for e := c.first; e != nil; {
		next := e.next
		if e.withheld != nil {
			c.reply(e.withheld.to, e.withheld.reply, out)
			e.withheld = nil
		}
		c.stopDeferred(now, e, out)
		c.removeIdle(e)
		if c.entities[e.id] == e {
			c.advance(now, e, out)
		}
		e = next
	}
	c.checkHalted(now, out)
}
