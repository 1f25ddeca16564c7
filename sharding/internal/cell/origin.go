// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"bytes"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/window"
)

// The messages of this node on their way: admit puts a message, as bytes, into the window or, as
// it is, into a line; transmit hands the window to a lane, acked takes from it what the home has,
// and again and repeatLate begin from its front. flow.go holds senders back, passage.go knows what
// has left this node, retract.go takes messages back.

// origin is the part of a cell for the messages that this node accepts for other nodes.
// Invariants, between calls:
//
//	O1  the window holds messages with consecutive numbers of the stream of the base epoch;
//	O2  cursor is 0 or in the window, and the lane has had every message before it;
//	O3  while senders stand in the line, no message that did not stand there passes them
//	    into the window;
//	O4  a sender stands in one line, and a line of a hold has only senders to its entity.
type origin struct {
	env

	// What every message reads or changes stands together, since others use the cell on other
	// processors in between.
	window  window.Window          // Messages of this node that are accepted and not acknowledged.
	cursor  uint64                 // The number of the first message of the window that is to be transmitted; 0: none.
	sent    uint64                 // How many messages were put into the window since the cell was made.
	line    line                   // Senders that found the window full.
	holds   map[string]*heldEntity // Entities elsewhere that take no messages of this node at present, by id.
	blocked bool                   // The lane to the home is full or broken, or the cell collects.

	patience uint8           // How often the window was transmitted again without progress.
	places   places          // Where the messages of the window are on their way.
	moved    machine.Instant // When the window last moved, or began to fill.
	progress machine.Instant // When the window last moved, began to fill, or was transmitted again.
	written  uint64          // The place in the present passage below which messages may have left, see [Outbound.Written].
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
	if o.empty() {
		o.moved, o.progress, o.patience = now, now, 0
	}
	o.push(m)
	return Packed
}

// push puts the bytes of m into the window, under the next number of the stream.
func (o *origin) push(m *Message) {
	o.sent++
	if o.cursor == 0 {
		o.cursor = o.window.Next()
	}
	o.window.Push(&window.Item{
		Entity: m.Entity, Correlation: m.Correlation, Deadline: m.Deadline, Trace: m.Trace, Codec: m.Codec, Flags: m.Flags,
		Payload: m.Payload,
	}, o.cfg.Chunk)
}

// message returns a message of the window with memory of its own.
func (o *origin) message(v *window.View) *Message {
	i := v.Item()
	m := NewMessage(len(i.Payload))
	m.Kind, m.Shard, m.Entity = o.cfg.Kind, o.cfg.Shard, i.Entity
	m.Origin, m.Base, m.Seq, m.Route = o.cfg.Self, o.place.baseEpoch(), v.Seq, o.place.mapEpoch()
	m.Correlation, m.Deadline, m.Trace, m.Codec, m.Flags = i.Correlation, i.Deadline, bytes.Clone(i.Trace), i.Codec, i.Flags
	m.Payload = append(m.Payload, i.Payload...)
	return m
}

// acked takes the messages up to a number, which the home has, out of the window.
func (o *origin) acked(now machine.Instant, seq uint64, out *Actions) {
	if o.cut(seq, out) {
		o.windowMoved(now, out)
	}
}

// cut takes the messages up to a number out of the window. It reports whether there were any.
func (o *origin) cut(seq uint64, out *Actions) bool {
	over := o.window.Cut(seq)
	if over.Len() == 0 {
		return false
	}
	o.places.cut(o.window.First())
	if o.cursor != 0 && o.cursor <= seq {
		o.again()
	}
	out.add(Action{Op: OpAcked, Items: over})
	out.spend(over)
	return true
}

// windowMoved notes that the window has moved, and calls senders that wait for room in it.
func (o *origin) windowMoved(now machine.Instant, out *Actions) {
	o.moved, o.progress, o.patience = now, now, 0
	o.callWindow(out)
}

// callWindow calls senders that wait for the window, when half of it is free.
func (o *origin) callWindow(out *Actions) {
	if o.line.first == nil || o.taken() > o.cfg.WindowBytes/2 {
		return
	}
	for o.line.first != nil && o.fits(o.line.first.cost) {
		o.line.call(out)
	}
}

