// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/machine"
	"github.com/quorate/quorate/membership/transport"
	"github.com/quorate/quorate/sharding/internal/wire"
	"github.com/quorate/quorate/sharding/protocol"
)

// link is the way from a cell to its shard's home. It keeps what every message
// there needs, so that none of it is made for each.
type link struct {
	to      gossip.NodeID
	lane    transport.Lane
	encoder wire.Encoder
	message *protocol.Message // What encode encodes.
	now     machine.Instant
	encode  func(dst []byte) []byte
	passage transport.Passage // Where the messages of the window were handed over last; nil before the first.
}

// append appends a message to the lane to a node, and returns where it is; the
// caller holds the cell.
func (l *link) append(s *System, to gossip.NodeID, m *protocol.Message) (transport.Passage, uint64, error) {
	if l.encode == nil {
		l.encode = func(dst []byte) []byte { return l.encoder.Message(dst, l.message, l.now) }
	}
	if l.lane == nil || l.to != to {
		l.to, l.lane = to, s.node.Transport().Lane(to, machine.LaneMessage)
	}
	l.message = m
	if m.Deadline != 0 {
		l.now = s.clock.Instant()
	}
	passage, place, err := l.lane.Track(protocol.MessageService, l.encode)
	l.message = nil
	return passage, place, err
}
