// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// A run is the present message of an entity and those that follow it, handed to the
// runtime together: the runtime has the entity process one after the other without
// coming back to the cell in between.
//
//	OpRun ──> Message ──> Ahead(n) ──> process Message, Next, Next ... ──> Ran(k) ──> Done
//	                                                                         │
//	                                  what did not begin is back in the mailbox
//
// Only messages for whose reply nobody waits are handed out ahead, so that a reply
// never waits for the messages behind its own.

// awaited reports whether a message may be handed out only by itself: somebody
// waits for the reply, or the message is the entity's own.
func (m *Message) awaited() bool { return m.Correlation != 0 || m.Deadline != 0 || m.Own }

// Bare reports whether m was neither in a stream nor encoded, and has only those fields
// set that every message of this node to an entity of the same shard sets.
func (m *Message) Bare() bool {
	return m.Seq == 0 && m.Correlation == 0 && m.Deadline == 0 && !m.Own && cap(m.Payload) == 0 && m.Value == nil && len(m.Trace) == 0
}

// Next returns the message behind m in a list of messages: one that [Cell.Ahead] or
// [Cell.Ran] returned, or that of an [Action].
func (m *Message) Next() *Message { return m.next }

// ahead does the work of [Cell.Ahead].
func (r *residents) ahead(e *Entity, n int) *Message {
	if e.current == nil || e.current.awaited() || r.place.isSuspended() || e.Ended() {
		return nil
	}
	for m := e.mailbox.head; m != nil && e.ahead.n < n && !m.awaited(); m = e.mailbox.head {
		e.ahead.push(e.mailbox.pop())
	}
	return e.ahead.head
}

// ran does the work of [Cell.Ran].
func (r *residents) ran(e *Entity, n int, out *Actions) (over *Message) {
	machine.Assert(n == 0 || e.released || n <= e.ahead.n, "an entity processes what it was given", "n", n, "given", e.ahead.n)
	if e.released {
		return nil // The senders were told when the entity was left behind, and the list was given up.
	}
	r.counts.Handled += uint64(n)
	if n > 0 {
		over, e.failures = e.current, 0
		for last := over; n > 0; n-- {
			e.current = e.ahead.pop()
			if n > 1 {
				last.next, last = e.current, e.current
			}
		}
	}
	if e.stale || r.place.isOver() {
		for m := e.ahead.pop(); m != nil; m = e.ahead.pop() {
			r.refuse(m, protocol.CodeNotDelivered, out)
		}
		return over
	}
	e.mailbox.prepend(&e.ahead)
	return over
}

// Busy returns the entity with an id if a message of this node can be put into its mailbox
// without any other step: the entity is hosted here, processes a message, and has room.
// Nil: [Cell.Accept] decides.
func (c *Cell) Busy(id string) *Entity {
	if !c.Local() || c.place.isOver() {
		return nil
	}
	return c.residents.busy(id)
}

// Join puts m into the mailbox of an entity that [Cell.Busy] has just returned. The
// cell owns m from now on, as after [Cell.Accept].
func (c *Cell) Join(e *Entity, m *Message) {
	c.residents.join(e, m)
}

// join does the work of [Cell.Join].
func (r *residents) join(e *Entity, m *Message) {
	r.counts.Sent++
	m.Origin, m.Seq = r.cfg.Self, 0
	e.mailbox.push(m)
}

// giveUpAhead tells the senders of the messages that were handed out to e by [Cell.Ahead]
// that the outcome is unknown. The runtime may still use these messages, so that they are
// left to the garbage collector, and no field is read that the runtime may write.
func (r *residents) giveUpAhead(e *Entity, out *Actions) {
	for m := e.ahead.head; m != nil; m = m.next {
		doubtful := &Message{Kind: m.Kind, Shard: m.Shard, Entity: m.Entity, Origin: m.Origin, Base: m.Base, Seq: m.Seq}
		r.refuse(doubtful, protocol.CodeUnknownOutcome, out)
	}
	e.ahead = queue{}
}

// busy returns the entity with an id if it processes a message, and has room for another.
func (r *residents) busy(id string) *Entity {
	if e := r.entity(id); e != nil && e.current != nil && !e.Ended() && !r.full(e) {
		return e
	}
	return nil
}
