// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/wire"
	"github.com/quorate/quorate/transport"
)

// link is the way from a cell to its shard's home. It keeps what every message
// there needs, so that none of it is made for each.
type link struct {
	to         gossip.NodeID
	lane       transport.Lane
	encoder    wire.Encoder
	message    *protocol.Message // What encode begins with.
	most       int               // How many messages it may take.
	rest       *protocol.Message // What it left.
	now        machine.Instant
	encode     func(dst []byte) []byte
	drain      func()            // Transmits what was collected.
	collecting bool              // The lane will call drain.
	passage    transport.Passage // Where the messages of the window were handed over last; nil before the first.
}

// sent is where messages are that were appended, and the first that was not.
type sent struct {
	passage transport.Passage
	place   uint64
	rest    *protocol.Message
}

// envelopeMost bounds the messages of one envelope.
const envelopeMost = 256

// append appends m, and up to n-1 of those that follow it in the window of the cell,
// to the lane to a node. The caller holds the slot.
func (l *link) append(s *System, to gossip.NodeID, m *protocol.Message, n int) (sent, error) {
	if l.encode == nil {
		l.encode = func(dst []byte) []byte {
			dst, l.rest = l.encoder.Run(dst, l.message, l.most, l.now)
			return dst
		}
	}
	l.towards(s, to)
	l.message, l.most, l.now, l.encoder.There = m, n, s.clock.Instant(), 0
	if n > 1 || m.Deadline != 0 {
		l.encoder.There = s.clocks.at(to, l.now)
	}
	passage, place, err := l.lane.Track(protocol.MessageService, l.encode)
	at := sent{passage, place, l.rest}
	l.message, l.rest = nil, nil
	return at, err
}

// towards takes the lane to a node.
func (l *link) towards(s *System, to gossip.NodeID) {
	if l.lane == nil || l.to != to {
		// The lane of the home before may call for what was collected much later, or
		// never, if that home is gone.
		l.to, l.lane, l.collecting = to, s.node.Transport().Lane(to, machine.LaneMessage), false
	}
}

// goes reports whether what is appended to the lane to a node would leave at once. If
// not, the lane calls when it would: until then the messages stay with the cell, which
// can take them back. The caller holds the slot.
func (r *router) goes(sl *slot, to gossip.NodeID) bool {
	sl.link.towards(r.system, to)
	r.deferToLane(sl)
	return !sl.link.collecting
}

// deferToLane has the lane call when it takes its next batch, unless an append would go
// at once; link.collecting says which.
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

// collect has the cell keep what it accepts, as long as its lane has enough to do: it
// is transmitted together when the lane takes its next batch. The caller holds the
// slot.
func (r *router) collect(sl *slot) {
	l := &sl.link
	if l.lane == nil || l.to != sl.cell.Home() {
		return // The first message to a home goes at once.
	}
	if r.deferToLane(sl); l.collecting {
		sl.cell.Collect()
	}
}

// drain transmits what a cell has collected, on a goroutine of its lane.
func (r *router) drain(sl *slot) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	sl.link.collecting = false
	sl.cell.Flush(r.system.clock.Instant(), sl.cell.Home(), &sl.out)
	r.carry(sl, nil)
}
