// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell

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

// retractSent takes m out of the window, unless it, or one behind it, was handed over.
func (o *origin) retractSent(m *Message) bool {
	for b := m; b != nil; b = b.next {
		if b.place != 0 {
			return false
		}
	}
	next := m.next
	if !o.window.remove(m) {
		return false
	}
	if o.cursor == m {
		o.cursor = next
	}
	for ; next != nil; next = next.next {
		next.Seq--
	}
	o.next--
	return true
}
