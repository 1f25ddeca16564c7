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

// retractSent takes the message of an ask out of the window, unless it, or one behind it, was
// handed over.
func (o *origin) retractSent(correlation uint64, out *Actions) bool {
	seq, ok := o.window.Find(correlation, o.places.end())
	if !ok {
		return false
	}
	if spent := o.window.Remove(seq); spent != nil {
		out.spent = append(out.spent, spent)
	}
	switch {
	case o.cursor > seq:
		o.cursor--
	case o.cursor == o.window.Next():
		o.cursor = 0
	}
	return true
}

// Retract takes back the message of an ask of this node, to an entity, for whose reply nobody
// waits any more. If it reports true, the message has not been, nor will be, processed, and m,
// which is nil if the cell had its value or its bytes alone, belongs to the caller. Else the message
// stays where it is, and nobody here knows what becomes of it.
func (c *Cell) Retract(now machine.Instant, entity string, correlation uint64, out *Actions) (m *Message, back bool) {
	if c.own.retractSent(correlation, out) {
		c.own.callWindow(out)
		return nil, true
	}
	if m, back = c.entities.retract(now, entity, correlation, out); back {
		c.checkHalted(now, out)
	}
	return m, back
}
