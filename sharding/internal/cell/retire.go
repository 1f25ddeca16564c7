// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"slices"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/window"
)

// A kind whose number of shards changes has two layouts for a while, see [protocol.Layout]. A shard of
// the former one is retired once it has stopped, and its cell on each node hands on what it has to the
// cells of the next layout:
//
//	former layout                                        next layout
//	cell, retired ──OpMove, in the order of the window──> Handoff.Adopt: behind what is in the window
//	     └─ Accept: Moved, the sender goes there
//
// What was delivered is out of the window before, and what may have been is reported as unknown. The
// runtime lets no sender go to the next layout before Adopt has returned: so the messages of a sender
// to an entity keep their order.

// retire ends what the cell does for its shard.
func (h Handoff) retire(now machine.Instant, r protocol.RetireShard, out *Actions) {
	c := h.c
	if c.place.isRetired() {
		return
	}
	if c.place.hosts() {
		c.evict(now, out) // The shard had been taken from this node, which did not hear of it.
	}
	c.own.handOn(r, out)
	c.in.retire(out)
	c.place.retire(now, r.Epoch)
	for _, s := range r.Lost {
		why := s.Loss
		if why == protocol.LossNone {
			why = protocol.LossResharded
		}
		c.memory.forgotten([]string{s.Entity}, why, out)
	}
}

// handOn empties the window: what was delivered is acknowledged, what may have been has an unknown
// outcome, and the rest moves.
func (o *origin) handOn(r protocol.RetireShard, out *Actions) {
	known := r.Known && r.Base == o.place.baseEpoch()
	switch {
	case known:
		o.cut(positionOf(r.Positions, o.cfg.Self), out)
	case !o.place.baseEpoch().IsZero():
		out.add(Action{Op: OpReset})
	}
	all, at := o.takeWindow(o.window.Next(), out)
	for v := (window.View{}); all.Next(&v); {
		if !known && o.left(at.at(v.Seq)) {
			out.add(Action{Op: OpFail, Message: o.message(&v), Code: protocol.CodeUnknownOutcome})
			continue
		}
		out.add(Action{Op: OpMove, Message: o.message(&v)})
	}
	o.release(out)
	o.dismiss(out)
}

// positionOf returns up to which message the stream of an origin was delivered.
func positionOf(all []protocol.Position, origin gossip.NodeID) uint64 {
	for _, p := range all {
		if p.Origin == origin {
			return p.Seq
		}
	}
	return 0
}

// Adopt takes messages that a cell of the layout before has handed on, in their order: the window takes
// them beyond its bound. The caller still owns the messages.
func (h Handoff) Adopt(now machine.Instant, all []*Message, out *Actions) {
	h.c.own.adopt(now, all)
	h.c.pump(now, out)
}

// adopt puts messages into the window.
func (o *origin) adopt(now machine.Instant, all []*Message) {
	if o.empty() {
		o.moved, o.progress, o.patience = now, now, 0
	}
	for _, m := range all {
		o.push(m)
	}
	o.sent -= uint64(len(all)) // They were counted when they were accepted.
}

// Admit has an entity of [Config.Withheld] run from now on whenever this node hosts the shard: its shard of the layout
// before is retired.
func (h Handoff) Admit(now machine.Instant, id string, out *Actions) {
	r := &h.c.entities
	if i := slices.Index(r.cfg.Withheld, id); i >= 0 {
		r.cfg.Withheld = slices.Concat(r.cfg.Withheld[:i], r.cfg.Withheld[i+1:])
		r.keepUp(now, out)
	}
}

// Retired reports whether the shard is retired.
func (h Handoff) Retired() bool { return h.c.place.isRetired() }

// Stopping reports whether the shard is being stopped here.
func (h Handoff) Stopping() bool { return h.c.place.stops() }

// retire notes that no node hosts the shard any more.
func (p *place) retire(now machine.Instant, epoch protocol.Epoch) {
	p.rehome(gossip.NodeID{})
	p.route, p.retired, p.asked, p.since = protocol.SetRoute{Epoch: epoch, Base: p.base}, true, false, now
}

// isRetired reports whether no node hosts the shard any more.
func (p *place) isRetired() bool { return p.retired }

// retire drops the messages of other nodes: their origins have them, and hand them on.
func (i *inbound) retire(out *Actions) {
	for m := i.transit.pop(); m != nil; m = i.transit.pop() {
		out.drop(m, DropOldStream)
	}
	i.forget(out)
}
