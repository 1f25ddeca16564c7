// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// The life of an entity on its home: enqueue puts a message into the mailbox, and creates the
// record if there is none; advance begins whatever the entity can begin; Started, Done,
// Stopped and their kin take the outcome of each action, and lead back to advance.

// entityState is the state of an entity's instance.
//
//	waiting ──> starting ──> active ──> stopping ──> (gone)
//	   ^            │                       │
//	   │            v      it had failed    │ messages came meanwhile
//	   └───────── failed <──────────────────┴──> starting
type entityState uint8

const (
	entityWaiting  entityState = iota + 1 // The entity has messages, and no instance while the node is suspended.
	entityStarting                        // OpStart is under way.
	entityActive                          // The entity has an instance.
	entityStopping                        // OpStop is under way.
	entityFailed                          // The entity has no instance, and refuses messages until Entity.at.
)

// Entity is the record of an entity that has an instance, has messages, or has failed. A
// passive entity has no record and costs nothing.
type Entity struct {
	id    string
	epoch *protocol.Epoch // Shared by all entities that were started under this epoch; nil before the first start.
	// Value is the instance, which only the runtime reads. The cell clears Value when the
	// instance is gone; for an entity that failed the cell keeps the reason there.
	Value any

	state     entityState
	passivate bool  // The instance is stopped once the mailbox is empty.
	held      bool  // The instance is not stopped for being idle.
	stale     bool  // The instance belongs to a hosting that has ended.
	released  bool  // The entity was left behind: the cell's list and map do not have it any more.
	deferred  bool  // The stop of the instance waits for the node's standing.
	stuck     bool  // The entity was reported as stuck and has not returned.
	failures  uint8 // Failures in a row, without a success in between.
	// at is when the present state began; while active, when the present message
	// began or the last one ended; while failed, when the rest ends.
	at       machine.Instant
	mailbox  queue
	current  *Message  // The message that is being processed.
	ahead    queue     // The messages after current that were handed out with it, see [Cell.Ahead].
	withheld *withheld // The reply that waits for the node's standing; nil when there is none.
	failure  *string   // Why the instance failed, while it is stopped for that; else nil.
	pressure *pressure // Nil while nobody waits for room in the mailbox.

	prev, next *Entity
}

// withheld is a reply that waits for the node's standing, and the node to send it to.
type withheld struct {
	reply *protocol.Reply
	to    gossip.NodeID
}

// ID returns the id.
func (e *Entity) ID() string { return e.id }

// Epoch returns the epoch of the home under which the instance was started: the
// fencing token.
func (e *Entity) Epoch() protocol.Epoch {
	if e.epoch == nil {
		return protocol.Epoch{}
	}
	return *e.epoch
}

// token returns the epoch of the home as one value that all entities share, since there
// may be millions of entities.
func (c *Cell) token() *protocol.Epoch {
	if c.started == nil || *c.started != c.epoch {
		epoch := c.epoch
		c.started = &epoch
	}
	return c.started
}

// Message returns the message that is being processed, nil if there is none. It
// belongs to the cell.
func (e *Entity) Message() *Message { return e.current }

// Waiting returns how many messages wait in the mailbox or were handed out by [Cell.Ahead].
func (e *Entity) Waiting() int { return e.mailbox.n + e.ahead.n }

// Idle reports whether the instance has no message to process, and since when.
func (e *Entity) Idle() (since machine.Instant, idle bool) {
	return e.at, e.state == entityActive && e.current == nil && e.mailbox.n == 0
}

// Ended reports whether the hosting under which the instance was started has ended.
func (e *Entity) Ended() bool { return e.stale || e.released }

// Live reports whether the instance starts or runs, and has not been told to stop.
func (e *Entity) Live() bool {
	return (e.state == entityStarting || e.state == entityActive) && !e.Ended()
}

// reason is the Value of an entity that has failed: the text of the error.
type reason string

func (e *Entity) reason() string {
	r, _ := e.Value.(reason)
	return string(r)
}

// hasInstance reports whether there is an instance, be it starting, active or stopping.
func (e *Entity) hasInstance() bool {
	return e.state == entityStarting || e.state == entityActive || e.state == entityStopping
}

