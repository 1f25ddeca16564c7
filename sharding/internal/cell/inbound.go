// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"slices"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// The messages of other nodes: take looks at the number of each, and what came before its turn
// waits in its stream; keep lets those wait for which there is no home here; acks says how far
// the streams are. begin, halt and end follow the shard from home to home.

// stream is the host's side of one inbound stream.
type stream struct {
	origin  gossip.NodeID
	last    uint64 // The number of the last message that was delivered.
	needed  uint64 // The number of the message that was last asked for by OpNeed.
	waiting queue  // Messages that came before one with a lower number.
	dirty   bool   // An acknowledgement is due.
	owed    int    // What was delivered since the last acknowledgement, as the window of the origin counts it.
	about   about  // What mailboxes have of the messages of which only the value and the stream are known.
}

// following returns the next message of the stream if it came before its turn; nil if it did
// not.
func (s *stream) following() *Message {
	if s.waiting.head != nil && s.waiting.head.Seq == s.last+1 {
		return s.waiting.pop()
	}
	return nil
}

// inbound is the part of a cell for the messages of other nodes that are not in a mailbox
// yet. Invariants, between calls:
//
//	H1  the field last of a stream is the number of its messages that were delivered here
//	    or at earlier homes since the base epoch;
//	H2  what waits in a stream has numbers above the next one;
//	H3  each stream for which an acknowledgement is due is in dirty, once;
//	H4  what waits in a stream, and what waits in transit, is bounded.
type inbound struct {
	env
	streams  map[gossip.NodeID]*stream
	lastUsed *stream   // The stream of the last message, since frames come in runs.
	dirty    []*stream // The streams for which an acknowledgement is due.
	pressing bool      // One of these has so much to acknowledge that its origin may wait, and OpPress has said so.
	transit  queue     // Messages of other nodes that wait for a newer map or for the shard's next home.
}

// take looks at the number of a message, and reports whether it is the next one of its
// stream. If not, the message is dropped or waits.
func (i *inbound) take(in *stream, m *Message, out *Actions) bool {
	if m.Seq == in.last+1 {
		return true
	}
	i.turnAway(in, m, out)
	return false
}

// turnAway drops a message that was delivered before, or keeps it until its turn.
func (i *inbound) turnAway(in *stream, m *Message, out *Actions) {
	if m.Seq > in.last {
		i.early(in, m, out)
		return
	}
	i.markDirty(in)
	out.drop(m, DropDuplicate)
}

// pressingPart is the part of a window that is acknowledged without delay. An origin whose window
// is full goes on when half of it is free; until then another quarter can be on its way, and a
// quarter where the origin fills it again.
const pressingPart = 4

// delivered notes that a message of a stream, which counts cost bytes in its window, is delivered,
// or refused to its sender.
func (i *inbound) delivered(in *stream, seq uint64, cost int, out *Actions) {
	in.last = seq
	if in.owed += cost; in.owed >= i.cfg.WindowBytes/pressingPart && !i.pressing {
		i.pressing = true
		out.add(Action{Op: OpPress})
	}
	if !in.dirty { // Mostly one message of many is the first since the last acknowledgement.
		i.markDirty(in)
	}
}

// ownDelivered returns the number of the last message of this node itself that was delivered, at
// an earlier home mostly, and deliverOwn notes that one is delivered here.
func (i *inbound) ownDelivered() uint64 { return i.stream(i.cfg.Self).last }

func (i *inbound) deliverOwn(seq uint64) { i.stream(i.cfg.Self).last = seq }

// stream returns the inbound stream of an origin, which it creates if there is none.
func (i *inbound) stream(origin gossip.NodeID) *stream {
	if i.lastUsed != nil && i.lastUsed.origin == origin {
		return i.lastUsed
	}
	in := i.streams[origin]
	if in == nil {
		in = &stream{origin: origin}
		in.about.from = in
		if i.streams == nil {
			i.streams = make(map[gossip.NodeID]*stream)
		}
		i.streams[origin] = in
	}
	i.lastUsed = in
	return in
}

