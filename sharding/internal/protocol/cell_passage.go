// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import "math"

// A lane takes messages long before they leave: while a connection is dialled again
// they may wait for seconds. What a dead host cannot have had is not reported as
// unknown but sent to the next host, so a cell remembers where its messages are.
//
//	passage   [ written: may have left │ queued: has not left ]
//	                             Written ┘
//
// A passage is one queue of a lane, and places in it rise with the order of the
// messages. A cell knows the places of one passage, the present one; what it knew of
// an earlier one is settled when the next begins.

// hasLeft is the place of a message of which a copy may have left this node.
const hasLeft = math.MaxUint64

// Handed says that the messages of an OpTransmit from m on, up to rest, are at a place
// of the present passage. When one was handed over several times, the first place
// counts, since it leaves first.
func (c *Cell) Handed(m, rest *Message, place uint64) {
	for ; m != rest; m = m.next {
		if m.place == 0 {
			m.place = place + 1
		}
	}
}

// Written says that messages of the present passage at places below may have left.
// The runtime says so before it applies an input by which the streams may begin anew:
// those that have not left by then are sent to the new host, and all others end with
// [CodeUnknownOutcome].
func (c *Cell) Written(below uint64) { c.written = below }

// Rerouted says that what is handed over from now on takes another passage, and how
// far the one before had come. Over says that nothing will leave by that any more:
// what is in it was never sent then.
func (c *Cell) Rerouted(below uint64, over bool) {
	c.written = below
	for m := c.window.head; m != nil; m = m.next {
		switch {
		case m.place == 0:
		case c.left(m) || !over:
			m.place = hasLeft
		default:
			m.place = 0
		}
	}
	c.written = 0
}

// left reports whether a copy of m may have left this node.
func (c *Cell) left(m *Message) bool {
	return m.place == hasLeft || m.place != 0 && m.place-1 < c.written
}
