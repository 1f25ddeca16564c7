// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"slices"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// What the control machine orders: routes, the begin and the end of hosting, suspension and
// the end of the node. setRoute and startHosting begin the streams anew where a host has died;
// stopHosting lets the mailboxes run out until checkHalted reports the end; evict, release and
// abandon end a hosting without waiting for its entities.

// Apply takes an input from the control machine of this node.
func (c *Cell) Apply(now machine.Instant, in protocol.CellInput, out *Actions) {
	if c.abandoned {
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
	case protocol.Suspend:
		c.suspended = true
	case protocol.Unsuspend:
		c.unsuspend(now, out)
	case protocol.Abandon:
		c.abandon(now, out)
	}
}

func (c *Cell) setRoute(now machine.Instant, r protocol.SetRoute, out *Actions) {
	if !c.route.Epoch.Less(r.Epoch) {
		return
	}
	c.rehome(r.Home)
	c.route, c.asked, c.blocked, c.since = r, false, false, now
	c.openBelow(r.Epoch, out)
	if c.state != hostNone && r.Home != c.cfg.Self && c.epoch.Less(r.Epoch) {
		c.evict(now, out)
	}
	c.rebase(now, r.Base, out)
	for m := c.window.head; m != nil; m = m.next {
		m.Route = r.Epoch
	}
	c.cursor = c.window.head
	c.pump(now, out)
	c.retransit(now, out)
}

// rebase begins all streams anew when the shard's host has died. Messages that have left
// this node may or may not have been processed; messages that have not left are numbered
// anew, in order. A copy that leaves later does no harm: before a host is taken for dead
// its fence has passed, so that it begins no message any more.
func (c *Cell) rebase(now machine.Instant, base protocol.Epoch, out *Actions) {
	if !c.base.Less(base) {
		return
	}
	if !c.base.IsZero() {
		out.add(Action{Op: OpReset})
	}
	c.base, c.next, c.cursor, c.former = base, 0, nil, nil
	old := c.window
	c.window = queue{}
	for m := old.pop(); m != nil; m = old.pop() {
		if c.left(m) {
			out.add(Action{Op: OpFail, Message: m, Code: protocol.CodeUnknownOutcome})
			continue
		}
		m.place = 0
		c.next++
		m.Seq, m.Base = c.next, base
		c.window.push(m)
	}
	c.cursor = c.window.head
	c.windowMoved(now, out)
	c.forget(out)
}

// forget drops the inbound streams, with the messages that wait in them.
func (c *Cell) forget(out *Actions) {
	for _, in := range c.sortedStreams() {
		for m := in.waiting.pop(); m != nil; m = in.waiting.pop() {
			out.drop(m, DropOldStream)
		}
	}
	clear(c.streams)
	c.dirty, c.lastUsed = c.dirty[:0], nil
}

// sortedStreams returns the inbound streams ordered by origin.
func (c *Cell) sortedStreams() []*stream {
	all := make([]*stream, 0, len(c.streams))
	for _, in := range c.streams { //quorate:unordered sorted below
		all = append(all, in)
	}
	slices.SortFunc(all, func(a, b *stream) int { return a.origin.Compare(b.origin) })
	return all
}

func (c *Cell) startHosting(now machine.Instant, h protocol.StartHosting, out *Actions) {
	if c.state != hostNone {
		// The node hosts the shard already, under a lower epoch: its own positions of
		// the streams are newer than those of the order.
		c.epoch = maxEpoch(c.epoch, h.Epoch)
		return
	}
	if h.Epoch.Less(c.route.Epoch) || h.Base.Less(c.base) {
		return
	}
	c.rehome(c.cfg.Self)
	c.route = protocol.SetRoute{Home: c.cfg.Self, Epoch: h.Epoch, Base: h.Base}
	c.rebase(now, h.Base, out)
	c.forget(out)
	for _, p := range h.Positions {
		c.stream(p.Origin).last = p.Seq
	}
	c.state, c.epoch, c.asked, c.blocked, c.since = hostServing, h.Epoch, false, false, now
	c.openBelow(h.Epoch, out)
	c.serve(now, out)
}

// serve delivers everything that waited for this node to be the home.
func (c *Cell) serve(now machine.Instant, out *Actions) {
	c.cursor = c.window.head
	c.pump(now, out)
	c.line.dismiss(out) // Messages of this node go straight into mailboxes now.
	c.retransit(now, out)
}

func (c *Cell) stopHosting(now machine.Instant, h protocol.StopHosting, out *Actions) {
	if c.state != hostServing || c.epoch != h.Epoch {
		return
	}
	c.state, c.since, c.leaving = hostStopping, now, h.Leaving
	for _, in := range c.sortedStreams() {
		for m := in.waiting.pop(); m != nil; m = in.waiting.pop() {
			c.keep(now, m, out)
		}
		in.needed = 0
	}
	for e := c.first; e != nil; {
		next := e.next
		c.disband(e, out)
		if _, idle := e.Idle(); idle && e.withheld == nil {
			c.stop(now, e, out)
		}
		c.removeIdle(e)
		e = next
	}
	c.checkHalted(now, out)
}