// Result is the outcome of processing one message.
type Result struct {
	// Reply answers the message; nil for none. The cell fills in the address.
	Reply *protocol.Reply
	// Failed says that the instance is not usable any more: the instance is stopped, and
	// [OnFailure] says what happens then.
	Failed bool
	// Reason says why the instance failed. Messages that fail until the entity is started
	// anew carry the reason to their senders.
	Reason string
	// Withhold says that the node's clock showed no standing when the message
	// had been processed: the reply waits as if the cell had been suspended.
	Withhold bool
}

// enqueue puts m, of a stream, into the mailbox of its entity. With another code than
// [protocol.CodeOK] the caller still owns m: nobody waits for the reply any more, the entity is
// failing, or the origin sends on although it is held back.
func (c *Cell) enqueue(now machine.Instant, m *Message, out *Actions) protocol.Code {
	if m.Expired(now) {
		return protocol.CodeExpired // No entity is started for a message that nobody waits for.
	}
	e := c.entity(m.Entity)
	if e == nil {
		e = c.create(m.Entity)
	}
	if e.state == entityFailed && now < e.at {
		return protocol.CodeEntityFailed
	}
	if e.Waiting()+e.kept() >= c.cfg.Mailbox {
		if code := c.overfill(now, e, m, out); code != protocol.CodeOK {
			return code
		}
	}
	e.mailbox.push(m)
	c.advance(now, e, out)
	return protocol.CodeOK
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

// removeIdle removes the record of an entity unless it is needed: for an instance, for
// messages, for senders that wait, or for a failure that is to be remembered.
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

// begin hands the next message to the instance. Without a message the instance is stopped
// if that is wanted.
func (c *Cell) begin(now machine.Instant, e *Entity, out *Actions) {
	machine.Assert(!e.Ended(), "an instance begins nothing after its hosting has ended")
	for m := e.mailbox.pop(); m != nil; m = e.mailbox.pop() {
		if m.Expired(now) {
			c.refuse(m, protocol.CodeExpired, out)
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

// returned notes that e has returned from a call.
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

// backoff returns how long an entity rests after a number of failures in a row, at least
// one.
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

// rest fails the messages that wait for e, and those that come during the time d.
func (c *Cell) rest(now machine.Instant, e *Entity, d time.Duration, why string, out *Actions) {
	e.state, e.at, e.Value = entityFailed, now.Add(d), reason(why)
	for m := e.mailbox.pop(); m != nil; m = e.mailbox.pop() {
		c.refuse(m, protocol.CodeEntityFailed, out)
	}
	c.relieve(e, out)
}

// gone goes on after the instance of e has ended: the record is removed, or a new instance
// is started for messages that wait.
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
// since the node's clock showed no standing. The processing begins after [protocol.Unsuspend] or,
// should the clock show standing again, after a short time.
func (c *Cell) Postpone(now machine.Instant, e *Entity, out *Actions) {
	if e.current == nil {
		return
	}
	m := e.current
	e.current = nil
	switch {
	case e.released:
		out.free(m) // The sender was told when the entity was left behind.
		c.stop(now, e, out)
	case c.abandoned || e.stale:
		// The hosting has ended since OpRun: no standing brings the message to its entity.
		c.refuse(m, protocol.CodeNotDelivered, out)
		c.stop(now, e, out)
	default:
		e.mailbox.pushFront(m)
		c.retrySoon(now, out)
	}
}

// Lapse gives back the message of an OpRun whose deadline had passed before its
// processing began. The next message may begin at once.
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
	c.refuse(m, protocol.CodeExpired, out)
	c.advance(now, e, out)
}

// postponeRetry is the time after which the clock is asked for standing again.
const postponeRetry = 50 * time.Millisecond

func (c *Cell) retrySoon(now machine.Instant, out *Actions) {
	c.postponed, c.waking = true, true
	out.add(Action{Op: OpWake, At: now.Add(postponeRetry)})
}

// Done says that e has processed its message. The next message may begin at once.
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
// comes later starts a new instance; no message is lost.
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

// Hold says whether e must not be stopped for being idle, because it has timers, which
// would end with the instance.
func (c *Cell) Hold(e *Entity, hold bool) { e.held = hold && !e.Ended() }

// Remind puts a message of an instance to itself into its mailbox. It does nothing
// when the instance is ending, whose timers end with it. Such messages are taken by a full
// mailbox too, since their number is bounded by the number of timers.
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
		c.counts.Passivated++ // The instance stops, has not failed, and its shard stays.
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

// restart begins the messages, replies and stops that waited for the node's standing.
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
