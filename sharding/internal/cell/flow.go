// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"maps"
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// A mailbox that is full holds back the nodes that send to it, each by itself and for
// this entity alone: acknowledgements go on, and with them the window of the stream,
// which belongs to all entities of the shard.
//
//	origin                                 host
//	  │── messages to x ───────────────────>│ the mailbox of x is full
//	  │<───────────────────── FlowHold(x) ──│
//	  │ Accept(x): waits. What was on its   │
//	  │ way is put into the mailbox, beyond │
//	  │ its bound: a window at most         │
//	  │<───────────────────── FlowOpen(x) ──│ half of it is free
//	  │── messages to x ───────────────────>│
//
// A hold that is lost is repeated as more messages come. A node that is held back asks now
// and then, so that an opening that is lost costs time and nothing else.

// holdRepeat is the time after which an origin that sends on is told to hold again.
const holdRepeat = 500 * time.Millisecond

// heldUp is what a full mailbox knows of one node that sends to it.
type heldUp struct {
	origin gossip.NodeID
	bytes  int             // The bytes that came from the origin since the mailbox is full.
	told   machine.Instant // When the origin was last told to hold.
	then   int             // The value of bytes at that time.
}

// overfill decides about a message of a stream that finds a mailbox full. Messages that
// were sent before the origin can have known are taken: at most a window of them. A second
// window is for holds that were lost; beyond that the origin does not obey, and its
// messages are refused.
func (c *Cell) overfill(now machine.Instant, e *Entity, m *Message, out *Actions) protocol.Code {
	if m.Origin == c.cfg.Self {
		return protocol.CodeOK // The message is from the window of this node, which is bounded.
	}
	p := e.pressed()
	at := slices.IndexFunc(p.held, func(h *heldUp) bool { return h.origin == m.Origin })
	if at < 0 {
		at = len(p.held)
		p.held = append(p.held, &heldUp{origin: m.Origin})
	}
	h := p.held[at]
	cost := m.cost()
	if h.bytes > 0 && h.bytes+cost > 2*c.cfg.WindowBytes {
		return protocol.CodeOverloaded
	}
	if h.bytes == 0 || h.bytes-h.then > c.cfg.WindowBytes/4 || now.Sub(h.told) >= holdRepeat {
		h.told, h.then = now, h.bytes
		c.flow(h.origin, e.id, protocol.FlowHold, out)
	}
	h.bytes += cost
	return protocol.CodeOK
}

// letGo tells the nodes that were held back to send on.
func (c *Cell) letGo(e *Entity, out *Actions) {
	for _, h := range e.pressure.held {
		c.flow(h.origin, e.id, protocol.FlowOpen, out)
	}
	e.pressure.held = nil
}

func (c *Cell) flow(to gossip.NodeID, entity string, state protocol.FlowState, out *Actions) {
	if c.abandoned {
		return
	}
	epoch := c.epoch
	if state == protocol.FlowAsk {
		epoch = c.route.Epoch
	}
	out.add(Action{Op: OpFlow, To: to, Flow: &protocol.Flow{
		Kind: c.cfg.Kind, Shard: c.cfg.Shard, Epoch: epoch, Entity: entity, State: state,
	}})
}

// hold is an entity elsewhere that takes no messages of this node at present.
type hold struct {
	line  line
	epoch protocol.Epoch  // The epoch of the home that told this node to hold.
	at    machine.Instant // When the home last told to hold, or was asked.
}

// Flowed takes a [protocol.Flow] of another node.
func (c *Cell) Flowed(now machine.Instant, from gossip.NodeID, f protocol.Flow, out *Actions) {
	switch {
	case c.abandoned:
	case f.State == protocol.FlowAsk:
		c.flowAsked(now, from, f.Entity, out)
	case !c.atHome(from, out):
	case c.state != hostNone:
	case f.State == protocol.FlowHold && !f.Epoch.Less(c.route.Epoch):
		h := c.holds[f.Entity]
		if h == nil {
			h = c.hold(f.Entity)
		}
		h.epoch, h.at = maxEpoch(h.epoch, f.Epoch), now
		c.wake(now, out)
	case f.State == protocol.FlowOpen:
		if h := c.holds[f.Entity]; h != nil && !f.Epoch.Less(h.epoch) {
			c.open(f.Entity, h, out)
		}
	}
}

// hold begins a hold. Senders in the line for the window whose message is to the entity
// move to the line of the hold.
func (c *Cell) hold(entity string) *hold {
	h := new(hold)
	if c.holds == nil {
		c.holds = make(map[string]*hold)
	}
	c.holds[entity] = h
	for t := c.line.first; t != nil; {
		next := t.next
		if t.m.Entity == entity {
			c.line.remove(t)
			h.line.add(t)
		}
		t = next
	}
	return h
}

// flowAsked answers an origin that is held back.
func (c *Cell) flowAsked(now machine.Instant, from gossip.NodeID, entity string, out *Actions) {
	if c.state == hostNone {
		return // The home has changed, and the origin will learn of it from the map.
	}
	if e := c.entity(entity); e != nil && e.pressure != nil {
		for _, h := range e.pressure.held {
			if h.origin == from {
				h.told = now
				c.flow(from, entity, protocol.FlowHold, out)
				return
			}
		}
	}
	c.flow(from, entity, protocol.FlowOpen, out)
}

// open ends a hold. The senders in its line go to the end of the line for the window,
// which is short mostly.
func (c *Cell) open(entity string, h *hold, out *Actions) {
	delete(c.holds, entity)
	for t := h.line.first; t != nil; t = h.line.first {
		h.line.remove(t)
		c.line.add(t)
	}
	c.callWindow(out)
}

// heldEntities returns the entities that are held, sorted.
func (c *Cell) heldEntities() []string { return slices.Sorted(maps.Keys(c.holds)) }

// openBelow ends the holds of homes before an epoch.
func (c *Cell) openBelow(epoch protocol.Epoch, out *Actions) {
	for _, entity := range c.heldEntities() {
		if h := c.holds[entity]; h.epoch.Less(epoch) {
			c.open(entity, h, out)
		}
	}
}

// askFlow asks the home about the held entities about which it has not spoken lately.
func (c *Cell) askFlow(now machine.Instant, out *Actions) {
	if c.route.Home == c.cfg.Self || c.route.Home.IsZero() {
		return
	}
	for _, entity := range c.heldEntities() {
		if h := c.holds[entity]; now.Sub(h.at) >= c.cfg.Resend {
			h.at = now
			c.flow(c.route.Home, entity, protocol.FlowAsk, out)
		}
	}
}
