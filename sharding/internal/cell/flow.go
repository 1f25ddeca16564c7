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

// heldEntity is an entity elsewhere that takes no messages of this node at present.
type heldEntity struct {
	line  line
	epoch protocol.Epoch  // The epoch of the home that told this node to hold.
	at    machine.Instant // When the home last told to hold, or was asked.
}

// hold begins a hold. Senders in the line for the window whose message is to the entity
// move to the line of the hold.
func (o *origin) hold(entity string) *heldEntity {
	h := new(heldEntity)
	if o.holds == nil {
		o.holds = make(map[string]*heldEntity)
	}
	o.holds[entity] = h
	for t := o.line.first; t != nil; {
		next := t.next
		if t.m.Entity == entity {
			o.line.remove(t)
			h.line.add(t)
		}
		t = next
	}
	return h
}

// open ends a hold. The senders in its line go to the end of the line for the window,
// which is short mostly.
func (o *origin) open(entity string, h *heldEntity, out *Actions) {
	delete(o.holds, entity)
	for t := h.line.first; t != nil; t = h.line.first {
		h.line.remove(t)
		o.line.add(t)
	}
	o.callWindow(out)
}

// heldEntities returns the entities that are held, sorted.
func (o *origin) heldEntities() []string { return slices.Sorted(maps.Keys(o.holds)) }

// openBelow ends the holds of homes before an epoch.
func (o *origin) openBelow(epoch protocol.Epoch, out *Actions) {
	for _, entity := range o.heldEntities() {
		if h := o.holds[entity]; h.epoch.Less(epoch) {
			o.open(entity, h, out)
		}
	}
}

// askFlow asks the home about the held entities about which it has not spoken lately.
func (o *origin) askFlow(now machine.Instant, out *Actions) {
	if o.place.home() == o.cfg.Self || o.place.home().IsZero() {
		return
	}
	for _, entity := range o.heldEntities() {
		if h := o.holds[entity]; now.Sub(h.at) >= o.cfg.Resend {
			h.at = now
			o.place.flow(o.place.home(), entity, protocol.FlowAsk, out)
		}
	}
}

// holdBack keeps the messages to an entity on this node, as its home says.
func (o *origin) holdBack(now machine.Instant, f protocol.Flow) {
	h := o.holds[f.Entity]
	if h == nil {
		h = o.hold(f.Entity)
	}
	h.epoch, h.at = maxEpoch(h.epoch, f.Epoch), now
}

// letOn ends a hold, unless a later home has said to hold.
func (o *origin) letOn(f protocol.Flow, out *Actions) {
	if h := o.holds[f.Entity]; h != nil && !f.Epoch.Less(h.epoch) {
		o.open(f.Entity, h, out)
	}
}
