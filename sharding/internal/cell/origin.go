// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// The messages of this node on their way: admit puts a message into the window or into a
// line, transmit hands the window to a lane, acked takes from it what the home has, and again
// and repeatLate begin from its front. flow.go holds senders back, passage.go knows what has
// left this node, retract.go takes messages back.

// origin is the part of a cell for the messages that this node accepts for other nodes.
// Invariants, between calls:
//
//	O1  the window holds messages with consecutive numbers of the stream of the base epoch,
//	    of which next is the last;
//	O2  cursor is nil or in the window, and the lane has had every message before it;
//	O3  while senders stand in the line, no message that did not stand there passes them
//	    into the window;
//	O4  a sender stands in one line, and a line of a hold has only senders to its entity.
type origin struct {
	shared
	window   queue            // Messages of this node that are accepted and not acknowledged.
	cursor   *Message         // The first message of the window that is to be transmitted.
	next     uint64           // The number of the last message that was put into the window.
	blocked  bool             // The lane to the home is full or broken, or the cell collects.
	line     line             // Senders that found the window full.
	holds    map[string]*hold // Entities elsewhere that take no messages of this node at present, by id.
	moved    machine.Instant  // When the window last moved, or began to fill.
	progress machine.Instant  // When the window last moved, began to fill, or was transmitted again.
	patience uint8            // How often the window was transmitted again without progress.
	written  uint64           // The place in the present passage below which messages may have left, see [Sent.Written].
}

// admit puts m into the window, unless it has to stand in line. If a line has kept room for
// the message, right is that line; else nil.
func (o *origin) admit(now machine.Instant, m *Message, right *line) Admission {
	if right != &o.line && o.mustWait(m) {
		if h := o.holds[m.Entity]; h != nil {
			h.line.wait(m, m.cost())
			return MailboxFull
		}
		o.line.wait(m, m.cost())
		return WindowFull
	}
	if o.window.n == 0 {
		o.moved, o.progress, o.patience = now, now, 0
	}
	o.push(m)
	return Accepted
}

// push puts m into the window, under the next number of the stream.
func (o *origin) push(m *Message) {
	o.counts.Sent++
	o.next++
	m.Origin, m.Seq, m.Base, m.Route, m.place = o.cfg.Self, o.next, o.place.baseEpoch(), o.place.mapEpoch(), 0
	o.window.push(m)
	if o.cursor == nil {
		o.cursor = m
	}
}

// acked takes the messages up to a number, which the home has, out of the window.
func (o *origin) acked(now machine.Instant, seq uint64, out *Actions) {
	over := o.window.cut(seq)
	if over == nil {
		return
	}
	if o.cursor != nil && o.cursor.Seq <= seq {
		o.cursor = o.window.head
	}
	out.free(over)
	o.windowMoved(now, out)
}

// windowMoved notes that the window has moved, and calls senders that wait for room in it.
func (o *origin) windowMoved(now machine.Instant, out *Actions) {
	o.moved, o.progress, o.patience = now, now, 0
	o.callWindow(out)
}

// callWindow calls senders that wait for the window, when half of it is free.
func (o *origin) callWindow(out *Actions) {
	if o.line.first == nil || o.window.bytes+o.line.kept > o.cfg.WindowBytes/2 {
		return
	}
	for o.line.first != nil && o.fits(o.line.first.cost) {
		o.line.call(out)
	}
}

// fits reports whether the window takes a message. One message always fits.
func (o *origin) fits(cost int) bool {
	taken := o.window.bytes + o.line.kept
	return taken == 0 || taken+cost <= o.cfg.WindowBytes
}

// mustWait reports whether a message has to wait in line before it may be put into the
// window. A message that is in a line already counts as waiting: [Cell.Accept] knows
// whether it was called.
func (o *origin) mustWait(m *Message) bool {
	return m.ticket != nil || o.line.first != nil || !o.fits(m.cost()) || len(o.holds) > 0 && o.holds[m.Entity] != nil
}

