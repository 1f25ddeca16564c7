// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/window"
)

// Outbound has the methods about the messages of a cell that go to a lane: what there is to transmit, and how far
// that has come.
type Outbound struct{ own *origin }

// Outbound returns the messages that the runtime is asked to transmit.
func (c *Cell) Outbound() Outbound { return Outbound{&c.own} }

// Transmission is what a cell has to transmit: messages of one stream, by their numbers.
type Transmission struct {
	Kind        string
	Shard       protocol.ShardID
	Origin      gossip.NodeID
	Base, Route protocol.Epoch
	Window      *window.Window
}

// Transmission returns what the cell has to transmit. The epochs are valid until the next call of the
// cell.
func (s Outbound) Transmission() Transmission {
	o := s.own
	return Transmission{o.cfg.Kind, o.cfg.Shard, o.cfg.Self, o.place.baseEpoch(), o.place.mapEpoch(), &o.window}
}

// Handed says that the messages of an OpTransmit from number first on, up to and without unsent,
// are at a place of the present passage. When a message was handed over several times, its
// first place counts, since that leaves first.
func (s Outbound) Handed(first, unsent, place uint64) {
	s.own.handed(first, unsent, place)
}

// Handing says that the messages of an OpTransmit from number first on, up to and without unsent,
// are about to be appended to a lane. They count as having left until a method of the result says
// what became of them; the cell may be called in between, and learn of another home.
func (s Outbound) Handing(first, unsent uint64) PendingAppend { return s.own.handOver(first, unsent) }

// Written says that messages at places under below of the present passage may have left.
// The runtime calls Written before it applies an input by which the streams may begin anew:
// messages that have not left by then are sent to the new host, and all others end with
// [protocol.CodeUnknownOutcome].
func (s Outbound) Written(below uint64) {
	s.own.leftBelow(below)
}

// Rerouted says that messages which are handed over from now on take another passage. Of
// the passage before, messages at places under below may have left; over says that no
// further message will leave by it, so that the others were never sent.
func (s Outbound) Rerouted(below uint64, over bool) {
	s.own.rerouted(below, over)
}

// Unsent says that the message with a number, of an OpTransmit, could not be appended to its lane,
// nor any message that follows it. They are transmitted by the next [Cell.Flush] or [Cell.Tick].
func (s Outbound) Unsent(seq uint64) {
	s.own.unsent(seq)
}

// Strip has the message with a number travel with flags in the place of its payload, which no
// frame has room for. False: it does so already.
func (s Outbound) Strip(seq uint64, flags uint32, out *Actions) bool {
	spent := s.own.window.Strip(seq, flags)
	if spent == nil {
		return false
	}
	out.spent = append(out.spent, spent)
	return true
}
