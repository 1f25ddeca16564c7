// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/binary"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// passage is one queue of the lane to a node.
type passage struct {
	next    uint64 // The place of the next message.
	written uint64 // Messages at places below this one have left.
	over    bool
	down    bool     // The connection is broken: messages that are handed over wait in frames.
	frames  []queued // The envelopes that have not left, from place written on.

	stalled  bool     // The link is cut: frames that have left do not arrive.
	standing [][]byte // The frames in a connection whose link is cut.
}

// queued is an envelope that has not left.
type queued struct {
	shard protocol.ShardID
	ids   []uint64 // The ids of the messages in the envelope.
	frame []byte
}

// laneDownMax is how long a connection may stay broken.
const laneDownMax = 2 * time.Second

// laneStallMax is how long a connection may stand still.
const laneStallMax = 3 * time.Second

// stays draws whether messages stay with their cell while the lane to a node has no
// connection. Mostly they do; some are handed over just as the connection breaks.
func (c *Cells) stays(to gossip.NodeID) bool {
	p := c.lanes[to]
	return p != nil && p.down && c.rand.IntN(4) > 0
}

// goOn ends the time for which a connection stood still.
func (c *Cells) goOn(to gossip.NodeID) {
	p := c.lanes[to]
	if p == nil || !p.stalled {
		return
	}
	p.stalled = false
	for _, b := range p.standing {
		c.frame(to, b)
	}
	p.standing = nil
}

// hand puts an envelope with messages of this node, from first up to rest, into the
// lane to their shard's home.
func (c *Cells) hand(shard protocol.ShardID, to gossip.NodeID, first, rest *cell.Message, frame []byte) {
	p := c.lanes[to]
	if p == nil {
		p = new(passage)
		c.lanes[to] = p
	}
	s := c.cells[shard]
	if old := c.through[shard]; old != p {
		if old != nil {
			s.Rerouted(old.written, old.over)
			c.stray(shard, old)
		}
		c.through[shard] = p
	}
	s.Handed(first, rest, p.next)
	p.next++
	q := queued{shard: shard, frame: frame}
	for m := first; m != rest; m = m.Next() {
		q.ids = append(q.ids, binary.BigEndian.Uint64(m.Payload))
	}
	if p.down || !c.ledger.lives(to) { // Without a node that answers the envelope waits for ever.
		p.down = true
		p.frames = append(p.frames, q)
	} else {
		p.written = p.next
		c.leaves(to, q)
	}
	if !p.stalled && c.rand.Float64() < c.behaviour.LaneStall {
		p.stalled = true
		c.out.Arm(stallTimer{to}, c.now.Add(time.Duration(c.rand.Int64N(int64(laneStallMax)))))
	}
	if !p.down && c.rand.Float64() < c.behaviour.LaneDown {
		p.down = true
		c.out.Arm(laneTimer{to}, c.now.Add(time.Duration(c.rand.Int64N(int64(laneDownMax)))))
	}
}

// stray notes the messages of a shard that wait in a passage which the shard does not use
// any more: they may leave at any time, and the cell does not hear of it.
func (c *Cells) stray(shard protocol.ShardID, p *passage) {
	if p.over {
		return
	}
	for _, q := range p.frames {
		if q.shard == shard {
			for _, id := range q.ids {
				c.ledger.messages[id].astray = true
			}
		}
	}
}

// leaves lets an envelope leave this node.
func (c *Cells) leaves(to gossip.NodeID, q queued) {
	for _, id := range q.ids {
		c.ledger.messages[id].left = true
	}
	c.frame(to, q.frame)
}

// mend ends the time for which a connection was broken: the connection is up again, or
// given up.
func (c *Cells) mend(to gossip.NodeID) {
	p := c.lanes[to]
	if !c.ledger.lives(to) {
		return
	}
	if c.rand.IntN(2) == 0 {
		for _, m := range p.frames {
			c.leaves(to, m)
		}
		p.written, p.frames, p.down = p.next, nil, false
		return
	}
	p.over, p.frames = true, nil
	delete(c.lanes, to)
	for _, s := range c.cells {
		s.Broken(to)
	}
	c.flush(to)
}

// flush lets all cells transmit the messages that wait for a node.
func (c *Cells) flush(to gossip.NodeID) {
	for i := range c.cells {
		c.cells[i].Flush(c.now, to, &c.acts)
		c.carry(protocol.ShardID(i))
	}
}
