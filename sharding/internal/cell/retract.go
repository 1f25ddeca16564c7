// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell

import "github.com/quorate/quorate/machine"

// An ask that ends before its reply takes its message back, if that is still possible:
// the message was not delivered then, never will be, and may be sent again.
//
//	accepted ──> in the window ──handed over──> in a lane ──written──> at the host
//	   │               │                            └──────────┬──────────┘
//	   │               └── Retract: true                 Retract: false
//	   └─────> in a mailbox of this node ──OpRun──> processed
//	                   └── Retract: true            Retract: false
//
// The number of a message is final once the message is handed over. When a message is
// taken out of the window, the messages behind it have mostly not been handed over either:
// they move up by one number, and the host finds no gap. Where one of them has been, which
// takes a lane that was given up between two messages of one transmission, the message
// stays.

// Retract takes back a message of this node that [Cell.Accept] has accepted and for
// whose reply nobody waits any more. If it reports true, the message belongs to the
// caller and has not been, nor will be, processed. Else it stays with the cell, and
// nobody here knows what becomes of it. The message must not have been freed.
func (c *Cell) Retract(now machine.Instant, m *Message, out *Actions) bool {
	if c.retractSent(m) {
		c.callWindow(out)
		return true
	}
	e := c.entity(m.Entity)
	if e == nil || !e.mailbox.remove(m) {
		return false
	}
	c.relieve(e, out)
	c.removeIdle(e)
	if c.entities[e.id] == e {
		c.advance(now, e, out)
	}
	c.checkHalted(now, out)
	return true
}

// retractSent takes m out of the window, unless it, or one behind it, was handed over.
func (c *Cell) retractSent(m *Message) bool {
	for b := m; b != nil; b = b.next {
		if b.place != 0 {
			return false
		}
	}
	next := m.next
	if !c.window.remove(m) {
		return false
	}
	if c.cursor == m {
		c.cursor = next
	}
	for ; next != nil; next = next.next {
		next.Seq--
	}
	c.next--
	return true
}

// remove takes m out of the queue. It reports whether it was there.
func (q *queue) remove(m *Message) bool {
	var before *Message
	for x := q.head; x != m; x = x.next {
		if x == nil {
			return false
		}
		before = x
	}
	if before == nil {
		q.head = m.next
	} else {
		before.next = m.next
	}
	if q.tail == m {
		q.tail = before
	}
	m.next = nil
	q.n--
	q.bytes -= m.cost()
	return true
}
