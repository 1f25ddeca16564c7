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
//	OpRun ──> Mail ──> Ahead(n) ──> process Mail, Next, Next ... ──> Ran(k) ──> Done
//	                                                                         │
//	                                  what did not begin is back in the mailbox
//
// Only messages for whose reply nobody waits are handed out ahead, so that a reply
// never waits for the messages behind its own.

// Next returns the message behind m in a list of messages: one that [Instances.Ran] returned, or
// that of an [Action].
func (m *Message) Next() *Message { return m.next }

// Ahead hands out up to n further messages behind the present message of e. The runtime may
// read them until [Instances.Ran] takes them back; it begins none once the hosting has ended
// ([OpEnd]) or the clock shows no standing.
func (r Instances) Ahead(e *Entity, most int) AheadQueue {
	b := &e.mailbox
	if !e.atWork() || b.at(0).awaited() || r.place.isSuspended() || e.Ended() {
		return AheadQueue{}
	}
	for b.out < b.n && int(b.out) <= most && !b.at(b.out).awaited() {
		b.out++
	}
	return b.ahead()
}

// Ran says that e has processed its message and the first n messages that [Instances.Ahead]
// handed out. The last processed message becomes the one that [Instances.Done] is about. The
// other processed messages that were more than a value are returned as a list, which
// belongs to the caller. Messages that did not begin wait again, or are refused when the hosting has ended meanwhile.
func (r Instances) Ran(e *Entity, n int, out *Actions) (over *Message) {
	b := &e.mailbox
	machine.Assert(n == 0 || e.is(isReleased) || n < int(b.out), "an entity processes what it was given", "n", n, "given", b.out)
	if e.is(isReleased) {
		return nil // The senders were told when the entity was left behind, and the messages were given up.
	}
	r.counts.Handled += uint64(n)
	if n > 0 {
		e.failures = 0
	}
	for last := (*Message)(nil); n > 0; n-- {
		switch m := b.pop().Message(); {
		case m == nil:
		case last == nil:
			over, last = m, m
		default:
			last.next, last = m, m
		}
	}
	if e.is(isStale) || r.place.isOver() {
		for i := uint32(1); i < b.out; i++ {
			r.refuseMail(e, *b.at(i), protocol.CodeNotDelivered, out)
		}
		b.forget()
	}
	b.out = min(b.out, 1)
	return over
}

// Open returns the entity with an id if a message of this node can be put into its mailbox
// without any other step: the entity is hosted here, has a record, does not rest, and has
// room. Nil: [Cell.Accept] decides.
func (c *Cell) Open(id string) *Entity {
	if !c.Local() || c.place.isOver() {
		return nil
	}
	return c.entities.open(id)
}

// Join puts the value of a message of this node into the mailbox of an entity that
// [Cell.Open] has just returned. An ask has a correlation, and may have a deadline; both are 0
// for a tell. [OpArrived] or a reply follows when the message of an ask has come to its end. If
// Join reports true, the entity may have nothing else to do, and the caller calls [Cell.Rouse]
// next.
func (c *Cell) Join(e *Entity, value any, correlation uint64, deadline machine.Instant) (rouse bool) {
	c.counts.Sent++
	m := Mail{Value: value}
	if correlation != 0 {
		m = MailOfAsk(value, correlation, deadline)
	}
	e.mailbox.push(m)
	return !e.atWork()
}

// Rouse has e begin what waits for it, if it can.
func (c *Cell) Rouse(now machine.Instant, e *Entity, out *Actions) { c.entities.advance(now, e, out) }

// giveUpAhead tells the senders of the messages that were handed out to e by [Instances.Ahead]
// that the outcome is unknown. The runtime may still use these messages, so that they are
// left to the garbage collector, in their places, and no field is read that the runtime may
// write.
func (r *entityTable) giveUpAhead(e *Entity, out *Actions) {
	b := &e.mailbox
	for i := uint32(1); i < b.out; i++ {
		m := b.at(i).Message()
		if m == nil {
			r.refuseMail(e, *b.at(i), protocol.CodeUnknownOutcome, out)
			continue
		}
		doubtful := &Message{Kind: m.Kind, Shard: m.Shard, Entity: m.Entity, Origin: m.Origin, Base: m.Base, Seq: m.Seq}
		r.refuse(doubtful, protocol.CodeUnknownOutcome, out)
	}
	b.out = min(b.out, 1)
	b.n = b.out
}

// open returns the entity with an id if it has a record, does not rest, and has room.
func (r *entityTable) open(id string) *Entity {
	if e := r.entity(id); e != nil && e.state != entityFailed && !e.Ended() && !r.full(e) {
		return e
	}
	return nil
}
