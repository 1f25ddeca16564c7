// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"slices"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// A sender that finds no room waits in a line, first in, first out, and is called when
// there is room. Room is kept for the called sender, so that later senders cannot take it.
//
//	Accept ──no room──> in line ──OpOfferAgain, room is kept──> Accept again: Accepted
//	                       └─────────> Withdraw <──────────────┘
//
// There is a line for each full mailbox, for senders of this node; a line for the window;
// and a line for each entity elsewhere that takes no more at present, see [protocol.Flow]. Senders
// in a line of the last sort move to that of the window when the entity takes messages
// again.
//
// A line begins to move when half of the mailbox or window is free, and then moves as far
// as there is room, so that senders are called many at a time and not one for each message.

// line is where messages wait for room, in the order in which they came.
type line struct {
	first, last *waiter
	entity      *Entity // The entity to whose mailbox the line belongs; nil for other lines.
	kept        int     // The room that is kept for called senders: messages of a mailbox, or bytes of the window.
}

// waiter is the place of a message in a line.
type waiter struct {
	m          *Message
	line       *line
	prev, next *waiter
	cost       int  // The room that m needs.
	called     bool // The message has left the line, and room is kept for it.
}

func (l *line) add(t *waiter) {
	t.line, t.prev, t.next = l, l.last, nil
	if l.last == nil {
		l.first = t
	} else {
		l.last.next = t
	}
	l.last = t
}

func (l *line) remove(t *waiter) {
	if t.prev == nil {
		l.first = t.next
	} else {
		t.prev.next = t.next
	}
	if t.next == nil {
		l.last = t.prev
	} else {
		t.next.prev = t.prev
	}
	t.prev, t.next = nil, nil
}

// wait puts m at the end of a line.
func (l *line) wait(m *Message, cost int) {
	m.waiter = &waiter{m: m, cost: cost}
	l.add(m.waiter)
}

// call calls the first sender of the line, and keeps room for it.
func (l *line) call(out *Actions) {
	t := l.first
	l.remove(t)
	t.called = true
	l.kept += t.cost
	out.add(Action{Op: OpOfferAgain, Message: t.m})
}

// dismiss calls all senders of the line and keeps no room for them: each is admitted or put
// into a line anew.
func (l *line) dismiss(out *Actions) {
	for t := l.first; t != nil; t = l.first {
		l.remove(t)
		t.m.waiter = nil
		out.add(Action{Op: OpOfferAgain, Message: t.m})
	}
}

// leaveLine takes m out of its line. It returns the line that had kept room for m, nil if
// none had.
func (m *Message) leaveLine() *line {
	t := m.waiter
	if t == nil {
		return nil
	}
	m.waiter = nil
	if !t.called {
		t.line.remove(t)
		return nil
	}
	t.line.kept -= t.cost
	return t.line
}

// backpressure holds the senders for which a mailbox has no room. The entity of a mailbox that
// was not full has none.
type backpressure struct {
	line line      // The senders of this node.
	held []*heldUp // The other nodes that send, see flow.go.
}

// pressed returns the pressure on an entity, which it creates if there is none.
func (e *Entity) pressed() *backpressure {
	p := e.pressure()
	if p == nil {
		p = &backpressure{line: line{entity: e}}
		e.press(p)
	}
	return p
}

// kept is how many places of the mailbox are kept for senders that were called.
func (e *Entity) kept() int {
	if e.pressure() == nil {
		return 0
	}
	return e.pressure().line.kept
}

// full reports whether a new message finds no room: the mailbox is full, or others
// wait in line.
func (r *entityTable) full(e *Entity) bool {
	return e.Waiting()+e.kept() >= r.cfg.Mailbox || e.pressure() != nil && e.pressure().line.first != nil
}

// relieve calls senders when half of a mailbox is free.
func (r *entityTable) relieve(e *Entity, out *Actions) {
	p := e.pressure()
	if p == nil || e.Waiting()+p.line.kept > r.cfg.Mailbox/2 {
		return
	}
	r.letGo(e, out)
	for p.line.first != nil && e.Waiting()+p.line.kept < r.cfg.Mailbox {
		p.line.call(out)
	}
	if p.line.kept == 0 {
		e.press(nil)
	}
}

// disband ends the pressure on an entity whose hosting ends or is about to.
func (r *entityTable) disband(e *Entity, out *Actions) {
	p := e.pressure()
	if p == nil {
		return
	}
	r.letGo(e, out)
	p.line.dismiss(out)
	p.line.entity = nil
	e.press(nil)
}

// acceptHere puts a message of this node into a mailbox of this node. If a line has kept
// room for the message, right is that line; else nil.
func (r *entityTable) acceptHere(now machine.Instant, m *Message, right *line, out *Actions) Admission {
	e := r.entity(m.Entity)
	if e == nil {
		e = r.create(m.Entity)
	}
	switch {
	case e.state == entityFailed && now < e.at:
		return EntityFailing
	case e.pressure() != nil && right == &e.pressure().line: // Room was kept for the message.
	case r.full(e):
		e.pressed().line.wait(m, 1)
		return MailboxFull
	}
	m.Seq = 0
	r.counts.Sent++
	e.mailbox.push(MailOf(m.Value, m))
	r.advance(now, e, out)
	return Accepted
}

// overfill decides about a message of a stream that finds a mailbox full. Messages that
// were sent before their origin can have known are taken: at most a window of them. A second
// window is for holds that were lost; beyond that the origin does not obey, and its
// messages are refused.
func (r *entityTable) overfill(now machine.Instant, e *Entity, from gossip.NodeID, cost int, out *Actions) protocol.Code {
	if from == r.cfg.Self {
		return protocol.CodeOK // The message is from the window of this node, which is bounded.
	}
	p := e.pressed()
	at := slices.IndexFunc(p.held, func(h *heldUp) bool { return h.origin == from })
	if at < 0 {
		at = len(p.held)
		p.held = append(p.held, &heldUp{origin: from})
	}
	h := p.held[at]
	if h.bytes > 0 && h.bytes+cost > 2*r.cfg.WindowBytes {
		return protocol.CodeOverloaded
	}
	if h.bytes == 0 || h.bytes-h.then > r.cfg.WindowBytes/4 || now.Sub(h.told) >= holdRepeat {
		h.told, h.then = now, h.bytes
		r.place.flow(h.origin, e.id, protocol.FlowHold, out)
	}
	h.bytes += cost
	return protocol.CodeOK
}

// letGo tells the nodes that were held back to send on.
func (r *entityTable) letGo(e *Entity, out *Actions) {
	for _, h := range e.pressure().held {
		r.place.flow(h.origin, e.id, protocol.FlowOpen, out)
	}
	e.pressure().held = nil
}

// flowAsked answers an origin that is held back.
func (r *entityTable) flowAsked(now machine.Instant, from gossip.NodeID, entity string, out *Actions) {
	if !r.place.hosts() {
		return // The home has changed, and the origin will learn of it from the map.
	}
	if e := r.entity(entity); e != nil && e.pressure() != nil {
		for _, h := range e.pressure().held {
			if h.origin == from {
				h.told = now
				r.place.flow(from, entity, protocol.FlowHold, out)
				return
			}
		}
	}
	r.place.flow(from, entity, protocol.FlowOpen, out)
}
