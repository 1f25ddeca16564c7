// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// What the control machine orders: routes, the begin and the end of hosting, suspension and
// the end of the node. setRoute and startHosting begin the streams anew where a host has died;
// stopHosting lets the mailboxes run out until checkHalted reports the end; evict, releaseHosting
// and abandon end a hosting without waiting for its entities.

// Apply takes an input from the control machine of this node.
func (c *Cell) Apply(now machine.Instant, in protocol.CellInput, out *Actions) {
	if _, end := in.(protocol.AbandonHosting); c.place.isOver() || c.place.isRetired() && !end {
		return
	}
	switch in := in.(type) {
	case protocol.SetRoute:
		c.setRoute(now, in, out)
	case protocol.StartHosting:
		c.startHosting(now, in, out)
	case protocol.StopHosting:
		c.stopHosting(now, in, out)
	case protocol.ResumeHosting:
		c.resumeHosting(now, in, out)
	case protocol.ReleaseHosting:
		c.releaseHosting(now, in, out)
	case protocol.RetireShard:
		c.Handoff().retire(now, in, out)
	case protocol.SuspendHosting:
		c.place.suspend(true)
	case protocol.UnsuspendHosting:
		c.place.suspend(false)
		c.alarm.settled()
		c.entities.restart(now, out)
		c.checkHalted(now, out)
	case protocol.AbandonHosting:
		c.abandon(now, out)
	}
}

func (c *Cell) setRoute(now machine.Instant, r protocol.SetRoute, out *Actions) {
	if !c.place.mapEpoch().Less(r.Epoch) {
		return
	}
	c.place.follow(now, r)
	c.own.unblock()
	c.own.openBelow(r.Epoch, out)
	if c.place.hosts() && r.Home != c.cfg.Self && c.place.hostedUnder().Less(r.Epoch) {
		c.evict(now, out)
	}
	c.rebase(now, r.Base, out)
	c.own.again()
	c.pump(now, out)
	c.retransit(now, out)
}

// rebase begins all streams anew when the shard's host has died, see origin.renumber.
func (c *Cell) rebase(now machine.Instant, base protocol.Epoch, out *Actions) {
	old := c.place.baseEpoch()
	if !old.Less(base) {
		return
	}
	if !old.IsZero() {
		out.add(Action{Op: OpReset})
	}
	c.place.beginAnew(base)
	c.own.renumber(now, out)
	c.in.forget(out)
}

func (c *Cell) startHosting(now machine.Instant, h protocol.StartHosting, out *Actions) {
	if c.place.hosts() {
		// The node hosts the shard already, under a lower epoch: its own positions of
		// the streams are newer than those of the order.
		c.place.raise(h.Epoch)
		return
	}
	if !c.place.takes(h) {
		return
	}
	c.place.moveHere(h)
	c.rebase(now, h.Base, out)
	c.in.begin(h.Positions, out)
	c.memory.begin(now, h.Snapshots, out)
	c.place.serve(now, h.Epoch)
	c.own.unblock()
	c.own.openBelow(h.Epoch, out)
	c.serve(now, out)
}

// serve delivers everything that waited for this node to be the home.
func (c *Cell) serve(now machine.Instant, out *Actions) {
	c.entities.remembering.serve() // Before the first entity begins.
	c.own.again()
	c.pump(now, out)
	c.own.dismiss(out) // Messages of this node go straight into mailboxes now.
	c.retransit(now, out)
	c.entities.keepUp(now, out)
}

func (c *Cell) stopHosting(now machine.Instant, h protocol.StopHosting, out *Actions) {
	if !c.place.serves() || c.place.hostedUnder() != h.Epoch {
		return
	}
	c.place.stop(now, h.Leaving)
	c.in.halt(now, out)
	c.entities.remembering.stop()
	c.entities.runOut(now, out)
	c.Handoff().hurry(now, out)
}

func (c *Cell) resumeHosting(now machine.Instant, h protocol.ResumeHosting, out *Actions) {
	if !c.place.stops() || c.place.hostedUnder() != h.Epoch {
		return
	}
	c.place.resume(now)
	c.serve(now, out)
}

// releaseHosting ends the hosting although entities have not stopped. The messages that
// they process may or may not be finished; the messages in the mailboxes did not begin.
func (c *Cell) releaseHosting(now machine.Instant, h protocol.ReleaseHosting, out *Actions) {
	if !c.place.stops() || c.place.hostedUnder() != h.Epoch {
		return
	}
	c.memory.giveUp(now, out)
	c.entities.releaseAll(now, out)
	c.entities.remembering.hasty = true
	c.checkHalted(now, out)
}

// checkHalted ends the hosting once the last entity is gone, and what is remembered is written.
func (c *Cell) checkHalted(now machine.Instant, out *Actions) {
	if !c.place.stops() || !c.entities.empty() || c.place.isOver() || !c.entities.remembering.written(now, out) {
		return
	}
	c.entities.remembering.end()
	c.in.acks(out)
	c.place.halt(now)
	halted := protocol.ShardStopped{Epoch: c.place.hostedUnder(), Base: c.place.baseEpoch(), Positions: c.in.end(), Snapshots: c.memory.end()}
	out.add(Action{Op: OpEnd})
	out.add(Action{Op: OpEvent, Event: halted})
}

// evict ends the hosting at once, since the map says that another node hosts the
// shard under a higher epoch. This happens only when a coordinator took this
// node for gone; messages that were not processed are given back to their senders.
func (c *Cell) evict(now machine.Instant, out *Actions) {
	c.place.lose()
	c.memory.clear()
	c.entities.discard(now, protocol.CodeNotDelivered, out)
	c.entities.remembering.end()
	out.add(Action{Op: OpEnd})
}

// abandon ends everything on this node: it was downed or it has left.
func (c *Cell) abandon(now machine.Instant, out *Actions) {
	c.place.abandon()
	c.memory.clear()
	c.entities.discard(now, protocol.CodeNotDelivered, out)
	c.entities.remembering.end()
	c.own.abandon(out)
	c.in.abandon(out)
	c.own.release(out)
	c.own.dismiss(out)
}

// Homes returns the number of the home that the cell knows. A message that is accepted now
// goes to the home of this number or of a higher one.
func (c *Cell) Homes() uint64 { return c.place.heard() }

// Went reports whether a message that was accepted when [Cell.Homes] returned since may
// have gone to a node, so that the node may reply. The result may turn true when the cell
// learns of another home.
func (c *Cell) Went(node gossip.NodeID, since uint64) bool {
	return c.place.went(node, since)
}
