// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/wire"
	"github.com/quorate/quorate/transport"
)

// The lanes of a simulated node. The runtime adds frames by Append and Track, and by Defer functions that are called
// when the lane takes its next batch: by drain, or by reconnect when a broken connection is up again or given up.

// lane is the lane to a node.
type lane struct {
	cells   *Cells
	to      gossip.NodeID
	passage *passage
	numbers wire.Numbers // The streams that were given numbers.

	calls    []func() // To be called when the lane takes its next batch.
	batching bool     // A batch is being filled.
	draining bool     // Calls are being called.

	stalled  bool     // The link is cut: frames that have left do not arrive.
	standing [][]byte // The frames in a connection whose link is cut.
}

// passage is one queue of a lane.
type passage struct {
	next    uint64 // The place of the next message.
	written uint64 // Messages at places below this one have left.
	over    bool
	down    bool             // The connection is broken: what is appended waits in frames.
	frames  []queuedEnvelope // The envelopes that have not left, from place written on.
}

// Written returns up to which envelope the passage has sent, and whether it has ended.
func (p *passage) Written() (below uint64, over bool) { return p.written, p.over }

// queuedEnvelope is an envelope that was not sent yet.
type queuedEnvelope struct {
	ids   []uint64     // The ids of the messages in the envelope.
	own   []ownMessage // Those of this node.
	frame []byte
}

// ownMessage is a message of this node in an envelope.
type ownMessage struct {
	shard protocol.ShardID
	id    uint64
}

// maxLaneDown is how long a connection may stay broken.
const maxLaneDown = 2 * time.Second

// maxLaneStall is how long a connection may stand still.
const maxLaneStall = 3 * time.Second

// maxBatch is how long a batch may be filled.
const maxBatch = 10 * time.Millisecond

// lane returns the lane to a node.
func (c *Cells) lane(to gossip.NodeID) *lane {
	l := c.lanes[to]
	if l == nil {
		l = &lane{cells: c, to: to, passage: new(passage)}
		c.lanes[to] = l
		l.begin()
	}
	return l
}

// handshakeFor is how long the first connection of a session takes.
const handshakeFor = 5 * time.Millisecond

// begin begins a session after a moment, unless the connection breaks before: then reconnect does.
func (l *lane) begin() {
	p := l.passage
	l.cells.after(handshakeFor, func() {
		if l.passage == p && !p.down && l.cells.ledger.lives(l.to) {
			l.cells.node.Connected(l.to, l.version())
		}
	})
}

// version returns the version of the protocol that two nodes speak: three nodes of eight are of
// earlier releases, of which one knows no batches, one no numbers, and one no replies that travel together.
func (l *lane) version() uint16 {
	return min(versionOf(l.to), versionOf(l.cells.self))
}

func versionOf(node gossip.NodeID) uint16 {
	switch node.UID % 8 {
	case 3:
		return protocol.VersionFrames - 1
	case 7:
		return protocol.VersionNumbers - 1
	case 5:
		return protocol.VersionReplies - 1
	default:
		return protocol.VersionReplies
	}
}

// full draws whether the lane takes another envelope of this outbox.
func (l *lane) full() bool {
	c := l.cells
	if !c.refused[l.to] && c.rand.Float64() < c.behaviour.LaneFull {
		c.refused[l.to] = true
	}
	return c.refused[l.to]
}

// awaitRoom has the cells flushed when a lane has room again.
func (c *Cells) awaitRoom(to gossip.NodeID) {
	if c.rooms[to] {
		return
	}
	c.rooms[to] = true
	c.after(10*time.Millisecond, func() {
		delete(c.rooms, to)
		c.node.Flush(to)
	})
}

// Append puts a frame that carries no messages into the lane.
func (l *lane) Append(_ transport.Service, encode func(dst []byte) []byte) error {
	if l.full() {
		return transport.ErrFull
	}
	frame := encode(nil)
	if item, _ := wire.DecodeItem(frame, l.cells.now); item != nil {
		if _, ok := item.(*wire.Replies); ok {
			l.cells.ledger.counts.Gathered++
		}
	}
	l.put(queuedEnvelope{frame: frame})
	return nil
}

// Track puts an envelope with messages into the lane. Now and then it takes an envelope with
// one message only.
func (l *lane) Track(_ transport.Service, encode func(dst []byte) []byte) (transport.Passage, uint64, error) {
	c := l.cells
	if l.full() {
		return nil, 0, transport.ErrFull
	}
	q := l.open(encode(nil))
	if len(q.ids) > 1 && c.rand.IntN(10) == 0 {
		return nil, 0, transport.ErrTooLarge
	}
	for _, id := range q.ids {
		c.ledger.handed(id, c.node.ClockOf(l.to, c.now) != 0)
	}
	p := l.passage
	for _, m := range q.own {
		if old := c.through[m.shard]; old != p {
			if old != nil {
				c.noteUnreachable(m.shard, old)
			}
			c.through[m.shard] = p
		}
	}
	place := p.next
	p.next++
	l.put(q)
	if !l.stalled && c.rand.Float64() < c.behaviour.LaneStall {
		l.stalled = true
		c.after(time.Duration(c.rand.Int64N(int64(maxLaneStall))), l.resume)
	}
	if !p.down && c.rand.Float64() < c.behaviour.LaneDown {
		p.down = true
		c.after(time.Duration(c.rand.Int64N(int64(maxLaneDown))), l.reconnect)
	}
	return p, place, nil
}

