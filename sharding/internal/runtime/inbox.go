// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/wire"
)

// What comes from another node: Received decodes a frame; take, acked and deliverRun hand what is in
// it to the cells, and trusts checks that messages may come from whom they came.

// Received takes a frame of a member.
func (n *Node) Received(from gossip.NodeID, frame []byte) {
	defer n.acknowledgePressing()
	now := n.Ports.Clock.Instant()
	decoder, _ := n.decoders.Get().(*wire.Decoder)
	if decoder == nil {
		decoder = &wire.Decoder{Fresh: n.messages.packed}
	}
	defer n.decoders.Put(decoder)
	item, err := decoder.Item(frame, now)
	switch m := item.(type) {
	case *wire.Acks:
		err = n.acked(from, m, now)
	case *wire.Replies:
		n.clocks.heard(from, m.Clock, now)
		err = m.Each(func(r *protocol.Reply) { n.answered(from, r) })
	case *wire.Run:
		err = n.deliverRun(from, now, m)
	case *wire.Batch:
		err = n.deliverBatch(from, now, m)
	}
	if err != nil {
		n.Ports.Notes.Malformed(from, err)
		return
	}
	n.take(from, item, now)
}

// deliverBatch hands the messages of a batch to their cells. Those of a stream of which this node
// does not know the number come again.
func (n *Node) deliverBatch(from gossip.NodeID, now machine.Instant, batch *wire.Batch) error {
	o := n.origins.of(from, n.Ports.Members)
	o.mu.Lock()
	defer o.mu.Unlock()
	refused, err := batch.Parts(&o.numbers, func(run *wire.Run) error { return n.deliverRun(from, now, run) })
	for range refused {
		n.Ports.Notes.Dropped(cell.DropUnknownStream)
	}
	return err
}

// deliverRun hands messages of a node to their cell.
func (n *Node) deliverRun(from gossip.NodeID, now machine.Instant, run *wire.Run) error {
	if n.trusts(from, run.Origin(), 0, run.Kind(), run.Shard()) {
		if sl := n.at(run.Kind(), run.Shard()); sl != nil {
			return sl.deliverRun(now, run)
		}
	}
	return nil
}

// acked hands each acknowledgement of a round to its cell.
func (n *Node) acked(from gossip.NodeID, acks *wire.Acks, now machine.Instant) error {
	n.clocks.heard(from, acks.Clock, now)
	return acks.Each(func(a protocol.Ack) {
		if sl := n.at(a.Kind, a.Shard); sl != nil {
			sl.acked(from, a, now)
		}
	})
}

// acked hands an acknowledgement to the cell.
func (sl *Slot) acked(from gossip.NodeID, a protocol.Ack, now machine.Instant) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	sl.cell.Acked(now, from, a, &sl.out)
	sl.carry(nil)
}

// take hands an item of a frame that concerns one cell, and is no run, to that cell.
func (n *Node) take(from gossip.NodeID, item any, now machine.Instant) {
	switch m := item.(type) {
	case *cell.Message:
		if !n.trusts(from, m.Origin, m.Hops, m.Kind, m.Shard) {
			n.messages.free(m)
			return
		}
		if sl := n.at(m.Kind, m.Shard); sl != nil {
			sl.deliver(now, m)
		}
	case *protocol.Reply:
		n.clocks.heard(from, m.Clock, now)
		n.answered(from, m)
	case protocol.Ack:
		n.clocks.heard(from, m.Clock, now)
		if sl := n.at(m.Kind, m.Shard); sl != nil {
			sl.acked(from, m, now)
		}
	case protocol.Nack:
		if sl := n.at(m.Kind, m.Shard); sl != nil {
			sl.Step(func(c *cell.Cell, out *cell.Actions) { c.Needed(now, from, m, out) })
		}
	case protocol.Flow:
		if sl := n.at(m.Kind, m.Shard); sl != nil {
			sl.Step(func(c *cell.Cell, out *cell.Actions) { c.Flowed(now, from, m, out) })
		}
	}
}

