// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"math"

	"github.com/quorate/quorate/sharding/internal/protocol"
)

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

// hasLeft is the place of a message of which a copy may have left this node, and handing of one
// that the runtime is about to append to a lane, see [Sent.Handing].
const (
	hasLeft = math.MaxUint64
	handing = hasLeft - 1
)

// Handover is a part of the window that the runtime has encoded, and is about to append to a
// lane together with messages of other cells, without this cell in hand. The methods belong to
// whoever has the cell; one of [Handover.Placed], [Handover.Strayed] and [Handover.TakenBack] is
// called once. The zero value has no messages.
type Handover struct {
	of          *origin
	base        protocol.Epoch
	m           *Message // The first message, to be used only if the window still has it.
	first, last uint64   // The numbers of the messages.
}

// handOver does the work of [Sent.Handing].
func (o *origin) handOver(m, unsent *Message) Handover {
	h := Handover{of: o, base: m.Base, m: m, first: m.Seq}
	for ; m != unsent; m = m.next {
		h.last = m.Seq
		if m.place == 0 {
			m.place = handing
		}
	}
	return h
}

// Empty reports whether nothing is handed over.
func (h *Handover) Empty() bool { return h.of == nil }

// Placed says that the messages are at a place of the present passage.
func (h *Handover) Placed(place uint64) { h.settle(place + 1) }

// Strayed says that the messages are in a passage that the cell does not use any more.
func (h *Handover) Strayed() { h.settle(hasLeft) }

// TakenBack says that the lane did not take the messages. They are transmitted by the next
// [Cell.Flush] or [Cell.Tick], or to another home.
func (h *Handover) TakenBack() {
	h.settle(0)
	if m := h.remaining(); m != nil && (h.of.cursor == nil || h.of.cursor.Seq > m.Seq) {
		h.of.unsent(m)
	}
}

// settle gives the messages their place.
func (h *Handover) settle(place uint64) {
	for m := h.remaining(); m != nil && m.Seq <= h.last; m = m.next {
		if m.place == handing {
			m.place = place
		}
	}
}

// remaining returns the first of the messages that is still in the window, nil if there is none.
// Acknowledgements may have come meanwhile, and a new home or base.
func (h *Handover) remaining() *Message {
	head := h.of.window.head
	switch {
	case head == nil || head.Base != h.base || head.Seq > h.last:
		return nil
	case head.Seq > h.first:
		return head
	default:
		return h.m
	}
}

// handed does the work of [Sent.Handed].
func (o *origin) handed(m, unsent *Message, place uint64) {
	for ; m != unsent; m = m.next {
		if m.place == 0 {
			m.place = place + 1
		}
	}
}

// leftBelow does the work of [Sent.Written].
func (o *origin) leftBelow(below uint64) { o.written = below }

// rerouted does the work of [Sent.Rerouted].
func (o *origin) rerouted(below uint64, over bool) {
	o.written = below
	for m := o.window.head; m != nil; m = m.next {
		switch {
		case m.place == 0 || m.place == handing:
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
	return m.place >= handing || m.place != 0 && m.place-1 < o.written
}