// early keeps a message that came before one with a lower number, and asks for the
// missing ones.
func (i *inbound) early(in *stream, m *Message, out *Actions) {
	if in.waiting.n > 0 && in.waiting.bytes+m.cost() > i.cfg.TransitBytes {
		out.drop(m, DropOverflow)
	} else if !in.waiting.insert(m) {
		out.drop(m, DropDuplicate)
	}
	if in.needed != in.last+1 {
		in.needed = in.last + 1
		out.add(Action{Op: OpNeed, To: in.origin, Base: i.place.baseEpoch(), Seq: in.needed})
	}
}

func (i *inbound) markDirty(in *stream) {
	if !in.dirty {
		in.dirty = true
		i.dirty = append(i.dirty, in)
	}
}

// forget drops the inbound streams, with the messages that wait in them.
func (i *inbound) forget(out *Actions) {
	for _, in := range i.sortedStreams() {
		for m := in.waiting.pop(); m != nil; m = in.waiting.pop() {
			out.drop(m, DropOldStream)
		}
	}
	clear(i.streams)
	i.dirty, i.pressing, i.lastUsed = i.dirty[:0], false, nil
}

// sortedStreams returns the inbound streams ordered by origin.
func (i *inbound) sortedStreams() []*stream {
	all := make([]*stream, 0, len(i.streams))
	for _, in := range i.streams { //quorate:unordered sorted below
		all = append(all, in)
	}
	slices.SortFunc(all, func(a, b *stream) int { return a.origin.Compare(b.origin) })
	return all
}

// positions returns up to which message each stream was delivered, sorted by origin.
func (i *inbound) positions() []protocol.Position {
	var all []protocol.Position
	for _, in := range i.sortedStreams() {
		if in.last > 0 {
			all = append(all, protocol.Position{Origin: in.origin, Seq: in.last})
		}
	}
	return all
}

// keep lets m wait for a newer map, or for the shard's next home.
func (i *inbound) keep(now machine.Instant, m *Message, out *Actions) {
	if i.transit.n > 0 && i.transit.bytes+m.cost() > i.cfg.TransitBytes {
		out.drop(m, DropOverflow)
		return
	}
	i.transit.push(m)
	i.place.lookup(maxEpoch(m.Route, i.place.mapEpoch()), out)
	i.alarm.wake(now, out)
}

// acks does the work of [Cell.Acks].
func (i *inbound) acks(out *Actions) {
	for _, in := range i.dirty {
		in.dirty, in.owed = false, 0
		out.add(Action{Op: OpAck, To: in.origin, Base: i.place.baseEpoch(), Seq: in.last})
	}
	i.dirty, i.pressing = i.dirty[:0], false
}

// begin goes on where the streams were at the home before.
func (i *inbound) begin(positions []protocol.Position, out *Actions) {
	i.forget(out)
	for _, p := range positions {
		i.stream(p.Origin).last = p.Seq
	}
}

// halt has the messages that came before their turn wait for the next home.
func (i *inbound) halt(now machine.Instant, out *Actions) {
	for _, in := range i.sortedStreams() {
		for m := in.waiting.pop(); m != nil; m = in.waiting.pop() {
			i.keep(now, m, out)
		}
		in.needed = 0
	}
}

// end returns where the streams are, for the next home, and forgets them.
func (i *inbound) end() []protocol.Position {
	at := i.positions()
	clear(i.streams)
	i.lastUsed = nil
	return at
}

// kept returns how many messages wait in transit, and takeTransit takes them.
func (i *inbound) kept() int { return i.transit.n }

func (i *inbound) takeTransit() queue {
	waiting := i.transit
	i.transit = queue{}
	return waiting
}

// abandon drops everything, since the node has ended.
func (i *inbound) abandon(out *Actions) {
	for m := i.transit.pop(); m != nil; m = i.transit.pop() {
		out.drop(m, DropStopped)
	}
	i.forget(out)
}

// Acks appends the acknowledgements that are due. The runtime calls Acks after messages
// were delivered, with or without a delay; without after [OpPress].
func (c *Cell) Acks(out *Actions) {
	c.in.acks(out)
}