// unsent does the work of [Sent.Unsent].
func (o *origin) unsent(m *Message) { o.cursor, o.blocked = m, true }

// pending reports whether messages of the window are to be transmitted.
func (o *origin) pending() bool { return o.cursor != nil }

// transmit hands the window to the lane to a node, from the cursor on.
func (o *origin) transmit(to gossip.NodeID, out *Actions) {
	out.add(Action{Op: OpTransmit, To: to, Message: o.cursor})
	o.cursor = nil
}

// again has the whole window transmitted once more.
func (o *origin) again() { o.cursor = o.window.head }

// repeatLate has the window transmitted once more when it has not moved for long.
func (o *origin) repeatLate(now machine.Instant) {
	if o.window.n > 0 && now.Sub(o.progress) >= o.cfg.Resend<<min(o.patience, 3) {
		o.progress = now
		o.patience++
		o.unblock()
		o.again()
	}
}

// block keeps the window until the lane calls, and unblock lets it go.
func (o *origin) block()          { o.blocked = true }
func (o *origin) unblock()        { o.blocked = false }
func (o *origin) isBlocked() bool { return o.blocked }

// empty reports whether everything was acknowledged, and held counts the entities to which
// this node may not send.
func (o *origin) empty() bool { return o.window.n == 0 }
func (o *origin) held() int   { return len(o.holds) }

// numbered reports whether the stream has a message with a number.
func (o *origin) numbered(seq uint64) bool { return seq <= o.next }

// keeps reports whether a line is that for the window.
func (o *origin) keeps(l *line) bool { return l == &o.line }

// takeWindow empties the window, for a node that delivers its own messages. The caller
// calls windowMoved when it has done so.
func (o *origin) takeWindow() queue {
	window := o.window
	o.window, o.cursor = queue{}, nil
	return window
}

// reroute sends the window to a home of an epoch.
func (o *origin) reroute(epoch protocol.Epoch) {
	for m := o.window.head; m != nil; m = m.next {
		m.Route = epoch
	}
	o.again()
}

// renumber begins the stream anew, since the shard's host has died. Messages that have left
// this node may or may not have been processed; messages that have not left are numbered
// anew, in order. A copy that leaves later does no harm: before a host is taken for dead
// its fence has passed, so that it begins no message any more.
func (o *origin) renumber(now machine.Instant, out *Actions) {
	old := o.takeWindow()
	o.next = 0
	for m := old.pop(); m != nil; m = old.pop() {
		if o.left(m) {
			out.add(Action{Op: OpFail, Message: m, Code: protocol.CodeUnknownOutcome})
			continue
		}
		m.place = 0
		o.next++
		m.Seq, m.Base = o.next, o.place.baseEpoch()
		o.window.push(m)
	}
	o.again()
	o.windowMoved(now, out)
}

// abandon fails the window, since the node has ended.
func (o *origin) abandon(out *Actions) {
	window := o.takeWindow()
	for m := window.pop(); m != nil; m = window.pop() {
		code := protocol.CodeNotDelivered
		if m.place != 0 {
			code = protocol.CodeUnknownOutcome // A message in a lane may still leave: lanes linger.
		}
		out.add(Action{Op: OpFail, Message: m, Code: code})
	}
}

// dismiss calls all senders that wait for the window: they find room elsewhere, or none at
// all.
func (o *origin) dismiss(out *Actions) { o.line.dismiss(out) }

// release ends all holds.
func (o *origin) release(out *Actions) {
	for _, entity := range o.heldEntities() {
		o.open(entity, o.holds[entity], out)
	}
}

// describe adds to a snapshot of the cell.
func (o *origin) describe(i *Info) { i.Blocked, i.Window, i.Moved = o.blocked, o.window.n, o.moved }

// tally adds the present numbers to t.
func (o *origin) tally(t *Tally) {
	t.Window += o.window.n
	t.Held += len(o.holds)
}