// open returns an envelope with the messages that are in it.
func (l *lane) open(frame []byte) queuedEnvelope {
	c, q := l.cells, queuedEnvelope{frame: frame}
	note := func(m *cell.Message) {
		id, _ := idOf(m)
		q.ids = append(q.ids, id)
		if m.Origin == c.self {
			q.own = append(q.own, ownMessage{m.Shard, id})
		}
	}
	run := func(r *wire.Run) error { return r.Messages(c.now, cell.NewMessage, note) }
	item, err := wire.DecodeItem(frame, c.now)
	switch item := item.(type) {
	case *cell.Message:
		note(item)
	case *wire.Run:
		err = run(item)
	case *wire.Batch:
		c.ledger.counts.Batches++
		var refused int
		refused, err = item.Parts(&l.numbers, run)
		if refused > 0 {
			c.ledger.violate("a batch of %s with a number that it has not given", c.self)
		}
	}
	if err != nil || len(q.ids) == 0 {
		c.ledger.violate("an envelope of %s that cannot be decoded: %v", c.self, err)
	}
	return q
}

// put sends an envelope, or has it wait for the connection.
func (l *lane) put(q queuedEnvelope) {
	p := l.passage
	if p.down || !l.cells.ledger.lives(l.to) { // Without a node that answers the envelope waits for ever.
		p.down = true
		p.frames = append(p.frames, q)
		return
	}
	p.written = p.next
	l.leaves(q)
}

// leaves sends an envelope, and tells the ledger of its messages.
func (l *lane) leaves(q queuedEnvelope) {
	for _, id := range q.ids {
		if r := l.cells.ledger.messages[id]; r != nil {
			r.left = true
		}
	}
	l.send(q.frame)
}

func (l *lane) send(frame []byte) {
	if l.stalled {
		l.standing = append(l.standing, frame)
		return
	}
	l.cells.out.Add(machine.Send{To: l.to, Lane: machine.LaneMessage, Message: frame})
}

// resume ends the time for which a connection stood still.
func (l *lane) resume() {
	l.stalled = false
	for _, b := range l.standing {
		l.send(b)
	}
	l.standing = nil
}

// Defer has f called when the lane takes its next batch. While the connection is broken
// that is mostly so: some messages are handed over just as the connection breaks.
func (l *lane) Defer(f func()) bool {
	c := l.cells
	switch {
	case l.draining:
		return false
	case l.passage.down && c.rand.IntN(4) == 0:
		return false
	case l.passage.down:
	case !l.batching && !c.behaviour.LaneBusy && c.rand.IntN(4) > 0:
		return false // No batch waits.
	case !l.batching:
		l.batching = true
		most := maxBatch
		if c.behaviour.LaneBusy {
			most *= 8
		}
		c.after(time.Duration(c.rand.Int64N(int64(most))), func() {
			l.batching = false
			if !l.passage.down {
				l.drain()
			}
		})
	}
	l.calls = append(l.calls, f)
	return true
}

// drain calls the functions that wait for the next batch.
func (l *lane) drain() {
	calls := l.calls
	l.calls, l.draining = nil, true
	for _, f := range calls {
		f()
	}
	l.draining = false
}

// reconnect ends the time for which a connection was broken: it is up again, or given up.
func (l *lane) reconnect() {
	c, p := l.cells, l.passage
	if !c.ledger.lives(l.to) {
		return
	}
	if c.rand.IntN(2) == 0 {
		frames := p.frames
		p.written, p.frames, p.down = p.next, nil, false
		for _, q := range frames {
			l.leaves(q)
		}
		l.drain()
		c.node.Connected(l.to, l.version())
		return
	}
	p.over, p.frames, l.passage = true, nil, new(passage)
	l.drain()
	c.node.Disconnected(l.to)
	l.begin()
}

// noteUnreachable notes the messages of a shard that wait in a passage which the shard does not use any more: they may
// be sent at any time, and the cell is not told.
func (c *Cells) noteUnreachable(shard protocol.ShardID, p *passage) {
	if p.over {
		return
	}
	for _, q := range p.frames {
		for _, m := range q.own {
			if m.shard == shard {
				c.ledger.messages[m.id].astray = true
			}
		}
	}
}