func (c *Cell) resumeHosting(now machine.Instant, h protocol.ResumeHosting, out *Actions) {
	if c.state != hostStopping || c.epoch != h.Epoch {
		return
	}
	c.state, c.since = hostServing, now
	c.serve(now, out)
}

// releaseHosting ends the hosting although entities have not stopped. The messages that
// they process may or may not be finished; the messages in the mailboxes did not begin.
func (c *Cell) releaseHosting(now machine.Instant, h protocol.ReleaseHosting, out *Actions) {
	if c.state != hostStopping || c.epoch != h.Epoch {
		return
	}
	for e := c.first; e != nil; {
		next := e.next
		for m := e.mailbox.pop(); m != nil; m = e.mailbox.pop() {
			c.refuse(m, protocol.CodeNotDelivered, out)
		}
		c.disband(e, out)
		c.release(now, e, out)
		e = next
	}
	c.checkHalted(now, out)
}

// release leaves e behind: the cell goes on without it, and no answer of it leaves.
func (c *Cell) release(now machine.Instant, e *Entity, out *Actions) {
	if e.withheld != nil {
		c.reply(e.withheld.to, &protocol.Reply{Correlation: e.withheld.reply.Correlation, Code: protocol.CodeUnknownOutcome, Detail: leftBehind}, out)
		e.withheld = nil
	}
	c.remove(e)
	if !e.hasInstance() {
		return
	}
	e.released = true
	c.released = append(c.released, e)
	c.giveUpAhead(e, out)
	if e.deferred || e.state == entityActive && e.current == nil {
		c.stop(now, e, out) // The entity waited for standing, and is not stuck.
		return
	}
	if m := e.current; m != nil && !m.Own {
		c.reply(m.Origin, &protocol.Reply{Correlation: m.Correlation, Code: protocol.CodeUnknownOutcome, Detail: leftBehind}, out)
	}
	if !e.stuck {
		e.stuck = true
		c.stuck++
		out.entity(OpStuck, e)
	}
}

// leftBehind is the detail that a sender hears whose message the entity did not finish.
const leftBehind = "the entity did not return, and its shard went on without it"

// checkHalted ends the hosting once the last entity is gone.
func (c *Cell) checkHalted(now machine.Instant, out *Actions) {
	if c.state != hostStopping || c.first != nil || c.abandoned {
		return
	}
	c.Acks(out)
	c.state, c.since = hostNone, now
	halted := protocol.ShardHalted{Epoch: c.epoch, Base: c.base, Positions: c.positions()}
	clear(c.streams)
	c.lastUsed = nil
	out.add(Action{Op: OpEnd})
	out.add(Action{Op: OpEvent, Event: halted})
}

// positions returns up to which message each stream was delivered, sorted by origin.
func (c *Cell) positions() []protocol.Position {
	var all []protocol.Position
	for _, in := range c.sortedStreams() {
		if in.last > 0 {
			all = append(all, protocol.Position{Origin: in.origin, Seq: in.last})
		}
	}
	return all
}

// evict ends the hosting at once, since the map says that another node hosts the
// shard under a higher epoch. This happens only when a coordinator took this
// node for gone; messages that were not processed are given back to their senders.
func (c *Cell) evict(now machine.Instant, out *Actions) {
	c.state = hostNone
	c.discard(now, protocol.CodeNotDelivered, out)
	out.add(Action{Op: OpEnd})
}

// discard refuses the messages of all mailboxes and stops all instances. An instance that
// is in a call is stopped when it returns; until then no other instance of the entity
// starts on this node.
func (c *Cell) discard(now machine.Instant, code protocol.Code, out *Actions) {
	for e := c.first; e != nil; {
		next := e.next
		for m := e.mailbox.pop(); m != nil; m = e.mailbox.pop() {
			c.refuse(m, code, out)
		}
		c.disband(e, out)
		e.withheld = nil
		switch {
		case !e.hasInstance():
			c.remove(e)
		case e.deferred || e.state == entityActive && e.current == nil:
			e.stale = true
			c.stop(now, e, out)
		default:
			e.stale = true
		}
		e = next
	}
}

func (c *Cell) unsuspend(now machine.Instant, out *Actions) {
	c.suspended, c.postponed = false, false
	c.restart(now, out)
}

// abandon ends everything on this node: it was downed or it has left.
func (c *Cell) abandon(now machine.Instant, out *Actions) {
	c.abandoned = true
	c.discard(now, protocol.CodeNotDelivered, out)
	for m := c.window.pop(); m != nil; m = c.window.pop() {
		code := protocol.CodeNotDelivered
		if m.place != 0 {
			code = protocol.CodeUnknownOutcome // A message in a lane may still leave: lanes linger.
		}
		out.add(Action{Op: OpFail, Message: m, Code: code})
	}
	c.cursor = nil
	for m := c.transit.pop(); m != nil; m = c.transit.pop() {
		out.drop(m, DropStopped)
	}
	c.forget(out)
	for _, entity := range c.heldEntities() {
		c.open(entity, c.holds[entity], out)
	}
	c.line.dismiss(out)
}