// taken returns how many bytes of the window are taken, or kept for called senders. A message
// counts here what its home counts for it, or a little more.
func (o *origin) taken() int {
	return o.window.Bytes() + o.window.Len()*messageOverhead + o.line.kept
}

// fits reports whether the window takes a message. One message always fits.
func (o *origin) fits(cost int) bool {
	taken := o.taken()
	return taken == 0 || taken+cost <= o.cfg.WindowBytes
}

// mustWait reports whether a message has to wait in line before it may be put into the
// window. A message that is in a line already counts as waiting: [Cell.Accept] knows
// whether it was called.
func (o *origin) mustWait(m *Message) bool {
	return m.waiter != nil || o.line.first != nil || !o.fits(m.cost()) || len(o.holds) > 0 && o.holds[m.Entity] != nil
}

// unsent does the work of [Outbound.Unsent].
func (o *origin) unsent(seq uint64) { o.cursor, o.blocked = seq, true }

// pending reports whether messages of the window are to be transmitted.
func (o *origin) pending() bool { return o.cursor != 0 }

// transmit hands the window to the lane to a node, from the cursor on.
func (o *origin) transmit(to gossip.NodeID, out *Actions) {
	out.add(Action{Op: OpTransmit, To: to, Seq: o.cursor})
	o.cursor = 0
}

// again has the whole window transmitted once more.
func (o *origin) again() {
	o.cursor = 0
	if !o.empty() {
		o.cursor = o.window.First()
	}
}

// repeatLate has the window transmitted once more when it has not moved for long.
func (o *origin) repeatLate(now machine.Instant) {
	if !o.empty() && now.Sub(o.progress) >= o.cfg.Resend<<min(o.patience, 3) {
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
func (o *origin) empty() bool { return o.window.Len() == 0 }
func (o *origin) held() int   { return len(o.holds) }

// numbered reports whether the stream has a message with a number.
func (o *origin) numbered(seq uint64) bool { return seq < o.window.Next() }

// keeps reports whether a line is that for the window.
func (o *origin) keeps(l *line) bool { return l == &o.line }

// takeWindow empties the window, and returns what was in it and where that was. The next message
// that is put into the window has a number.
func (o *origin) takeWindow(next uint64, out *Actions) (window.Items, places) {
	all, at := o.window.From(o.window.First()), o.places
	out.spend(all)
	o.window, o.places, o.cursor = window.New(next), nil, 0
	return all, at
}

// take empties the window, for a node that delivers its own messages, and calls f for each
// message behind one with a number. The messages up to that one were delivered at an earlier
// home.
func (o *origin) take(now machine.Instant, delivered uint64, f func(m *Message), out *Actions) {
	o.cut(delivered, out)
	all, _ := o.takeWindow(o.window.Next(), out)
	for v := (window.View{}); all.Next(&v); {
		f(o.message(&v))
	}
	o.windowMoved(now, out)
}

// renumber begins the stream anew, since the shard's host has died. Messages that have left
// this node may or may not have been processed; messages that have not left are numbered
// anew, in order. A copy that leaves later does no harm: before a host is taken for dead
// its fence has passed, so that it begins no message any more.
func (o *origin) renumber(now machine.Instant, out *Actions) {
	old, at := o.takeWindow(1, out)
	for v := (window.View{}); old.Next(&v); {
		if o.left(at.at(v.Seq)) {
			out.add(Action{Op: OpFail, Message: o.message(&v), Code: protocol.CodeUnknownOutcome})
			continue
		}
		o.window.Copy(&v, o.cfg.Chunk)
	}
	o.again()
	o.windowMoved(now, out)
}

// abandon fails the window, since the node has ended.
func (o *origin) abandon(out *Actions) {
	all, at := o.takeWindow(o.window.Next(), out)
	for v := (window.View{}); all.Next(&v); {
		code := protocol.CodeNotDelivered
		if at.at(v.Seq) != 0 {
			code = protocol.CodeUnknownOutcome // A message in a lane may still leave: lanes linger.
		}
		out.add(Action{Op: OpFail, Message: o.message(&v), Code: code})
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
func (o *origin) describe(i *Info) { i.Blocked, i.Window, i.Moved = o.blocked, o.window.Len(), o.moved }

// tally adds the present numbers to t.
func (o *origin) tally(t *Tally) {
	t.Sent += o.sent
	t.Window += o.window.Len()
	t.Held += len(o.holds)
}
