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

// handed does the work of [Cell.Handed].
func (o *origin) handed(m, unsent *Message, place uint64) {
	for ; m != unsent; m = m.next {
		if m.place == 0 {
			m.place = place + 1
		}
	}
}

// leftBelow does the work of [Cell.Written].
func (o *origin) leftBelow(below uint64) { o.written = below }

// rerouted does the work of [Cell.Rerouted].
func (o *origin) rerouted(below uint64, over bool) {
	o.written = below
	for m := o.window.head; m != nil; m = m.next {
		switch {
		case m.place == 0:
		case o.left(m) || !over:
			m.place = hasLeft
		default:
			m.place = 0
		}
	}
	o.written = 0
}

// left reports whether a copy of m may have left this node.
func (o *origin) left(m *Message) bool {
	return m.place == hasLeft || m.place != 0 && m.place-1 < o.written
}
