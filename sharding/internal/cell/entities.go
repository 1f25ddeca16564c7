// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/passivation"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// The record of an entity and what the runtime may read of it; entitytable.go and life.go say
// how the record lives.

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
	epoch *protocol.Epoch // Shared by all entities that were started under this epoch; nil before the first start, see also remembrance.
	// Value is the instance, which only the runtime reads. The cell clears Value when the
	// instance is gone; for an entity that failed the cell keeps the reason there, and with
	// OpStart there may be the snapshot from which the instance is to be restored.
	Value any

	state    entityState
	flags    entityFlags
	failures uint8              // Failures in a row, without a success in between.
	slow     uint8              // In how many runs from now on the entity counts as slow, if all of them are short.
	handle   passivation.Handle // The place in the [Limiter]; 0 without one.
	// at is when the present state began; while active, when the present message
	// began or the last one ended; while failed, when the rest ends.
	at      machine.Instant
	mailbox mailbox    // With the message that is being processed, the first of it.
	rare    *rareState // Nil for most entities.

	prev, next *Entity
}

// entityFlags are the yes-or-no facts of an entity.
type entityFlags uint8

const (
	isPassivate entityFlags = 1 << iota // The instance is stopped once the mailbox is empty.
	isHeld                              // The instance is not stopped for being idle, nor to make room.
	isStale                             // The instance belongs to a hosting that has ended.
	isReleased                          // The entity was left behind: the cell's list and map do not have it any more.
	isDeferred                          // The stop of the instance waits for the node's standing.
	isIdled                             // The instance is passivated since it was idle.
	isEvicted                           // The instance is passivated to make room.
	isFresh                             // The instance has begun no message; that it was started counts as its use.

	// isForGood are two flags that exclude each other: together they say that the instance of an entity
	// which is remembered is stopped since the entity has asked for it, and that it is to be forgotten.
	isForGood = isIdled | isEvicted
)

func (e *Entity) is(f entityFlags) bool { return e.flags&f != 0 }
func (e *Entity) set(f entityFlags)     { e.flags |= f }
func (e *Entity) unset(f entityFlags)   { e.flags &^= f }

// rareState has the fields that few entities use. It is apart, so that the record of an idle entity, of which there may
// be a million, has one pointer for them.
type rareState struct {
	reply    *protocol.Reply // Waits for the node's standing; nil when there is none.
	to       gossip.NodeID   // The node to send the reply to.
	failure  *string         // Why the instance failed, while it is stopped for that; else nil.
	pressure *backpressure   // Nil while nobody waits for room in the mailbox.
	stuck    bool            // The entity was reported as stuck and has not returned.
}

// change applies f to the rare state of the entity, and drops it when it is zero.
func (e *Entity) change(f func(x *rareState)) {
	var x rareState
	if e.rare != nil {
		x = *e.rare
	}
	if f(&x); x == (rareState{}) {
		e.rare = nil
		return
	}
	e.rare = &x
}

// heldReply returns the reply that waits for the node's standing, and the node to send it to; nil
// when there is none.
func (e *Entity) heldReply() (*protocol.Reply, gossip.NodeID) {
	if e.rare == nil {
		return nil, gossip.NodeID{}
	}
	return e.rare.reply, e.rare.to
}

// Withholds reports whether a reply waits for the node's standing.
func (e *Entity) Withholds() bool { return e.rare != nil && e.rare.reply != nil }

// Cause returns why the instance is being passivated, if it is.
func (e *Entity) Cause() Cause {
	switch {
	case e.flags&isForGood == isForGood:
		return CauseAsked
	case e.is(isEvicted):
		return CauseLimit
	case e.is(isIdled):
		return CauseIdle
	default:
		return CauseAsked
	}
}

// withhold holds a reply back until the node's standing is proven.
func (e *Entity) withhold(reply *protocol.Reply, to gossip.NodeID) {
	e.change(func(x *rareState) { x.reply, x.to = reply, to })
}

// dropReply gives up the reply that waits for the node's standing, if there is one.
func (e *Entity) dropReply() {
	if e.Withholds() {
		e.change(func(x *rareState) { x.reply, x.to = nil, gossip.NodeID{} })
	}
}

// failure returns why the instance failed, while it is stopped for that; else nil.
func (e *Entity) failure() *string {
	if e.rare == nil {
		return nil
	}
	return e.rare.failure
}

// blame sets why the instance failed; nil: it has been stopped for that.
func (e *Entity) blame(why *string) { e.change(func(x *rareState) { x.failure = why }) }

// pressure returns who waits for room in the mailbox; nil while nobody does.
func (e *Entity) pressure() *backpressure {
	if e.rare == nil {
		return nil
	}
	return e.rare.pressure
}

// press sets who waits for room in the mailbox.
func (e *Entity) press(p *backpressure) { e.change(func(x *rareState) { x.pressure = p }) }

// stuck reports whether the entity was reported as stuck and has not returned.
func (e *Entity) stuck() bool { return e.rare != nil && e.rare.stuck }

// stick sets whether the entity was reported as stuck.
func (e *Entity) stick(stuck bool) { e.change(func(x *rareState) { x.stuck = stuck }) }

// slowRuns is in how many runs in a row an entity that has been slow must be quick to count as
// quick again: few enough that one delay, which may be that of the machine, is forgotten soon,
// and so many that an entity which now and then finds its answer in a cache does not change.
const slowRuns = 16

// Pace notes whether a run of the entity was long, and reports whether the entity counts as
// slow. The caller holds the cell.
func (e *Entity) Pace(long bool) (slow bool) {
	switch {
	case long:
		e.slow = slowRuns
	case e.slow > 0:
		e.slow--
	}
	return e.Slow()
}

// Slow reports whether one of the last runs of the entity was long. The caller holds the cell.
func (e *Entity) Slow() bool { return e.slow > 0 }

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

// Mail returns the message that is being processed, and an empty one if there is none. It
// belongs to the cell, in whose hands the mailbox is: the caller holds it.
func (e *Entity) Mail() Mail {
	if !e.atWork() {
		return Mail{}
	}
	return *e.mailbox.at(0)
}

// atWork reports whether a message is being processed.
func (e *Entity) atWork() bool { return e.mailbox.out > 0 }

// Waiting returns how many messages wait in the mailbox or were handed out by [Instances.Ahead].
func (e *Entity) Waiting() int { return int(e.mailbox.n - min(e.mailbox.out, 1)) }

// Idle reports whether the instance has no message to process, and since when.
func (e *Entity) Idle() (since machine.Instant, idle bool) {
	return e.at, e.state == entityActive && e.mailbox.n == 0
}

// Ended reports whether the hosting under which the instance was started has ended.
func (e *Entity) Ended() bool { return e.is(isStale) || e.is(isReleased) }

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

// Hold says whether e must not be stopped for being idle, because it has timers, which
// would end with the instance.
func (e *Entity) Hold(hold bool) {
	e.unset(isHeld)
	if hold && !e.Ended() {
		e.set(isHeld)
	}
}
