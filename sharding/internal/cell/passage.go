// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell

import "math"

// A lane takes messages long before they leave: while a connection is dialled again
// they may wait for seconds. Messages that a dead host cannot have got are not reported as
// unknown but sent to the next host, so a cell remembers where its messages are.
//
//	passage   [ written: may have left │ queued: has not left ]
//	                             Written ┘
//
// A passage is one queue of a lane, and places in it rise with the order of the
// messages. A cell knows the places in the present passage only: when the next begins, each
// message of the earlier one is marked either as having left or as not handed over.

// hasLeft is the place of a message of which a copy may have left this node.
const hasLeft = math.MaxUint64

// Handed says that the messages of an OpTransmit from m on, up to and without unsent, are
// at a place of the present passage. When a message was handed over several times, its
// first place counts, since that leaves first.
func (c *Cell) Handed(m, unsent *Message, place uint64) {
	for ; m != unsent; m = m.next {
		if m.place == 0 {
			m.place = place + 1
		}
	}
}

// Written says that messages at places under below of the present passage may have left.
// The runtime calls Written before it applies an input by which the streams may begin anew:
// messages that have not left by then are sent to the new host, and all others end with
// [protocol.CodeUnknownOutcome].
func (c *Cell) Written(below uint64) { c.written = below }

// Rerouted says that messages which are handed over from now on take another passage. Of
// the passage before, messages at places under below may have left; over says that no
// further message will leave by it, so that the others were never sent.
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
