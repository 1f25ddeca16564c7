// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"math"
	"slices"

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
// message of the earlier one is marked either as having left or as not handed over. Messages
// that were handed over together have one place, and most of a window was handed over in few
// goes, so that places are kept for runs of messages.

// hasLeft is the place of a message of which a copy may have left this node, and handing of one
// that the runtime is about to append to a lane, see [Outbound.Handing].
const (
	hasLeft = math.MaxUint64
	handing = hasLeft - 1
)

// places says for messages of the window, by their numbers, where on its passage each was first
// handed over, plus one; 0: nowhere; [hasLeft]: no matter where, since a copy may have left this
// node. Runs of messages with one place stand in the order of their numbers. The messages behind
// the last run have the place 0, which the last run has not. The zero value has the place 0 for
// all.
type places []placeRun

// placeRun is a run of messages with one place, which begins where the run before ends.
type placeRun struct {
	end   uint64 // The number behind the last message of the run.
	place uint64
}

// maxPlacesKept is for how many runs an empty window keeps memory.
const maxPlacesKept = 8

// at returns the place of a message.
func (p places) at(seq uint64) uint64 {
	for _, r := range p {
		if seq < r.end {
			return r.place
		}
	}
	return 0
}

// end returns the number behind the last message that has a place; 0 if none has.
func (p places) end() uint64 {
	if len(p) == 0 {
		return 0
	}
	return p[len(p)-1].end
}

// cut forgets the messages below a number.
func (p *places) cut(below uint64) {
	n := 0
	for n < len(*p) && (*p)[n].end <= below {
		n++
	}
	if *p = slices.Delete(*p, 0, n); len(*p) == 0 && cap(*p) > maxPlacesKept {
		*p = nil
	}
}

// change gives the messages from first on, up to and without unsent, the places that f returns
// for their present ones.
func (p *places) change(first, unsent uint64, f func(place uint64) uint64) {
	if first >= unsent {
		return
	}
	from := p.split(first)
	to := p.split(unsent)
	for i := from; i < to; i++ {
		(*p)[i].place = f((*p)[i].place)
	}
	p.join(from)
}

// split has a run begin with a message, and returns the index of that run. Behind the last run
// one of the place 0 is made, up to the message.
func (p *places) split(seq uint64) int {
	for i, r := range *p {
		switch {
		case seq < r.end && (i == 0 || (*p)[i-1].end < seq):
			*p = slices.Insert(*p, i, placeRun{seq, r.place})
			return i + 1
		case seq < r.end:
			return i
		}
	}
	if n := len(*p); n == 0 || (*p)[n-1].end < seq {
		*p = append(*p, placeRun{seq, 0})
	}
	return len(*p)
}

// join makes one of neighbours with one place, from the run before an index on, and drops runs
// at the end that say nothing.
func (p *places) join(from int) {
	kept := (*p)[:max(from-1, 0)]
	for _, r := range (*p)[len(kept):] {
		if n := len(kept); n > 0 && kept[n-1].place == r.place {
			kept[n-1].end = r.end
		} else {
			kept = append(kept, r)
		}
	}
	if n := len(kept); n > 0 && kept[n-1].place == 0 {
		kept = kept[:n-1]
	}
	*p = kept
}

// PendingAppend is a part of the window that the runtime has copied, and is about to append to a
// lane together with messages of other cells, without mu of its slot held. The methods belong to
// whoever has the cell; one of [PendingAppend.Placed], [PendingAppend.Strayed] and [PendingAppend.TakenBack] is
// called once. The zero value has no messages.
type PendingAppend struct {
	of            *origin
	base          protocol.Epoch
	first, unsent uint64 // The numbers of the first message and of the one behind the last.
}

// handOver does the work of [Outbound.Handing].
func (o *origin) handOver(first, unsent uint64) PendingAppend {
	o.handed(first, unsent, handing-1)
	return PendingAppend{of: o, base: o.place.baseEpoch(), first: first, unsent: unsent}
}

// Empty reports whether nothing is handed over.
func (h *PendingAppend) Empty() bool { return h.of == nil }

// Placed says that the messages are at a place of the present passage. A message may have been in
// a passage before, of which the cell has heard meanwhile that it has lost the message: its
// place is then 0, and the one of the handover counts.
func (h *PendingAppend) Placed(place uint64) {
	h.settle(func(old uint64) uint64 {
		if old == handing || old == 0 {
			return place + 1
		}
		return old
	})
}

// Strayed says that the messages are in a passage that the cell does not use any more. That
// counts for a message with a place in the present passage too: the passage may lose it, and the
// other one not.
func (h *PendingAppend) Strayed() {
	h.settle(func(uint64) uint64 { return hasLeft })
}

// TakenBack says that the lane did not take the messages. They are transmitted by the next
// [Cell.Flush] or [Cell.Tick], or to another home.
func (h *PendingAppend) TakenBack() {
	h.settle(func(old uint64) uint64 {
		if old == handing {
			return 0
		}
		return old
	})
	if first, unsent := h.remaining(); first < unsent && (h.of.cursor == 0 || h.of.cursor > first) {
		h.of.unsent(first)
	}
}

// settle gives the messages the places that f returns for their present ones.
func (h *PendingAppend) settle(f func(place uint64) uint64) {
	first, unsent := h.remaining()
	h.of.places.change(first, unsent, f)
}

// remaining returns the numbers of the first of the messages that is still in the window, and of
// the one behind the last; the former is not less than the latter if there is none.
// Acknowledgements may have come meanwhile, and a new home or base.
func (h *PendingAppend) remaining() (first, unsent uint64) {
	if h.of.place.baseEpoch() != h.base {
		return 0, 0
	}
	return max(h.first, h.of.window.First()), min(h.unsent, h.of.window.Next())
}

// handed records at which place of the present passage the messages from first on, up to and without
// unsent, stand; a message that has a place keeps it.
func (o *origin) handed(first, unsent, place uint64) {
	o.places.change(max(first, o.window.First()), unsent, func(old uint64) uint64 {
		if old == 0 {
			return place + 1
		}
		return old
	})
}

// leftBelow does the work of [Outbound.Written].
func (o *origin) leftBelow(below uint64) { o.written = below }

// rerouted does the work of [Outbound.Rerouted].
func (o *origin) rerouted(below uint64, over bool) {
	o.written = below
	o.places.change(o.window.First(), o.window.Next(), func(old uint64) uint64 {
		switch {
		case old == 0 || old == handing:
			return old
		case o.left(old) || !over:
			return hasLeft
		default:
			return 0
		}
	})
	o.written = 0
}

// left reports whether a copy of a message with a place may have left this node.
func (o *origin) left(place uint64) bool {
	return place >= handing || place != 0 && place-1 < o.written
}
