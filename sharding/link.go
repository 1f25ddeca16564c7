// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/wire"
	"github.com/quorate/quorate/transport"
)

// link is the way from a cell to its shard's home. It keeps the lane, the encoder and the
// functions that every message needs, so that none of them is made for each message.
type link struct {
	to         gossip.NodeID
	lane       transport.Lane
	encoder    wire.Encoder
	next       *cell.Message           // Of the present append: the first message to encode.
	limit      int                     // Of the present append: how many messages may be encoded.
	unsent     *cell.Message           // Of the present append: the first message that encode left out.
	now        machine.Instant         // Of the present append: when it began.
	encode     func(dst []byte) []byte // Encodes up to limit messages from next on; made once, for all appends.
	drain      func()                  // Transmits the messages that the cell has collected.
	collecting bool                    // The cell collects messages until the lane calls drain.
	passage    transport.Passage       // The passage that took messages of the window last; nil before the first message.
}

// sent says at which place of which passage messages were appended, and which is the
// first that was not.
type sent struct {
	passage transport.Passage
	place   uint64
	unsent  *cell.Message
}

// envelopeMost bounds the messages of one envelope.
const envelopeMost = 256

// append appends m, and up to n-1 of the messages that follow m in the window of the cell,
// to the lane to a node. The caller holds the slot.
func (l *link) append(s *System, to gossip.NodeID, m *cell.Message, n int) (sent, error) {
	if l.encode == nil {
		l.encode = func(dst []byte) []byte {
			dst, l.unsent = l.encoder.Run(dst, l.next, l.limit, l.now)
			return dst
		}
	}
	l.towards(s, to)
	l.next, l.limit, l.now, l.encoder.There = m, n, s.clock.Instant(), 0
	if n > 1 || m.Deadline != 0 {
		l.encoder.There = s.clocks.at(to, l.now)
	}
	passage, place, err := l.lane.Track(protocol.MessageService, l.encode)
	at := sent{passage, place, l.unsent}
	l.next, l.unsent = nil, nil
	return at, err
}

// towards makes the lane to a node the link's lane.
func (l *link) towards(s *System, to gossip.NodeID) {
	if l.lane == nil || l.to != to {
		// The lane to the former home may call for the collected messages much later, or
		// never, if that home is gone.
		l.to, l.lane, l.collecting = to, s.node.Transport().Lane(to, machine.LaneMessage), false
	}
}

// goes reports whether messages that are appended to the lane to a node would leave at
// once. If not, the lane calls drain when they would: until then they stay with the cell,
// which can take them back. The caller holds the slot.
func (r *router) goes(sl *slot, to gossip.NodeID) bool {
	sl.link.towards(r.system, to)
	r.deferToLane(sl)
	return !sl.link.collecting
}

// deferToLane has the lane call drain when the lane takes its next batch, unless an
// append would leave at once. Afterwards link.collecting says whether the lane will call.
func (r *router) deferToLane(sl *slot) {
	l := &sl.link
	if l.collecting {
		return
	}
	if l.drain == nil {
		l.drain = func() { r.drain(sl) }
	}
	l.collecting = l.lane.Defer(l.drain)
}

// collect has the cell keep the messages that it accepts, as long as its lane has enough
// to do: they are transmitted together when the lane takes its next batch. The caller holds
// the slot.
func (r *router) collect(sl *slot) {
	l := &sl.link
	if l.lane == nil || l.to != sl.cell.Home() {
		return // The first message to a home goes at once.
	}
	if r.deferToLane(sl); l.collecting {
		sl.cell.Collect()
	}
}

// drain transmits the messages that a cell has collected, on a goroutine of its lane.
func (r *router) drain(sl *slot) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	sl.link.collecting = false
	sl.cell.Flush(r.system.clock.Instant(), sl.cell.Home(), &sl.out)
	r.carry(sl, nil)
}
