// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"maps"
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
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
// A hold that is lost is said again as more comes. A node that is held back asks, now
// and then, so that an opening that is lost costs time and nothing else.

// holdRepeat is how soon an origin is told again that sends on.
const holdRepeat = 500 * time.Millisecond

// heldUp is what a full mailbox knows of a node that sends to it.
type heldUp struct {
	origin gossip.NodeID
	bytes  int             // What came from there since the mailbox is full.
	told   machine.Instant // When the origin was told last, and bytes then.
	then   int
}

// overfill decides about a message of a stream that finds a mailbox full. What was
// sent before the origin can have known is taken: at most what a window holds. The
// second window is for holds that were lost; an origin that does not obey is refused.
func (s *Shard) overfill(now machine.Instant, e *Entity, m *Message, out *Actions) Code {
	if m.Origin == s.cfg.Self {
		return CodeOK // From the own window, which is bounded.
	}
	p := e.pressed()
	at := slices.IndexFunc(p.held, func(h *heldUp) bool { return h.origin == m.Origin })
	if at < 0 {
		at = len(p.held)
		p.held = append(p.held, &heldUp{origin: m.Origin})
	}
	h := p.held[at]
	cost := m.cost()
	if h.bytes > 0 && h.bytes+cost > 2*s.cfg.WindowBytes {
		return CodeOverloaded
	}
	if h.bytes == 0 || h.bytes-h.then > s.cfg.WindowBytes/4 || now.Sub(h.told) >= holdRepeat {
		h.told, h.then = now, h.bytes
		s.flow(h.origin, e.id, FlowHold, out)
	}
	h.bytes += cost
	return CodeOK
}

// letGo lets the nodes send on that were held back.
func (s *Shard) letGo(e *Entity, out *Actions) {
	for _, h := range e.pressure.held {
		s.flow(h.origin, e.id, FlowOpen, out)
	}
	e.pressure.held = nil
}

func (s *Shard) flow(to gossip.NodeID, entity string, state FlowState, out *Actions) {
	if s.abandoned {
		return
	}
	epoch := s.epoch
	if state == FlowAsk {
		epoch = s.route.Epoch
	}
	out.add(Action{Op: OpFlow, To: to, Flow: &Flow{
		Kind: s.cfg.Kind, Shard: s.cfg.Shard, Epoch: epoch, Entity: entity, State: state,
	}})
}

// hold is an entity elsewhere that takes no messages of this node at present.
type hold struct {
	line  line
	epoch Epoch           // Of the home that said so.
	at    machine.Instant // When it said so, or was asked, last.
}

// Flowed takes what another node says of the flow of messages to an entity.
func (s *Shard) Flowed(now machine.Instant, from gossip.NodeID, f Flow, out *Actions) {
	switch {
	case s.abandoned:
	case f.State == FlowAsk:
		s.flowAsked(now, from, f.Entity, out)
	case !s.atHome(from, out):
	case s.state != hostNone:
	case f.State == FlowHold && !f.Epoch.Less(s.route.Epoch):
		h := s.holds[f.Entity]
		if h == nil {
			h = s.hold(f.Entity)
		}
		h.epoch, h.at = maxEpoch(h.epoch, f.Epoch), now
		s.wake(now, out)
	case f.State == FlowOpen:
		if h := s.holds[f.Entity]; h != nil && !f.Epoch.Less(h.epoch) {
			s.open(f.Entity, h, out)
		}
	}
}

// hold begins a hold. Who waits for the window with a message to the entity, and was
// not called yet, waits for it to be let go first.
func (s *Shard) hold(entity string) *hold {
	h := new(hold)
	if s.holds == nil {
		s.holds = make(map[string]*hold)
	}
	s.holds[entity] = h
	for t := s.line.first; t != nil; {
		next := t.next
		if t.m.Entity == entity {
			s.line.remove(t)
			h.line.add(t)
		}
		t = next
	}
	return h
}

// flowAsked answers an origin that is held back.
func (s *Shard) flowAsked(now machine.Instant, from gossip.NodeID, entity string, out *Actions) {
	if s.state == hostNone {
		return // The home has changed; so will its map.
	}
	if e := s.entity(entity); e != nil && e.pressure != nil {
		for _, h := range e.pressure.held {
			if h.origin == from {
				h.told = now
				s.flow(from, entity, FlowHold, out)
				return
			}
		}
	}
	s.flow(from, entity, FlowOpen, out)
}

// open ends a hold. Those who waited go on in the line for the window, which most of
// them find short.
func (s *Shard) open(entity string, h *hold, out *Actions) {
	delete(s.holds, entity)
	for t := h.line.first; t != nil; t = h.line.first {
		h.line.remove(t)
		s.line.add(t)
	}
	s.callWindow(out)
}

// heldEntities returns the entities that are held, sorted.
func (s *Shard) heldEntities() []string { return slices.Sorted(maps.Keys(s.holds)) }

// openBelow ends the holds of homes before an epoch.
func (s *Shard) openBelow(epoch Epoch, out *Actions) {
	for _, entity := range s.heldEntities() {
		if h := s.holds[entity]; h.epoch.Less(epoch) {
			s.open(entity, h, out)
		}
	}
}

// askFlow asks the home about the entities of which it has not said anything lately.
func (s *Shard) askFlow(now machine.Instant, out *Actions) {
	if s.route.Home == s.cfg.Self || s.route.Home.IsZero() {
		return
	}
	for _, entity := range s.heldEntities() {
		if h := s.holds[entity]; now.Sub(h.at) >= s.cfg.Resend {
			h.at = now
			s.flow(s.route.Home, entity, FlowAsk, out)
		}
	}
}