// answered hands a reply to its cell.
func (n *Node) answered(from gossip.NodeID, reply *protocol.Reply) {
	if sl := n.at(reply.Kind, reply.Shard); sl != nil {
		sl.answered(from, reply)
	}
}

// at returns the slot of a shard. A frame for a kind that does not run here, or for a shard
// that does not exist, is counted, and the result is nil: the sender sends it again.
func (n *Node) at(kind string, shard protocol.ShardID) *Slot {
	if r := n.Region(kind); r != nil {
		if sl := r.Slot(shard); sl != nil {
			return sl
		}
	}
	n.Ports.Notes.Misdirected()
	return nil
}

// trusts reports whether a message of an origin may come from a node. A message that
// may not is counted as forged.
func (n *Node) trusts(from, origin gossip.NodeID, hops uint8, kind string, shard protocol.ShardID) bool {
	fault := cell.OriginFault(from, origin, hops, n.Ports.Members.IsMember)
	if fault == cell.FaultNone {
		return true
	}
	if n.at(kind, shard) != nil {
		n.Ports.Notes.Forged(Forgery{from, fault, kind, shard, func() bool { return hops > 0 && n.Ports.Members.WasMember(origin) }})
	}
	return false
}

// deliver hands a message from another node to the cell.
func (sl *Slot) deliver(now machine.Instant, m *cell.Message) {
	defer sl.region.node.acknowledge(sl)
	sl.mu.Lock()
	defer sl.mu.Unlock()
	defer sl.carry(nil)
	sl.take(now, m)
}

// deliverRun hands messages from another node to the cell: their values, decoded without the
// lock of the cell, where they go into mailboxes, and else messages with memory of their own.
func (sl *Slot) deliverRun(now machine.Instant, run *wire.Run) error {
	items, err := run.Items(now)
	defer run.Done(items)
	if decode := sl.region.ports.Decode; decode != nil && sl.serves.Load() {
		for i := range items {
			if m := &items[i]; m.Whole() {
				m.Value = decode(m.Entity(), m.Payload())
			}
		}
	}
	defer sl.region.node.acknowledge(sl)
	sl.mu.Lock()
	defer sl.mu.Unlock()
	defer sl.carry(nil)
	for i := range items {
		if m := &items[i]; m.Value == nil || !sl.enter(now, run, m) {
			sl.take(now, sl.apart(run, m))
		}
	}
	return err
}

// enter has a message whose value is decoded go into its mailbox, if it does so now.
func (sl *Slot) enter(now machine.Instant, run *wire.Run, m *wire.Item) bool {
	a := cell.Arrival{
		Origin: run.Origin(), Base: run.Base(), Seq: m.Seq, Entity: m.Entity(), Bytes: len(m.Payload()),
		Mail: cell.Mail{Value: m.Value},
	}
	if !m.Traced() {
		if correlation, deadline, ok := run.Ask(m); ok {
			a.Mail = cell.MailOfAsk(m.Value, correlation, deadline)
		}
		return sl.cell.Enter(now, &a, &sl.out)
	}
	pool := &sl.region.node.messages
	rest := pool.plain()
	run.Head(m, rest)
	rest.Value = m.Value
	a.Mail = cell.MailOf(m.Value, rest)
	if sl.cell.Enter(now, &a, &sl.out) {
		return true
	}
	pool.free(rest)
	return false
}

// apart returns a message of a frame with memory of its own, and with its value, if that is
// decoded.
func (sl *Slot) apart(run *wire.Run, item *wire.Item) *cell.Message {
	m := sl.region.node.messages.packed(len(item.Payload()))
	run.Into(item, m)
	m.Value = item.Value
	return m
}

func (sl *Slot) take(now machine.Instant, m *cell.Message) {
	if w := sl.region.node.Ports.Watcher; w != nil {
		w.Comes(m)
	}
	sl.cell.Deliver(now, m, &sl.out)
}
