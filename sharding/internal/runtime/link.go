// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"errors"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/wire"
	"github.com/quorate/quorate/transport"
)

// The way of a cell's messages into a lane: append has messages of one cell encoded into the lane,
// goes and collect ask whether they would leave at once, and put the slot in line if not. When the
// lane calls, drain transmits what one cell has collected; encode, handOver and settle are the part
// of the slot in a batch, see batch.go.

// link is the way from a cell to its shard's home. It keeps the lane, the encoder and the
// functions that every message needs, so that none of them is made for each message.
type link struct {
	peer       *peer             // The node to which the messages went last; nil before the first message.
	collecting bool              // The cell collects messages until the lane calls: the slot is in line.
	passage    transport.Passage // The passage that took messages of the window last; nil before the first message.

	batch    *batch             // The batch that is being filled with mu held; else nil.
	handover cell.PendingAppend // What the batch has of the cell.

	encoder  wire.Encoder
	outgoing cell.Transmission       // Of the present append: the messages of the cell.
	next     uint64                  // Of the present append: the number of the first message to encode.
	limit    int                     // Of the present append: how many messages may be encoded.
	unsent   uint64                  // Of the present append: the number of the first message that encode left out.
	now      machine.Instant         // Of the present append: when it began.
	encode   func(dst []byte) []byte // Encodes up to limit messages from next on; made once, for all appends.
}

// appendResult says at which place of which passage messages were appended, and the number of the
// first that was not.
type appendResult struct {
	passage transport.Passage
	place   uint64
	unsent  uint64
}

// maxEnvelope bounds the messages of one envelope.
const maxEnvelope = 256

// append appends the messages of a cell from a number on, up to limit of them, to the lane to a
// node. The caller holds mu of the slot.
func (l *link) append(n *Node, to gossip.NodeID, o cell.Transmission, first uint64, limit int) (appendResult, error) {
	if l.encode == nil {
		l.encode = func(dst []byte) []byte {
			dst, l.unsent = l.encoder.Run(dst, &l.outgoing, l.next, l.limit, l.now)
			return dst
		}
	}
	l.towards(n, to)
	l.outgoing, l.next, l.limit, l.now = o, first, limit, n.Ports.Clock.Instant()
	l.encoder.There = n.clocks.at(to, l.now)
	passage, place, err := l.peer.lane.Track(protocol.MessageService, l.encode)
	l.outgoing = cell.Transmission{}
	return appendResult{passage, place, l.unsent}, err
}

// forward appends a message of another origin to the lane to a node. When the lane is full the
// message is lost here: its origin sends it again. The caller holds mu of the slot.
func (l *link) forward(n *Node, to gossip.NodeID, m *cell.Message) {
	l.towards(n, to)
	now := n.Ports.Clock.Instant()
	l.encoder.There = n.clocks.at(to, now)
	_, _, _ = l.peer.lane.Track(protocol.MessageService, func(dst []byte) []byte { return l.encoder.Message(dst, m, now) })
}

// towards makes the lane to a node the link's lane.
func (l *link) towards(n *Node, to gossip.NodeID) {
	if !l.peer.keeps(to) {
		// The lane to the former home may call for the collected messages much later, or
		// never, if that home is gone.
		l.peer, l.collecting = n.peer(to), false
	}
}

// goes reports whether messages that are appended to the lane to a node would leave at
// once. If not, the lane calls when they would: until then they stay with the cell, which can
// take them back.
func (l *link) goes(sl *Slot, to gossip.NodeID) bool {
	l.towards(sl.region.node, to)
	l.deferToLane(sl)
	return !l.collecting
}

// deferToLane puts the slot into the line for the next batch of the lane, unless an append
// would leave at once. Afterwards collecting says whether the lane will call.
func (l *link) deferToLane(sl *Slot) {
	if !l.collecting {
		l.collecting = l.peer.wait(sl)
	}
}

// collect has the cell keep the messages that it accepts, as long as its lane has enough
// to do: they are transmitted together when the lane takes its next batch.
func (sl *Slot) collect() {
	l := &sl.link
	if !l.peer.keeps(sl.cell.Home()) {
		return // The first message to a home goes at once.
	}
	if l.deferToLane(sl); l.collecting {
		sl.cell.Collect()
	}
}

// drain transmits the messages that the cell has collected for a peer.
func (sl *Slot) drain(p *peer, now machine.Instant) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.link.peer == p {
		sl.link.collecting = false
		sl.goOn(now)
	}
}

// goOn transmits what the cell has to transmit.
func (sl *Slot) goOn(now machine.Instant) {
	sl.cell.Flush(now, sl.cell.Home(), &sl.out)
	sl.carry(nil)
}

// encode puts the messages that the cell has collected for a peer into the batch of the peer.
// Until settle ends that, the slot goes on collecting. False: the slot does not take part.
func (sl *Slot) encode(p *peer) (h cell.PendingAppend, ok bool) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	switch {
	case sl.link.peer != p || !sl.link.collecting:
		return h, false
	case sl.cell.Home() != p.node:
		sl.link.collecting = false
		sl.goOn(p.batch.now)
		return h, false
	}
	sl.link.batch = &p.batch
	sl.goOn(p.batch.now)
	sl.link.batch = nil
	h, sl.link.handover = sl.link.handover, cell.PendingAppend{}
	return h, true
}

// handOver puts messages from a number on into the batch that is being filled. What does not fit
// waits until settle.
func (l *link) handOver(c *cell.Cell, first uint64) {
	unsent := l.batch.take(&l.encoder, c.Outbound().Transmission(), first)
	if unsent != first {
		l.handover = c.Outbound().Handing(first, unsent)
	}
	if l.batch.full {
		c.Outbound().Unsent(unsent)
	}
}

// reroute tells the cell that its next messages take another passage, and how far the
// passage that they took so far has come.
func (l *link) reroute(c *cell.Cell, next transport.Passage) {
	if old := l.passage; old != nil {
		c.Outbound().Rerouted(old.Written())
	}
	l.passage = next
}

// written tells the cell how far the passage that its messages take has come.
func (l *link) written(c *cell.Cell) {
	if l.passage != nil {
		below, _ := l.passage.Written()
		c.Outbound().Written(below)
	}
}

// settle says to the cell where the messages of a handover to a peer are, and transmits what
// the cell has collected since. With an error the lane did not take them.
func (sl *Slot) settle(p *peer, h *cell.PendingAppend, at appendResult, err error) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	here := sl.link.peer == p
	switch {
	case h.Empty():
	case err != nil:
		h.TakenBack()
		sl.link.encoder.Forget()
	case here:
		if at.passage != sl.link.passage {
			sl.link.reroute(sl.cell, at.passage)
		}
		h.Placed(at.place)
	default:
		h.Strayed()
	}
	if !here {
		return
	}
	sl.link.collecting = false
	if err == nil || errors.Is(err, transport.ErrTooLarge) {
		sl.goOn(p.batch.now)
	}
}
