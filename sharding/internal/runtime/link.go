// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package runtime

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
	lane       Lane
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

// append appends m, and up to limit-1 of the messages that follow m in the window of the
// cell, to the lane to a node. The caller holds the slot.
func (l *link) append(n *Node, to gossip.NodeID, m *cell.Message, limit int) (sent, error) {
	if l.encode == nil {
		l.encode = func(dst []byte) []byte {
			dst, l.unsent = l.encoder.Run(dst, l.next, l.limit, l.now)
			return dst
		}
	}
	l.towards(n, to)
	l.next, l.limit, l.now, l.encoder.There = m, limit, n.Ports.Clock.Instant(), 0
	if limit > 1 || m.Deadline != 0 {
		l.encoder.There = n.clocks.at(to, l.now)
	}
	passage, place, err := l.lane.Track(protocol.MessageService, l.encode)
	at := sent{passage, place, l.unsent}
	l.next, l.unsent = nil, nil
	return at, err
}

// towards makes the lane to a node the link's lane.
func (l *link) towards(n *Node, to gossip.NodeID) {
	if l.lane == nil || l.to != to {
		// The lane to the former home may call for the collected messages much later, or
		// never, if that home is gone.
		l.to, l.lane, l.collecting = to, n.Ports.Lane(to), false
	}
}

// goes reports whether messages that are appended to the lane to a node would leave at
// once. If not, the lane calls drain when they would: until then they stay with the cell,
// which can take them back.
func (sl *Slot) goes(to gossip.NodeID) bool {
	sl.link.towards(sl.region.node, to)
	sl.deferToLane()
	return !sl.link.collecting
}

// deferToLane has the lane call drain when the lane takes its next batch, unless an
// append would leave at once. Afterwards link.collecting says whether the lane will call.
func (sl *Slot) deferToLane() {
	l := &sl.link
	if l.collecting {
		return
	}
	if l.drain == nil {
		l.drain = sl.drain
	}
	l.collecting = l.lane.Defer(l.drain)
}

// collect has the cell keep the messages that it accepts, as long as its lane has enough
// to do: they are transmitted together when the lane takes its next batch.
func (sl *Slot) collect() {
	l := &sl.link
	if l.lane == nil || l.to != sl.cell.Home() {
		return // The first message to a home goes at once.
	}
	if sl.deferToLane(); l.collecting {
		sl.cell.Collect()
	}
}

// drain transmits the messages that the cell has collected. The lane calls it.
func (sl *Slot) drain() {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	sl.link.collecting = false
	sl.cell.Flush(sl.now(), sl.cell.Home(), &sl.out)
	sl.carry(nil)
}
