// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// CellConfig configures a cell. Zero fields have their defaults.
type CellConfig struct {
	Kind  string
	Shard ShardID
	// Self is this node.
	Self gossip.NodeID
	// WindowBytes bounds what is accepted and not acknowledged. One message
	// always fits. Default 256 KiB.
	WindowBytes int
	// TransitBytes bounds what waits here for a newer map or a missing message,
	// for each origin and for the shard. Default 256 KiB.
	TransitBytes int
	// Mailbox bounds the messages that wait for one entity. Default 1000.
	Mailbox int
	// Resend is the time without an acknowledgement after which the window is
	// transmitted again; it doubles up to eight times. Default 2 s.
	Resend time.Duration
	// BackoffMin and BackoffMax bound the time for which an entity that could not
	// be started fails its messages at once; it doubles from one to the other.
	// Default 1 s and 30 s.
	BackoffMin, BackoffMax time.Duration
	// OnFailure says what becomes of an entity that failed. Default [Restart].
	OnFailure OnFailure
	// PassivateAfter is the time without a message after which [Cell.Sweep] stops
	// an instance. 0: never.
	PassivateAfter time.Duration
	// StuckAfter is how long an entity may be at one thing before [Cell.Sweep]
	// reports it. 0: for ever.
	StuckAfter time.Duration
}

// OnFailure says what becomes of an entity whose instance was not usable any more
// after a message.
type OnFailure uint8

const (
	// Restart has what waits, and what comes, processed by a new instance. From
	// the second failure without a success in between it rests first, for a time
	// that doubles, and fails its messages meanwhile.
	Restart OnFailure = iota
	// StopOnFailure has what waits fail; the next message starts a new instance.
	StopOnFailure
)

func (c CellConfig) withDefaults() CellConfig {
	for _, d := range []struct {
		at  *int
		def int
	}{{&c.WindowBytes, 256 << 10}, {&c.TransitBytes, 256 << 10}, {&c.Mailbox, 1000}} {
		if *d.at <= 0 {
			*d.at = d.def
		}
	}
	for _, d := range []struct {
		at  *time.Duration
		def time.Duration
	}{{&c.Resend, 2 * time.Second}, {&c.BackoffMin, time.Second}, {&c.BackoffMax, 30 * time.Second}} {
		if *d.at <= 0 {
			*d.at = d.def
		}
	}
	return c
}

// hosting says what a cell is to its shard.
type hosting uint8

const (
	hostNone     hosting = iota // Another node hosts it, or nobody, or who does is not known.
	hostServing                 // This node hosts it.
	hostStopping                // This node hosts it and lets the mailboxes run out.
)

// Cell is the cell of one shard on one node: everything that this node knows
// and does about the shard. It is single-threaded: the runtime guards it by a
// mutex and carries out the actions of each call before it lets go, the
// simulation needs no lock. Methods do not block and do not keep out.
//
// Invariants, which hold between calls:
//
//	S1  the window holds messages with consecutive numbers of the stream of base;
//	S2  a stream's last is the number of messages of it that were delivered here
//	    or at earlier homes since base;
//	S3  at most one message of an entity is being processed;
//	S4  when the cell does not host, no entity exists but those of an earlier
//	    hosting that have not returned yet, and these begin nothing any more.
type Cell struct {
	cfg CellConfig

	route     SetRoute // The highest epoch known.
	base      Epoch    // The base epoch of all streams.
	state     hosting
	epoch     Epoch           // The epoch of the home, while hosting.
	started   *Epoch          // A copy of the epoch that the last entity was started under, see token.
	since     machine.Instant // When the route, or what the cell is, last changed.
	suspended bool
	abandoned bool
	leaving   bool         // The last stop was for the node's leaving.
	former    []formerHome // Since base, the oldest first; see [Cell.Went].
	homes     uint64       // How many homes this node has heard of.

	// The origin's side.
	window   queue
	cursor   *Message         // The first of the window that is to be transmitted.
	next     uint64           // The number of the last message accepted.
	blocked  bool             // The lane to the home is full or broken.
	line     line             // Those who found the window full.
	holds    map[string]*hold // Entities elsewhere that take no messages of this node at present.
	asked    bool             // A lookup is under way.
	askedFor Epoch
	moved    machine.Instant // When the window last moved, or began to fill.
	progress machine.Instant // The same, or when it was last resent.
	patience uint8           // How often the window was resent without progress.
	written  uint64          // How far the present passage had come when the runtime said so last.
	waking   bool            // OpWake was asked for.

	// The host's side.
	streams   map[gossip.NodeID]*stream
	lastUsed  *stream // The stream of the last message, since frames come in runs.
	dirty     []*stream
	transit   queue
	entities  map[string]*Entity
	recent    *Entity // The entity of the last message, since messages come in runs.
	first     *Entity // All entities in the order of creation.
	last      *Entity
	postponed bool // Something waits for the clock to show standing again.
	sweeping  bool // Sweep stopped before next.
	sweep     *Entity
	stuck     int       // Entities that were reported and have not returned.
	released  []*Entity // Left behind, and not returned yet.

	counts Counts
	depth  depth // Of the mailboxes, when Sweep looked last.
	seen   depth // The same of the round that is under way.
}

// stream is the host's side of one inbound stream.
type stream struct {
	origin  gossip.NodeID
	last    uint64 // Delivered up to here.
	needed  uint64 // The number that was last asked for.
	waiting queue  // What came ahead of its turn.
	dirty   bool   // An acknowledgement is due.
}

// NewCell returns a cell that knows nothing yet.
func NewCell(cfg CellConfig) *Cell { return &Cell{cfg: cfg.withDefaults()} }

// Admission says what became of a message given to [Cell.Accept].
type Admission uint8

// The admissions.
const (
	// Accepted: the cell owns the message.
	Accepted Admission = iota
	// WindowFull: the caller still owns it, and tries again after [OpOfferAgain], or
	// takes it back by [Cell.Withdraw].
	WindowFull
	// MailboxFull: the same, for room in the mailbox of the entity, here or at its
	// home.
	MailboxFull
	// EntityFailing: the caller still owns it; it fails with [CodeEntityFailed].
	// [Cell.Reason] says why.
	EntityFailing
	// Ended: the caller still owns it; it fails with [CodeNotDelivered], since
	// this node has stopped.
	Ended
)

// Code returns the error of an admission that failed for good.
func (a Admission) Code() Code {
	switch a {
	case EntityFailing:
		return CodeEntityFailed
	case Ended:
		return CodeNotDelivered
	default:
		return CodeOK
	}
}

// Accept takes a message whose origin is this node. If it is [Accepted], the
// cell owns the message until OpFree or OpFail; else the caller does. A message
// to a shard that this node hosts goes straight to the mailbox when nothing of
// the cell's own stream is outstanding, and never gets a number.
func (c *Cell) Accept(now machine.Instant, m *Message, out *Actions) Admission {
	if c.abandoned {
		m.leaveLine()
		c.refused(CodeNotDelivered)
		return Ended
	}
	m.Origin = c.cfg.Self
	right := m.leaveLine()
	a := c.admitOwn(now, m, right, out)
	if a == EntityFailing {
		c.refused(CodeEntityFailed)
	}
	c.vacated(right, out)
	return a
}

// admitOwn takes a message whose origin is this node, for which room may have been
// kept in a line.
func (c *Cell) admitOwn(now machine.Instant, m *Message, right *line, out *Actions) Admission {
	if c.Local() {
		return c.acceptHere(now, m, right, out)
	}
	if right != &c.line && c.mustWait(m) {
		if h := c.holds[m.Entity]; h != nil {
			h.line.wait(m, m.cost())
			return MailboxFull
		}
		c.line.wait(m, m.cost())
		return WindowFull
	}
	if c.window.n == 0 {
		c.moved, c.progress, c.patience = now, now, 0
	}
	c.push(m)
	c.pump(now, out)
	return Accepted
}

// pump transmits what the window holds from the cursor on, if it can.
func (c *Cell) pump(now machine.Instant, out *Actions) {
	if c.cursor == nil {
		return
	}
	switch {
	case c.state == hostServing:
		c.pumpLocal(now, out)
		return
	case c.route.Home == gossip.NodeID{}:
		c.lookup(Epoch{}, out)
		c.wake(now, out)
		return
	case c.route.Home == c.cfg.Self:
		// Either the mailboxes run out, and the next home is not known yet, or
		// the order to host is still on its way.
		c.lookup(c.route.Epoch, out)
		c.wake(now, out)
		return
	case c.blocked:
		c.wake(now, out)
		return
	}
	out.add(Action{Op: OpTransmit, To: c.route.Home, Message: c.cursor})
	c.cursor = nil
	c.wake(now, out)
}

// pumpLocal delivers the window to this node itself, by the rule that holds for
// every stream: what an earlier home delivered is not delivered again.
func (c *Cell) pumpLocal(now machine.Instant, out *Actions) {
	in := c.stream(c.cfg.Self)
	c.cursor = nil
	for m := c.window.pop(); m != nil; m = c.window.pop() {
		if m.Seq <= in.last {
			out.free(m)
			continue
		}
		in.last = m.Seq
		if code := c.enqueue(now, m, out); code != CodeOK {
			c.refuse(m, code, out)
		}
	}
	c.windowMoved(now, out)
}

// Unsent says that m, of an OpTransmit, could not be appended to its lane, and
// that none that follows it was. They are transmitted by the
// next [Cell.Flush] or [Cell.Tick].
func (c *Cell) Unsent(m *Message) { c.cursor, c.blocked = m, true }

// Flush says that the lane to node has room, or that the connection is up again.
func (c *Cell) Flush(now machine.Instant, node gossip.NodeID, out *Actions) {
	if c.route.Home == node {
		c.blocked = false
		c.pump(now, out)
	}
}

// Collect keeps what is accepted from now on in the window until the next [Cell.Flush]
// or [Cell.Tick], so that it is transmitted in one go with what comes meanwhile. It
// does nothing when the shard has no other home than this node.
func (c *Cell) Collect() {
	if c.state == hostNone && c.route.Home != c.cfg.Self {
		c.blocked = true
	}
}

// Follow puts m, whose origin is this node, behind others that wait for their lane,
// and owns it from now on. False: [Cell.Accept] decides.
func (c *Cell) Follow(m *Message) bool {
	if !c.blocked || c.cursor == nil || c.state != hostNone || c.abandoned || c.mustWait(m) {
		return false
	}
	c.push(m)
	return true
}

// push puts m into the window.
func (c *Cell) push(m *Message) {
	c.counts.Sent++
	c.next++
	m.Origin, m.Seq, m.Base, m.Route, m.place = c.cfg.Self, c.next, c.base, c.route.Epoch, 0
	c.window.push(m)
	if c.cursor == nil {
		c.cursor = m
	}
}

// Home returns the node to which the cell transmits, zero when none is known.
func (c *Cell) Home() gossip.NodeID { return c.route.Home }

// Broken says that the connection to node broke: what was not acknowledged may
// be lost, and is transmitted again by the next [Cell.Flush] or [Cell.Tick].
func (c *Cell) Broken(node gossip.NodeID) {
	if c.route.Home == node && c.state == hostNone {
		c.cursor, c.blocked = c.window.head, true
	}
}

// Acked takes an acknowledgement from a node. One of another base is ignored, and so is
// one of who is not the shard's home.
func (c *Cell) Acked(now machine.Instant, from gossip.NodeID, a Ack, out *Actions) {
	if a.Base != c.base || a.Seq > c.next || !c.atHome(from, out) {
		return
	}
	c.acked(now, a.Seq, out)
}

// acked takes out of the window what the home has.
func (c *Cell) acked(now machine.Instant, seq uint64, out *Actions) {
	over := c.window.cut(seq)
	if over == nil {
		return
	}
	if c.cursor != nil && c.cursor.Seq <= seq {
		c.cursor = c.window.head
	}
	out.free(over)
	c.windowMoved(now, out)
}

// windowMoved notes that the window has moved, and calls those who wait for it.
func (c *Cell) windowMoved(now machine.Instant, out *Actions) {
	c.moved, c.progress, c.patience = now, now, 0
	c.callWindow(out)
}

// Needed takes the request of a shard's home to transmit a stream again from n.Seq on.
func (c *Cell) Needed(now machine.Instant, from gossip.NodeID, n Need, out *Actions) {
	if n.Base != c.base || n.Seq == 0 || n.Seq > c.next || !c.atHome(from, out) {
		return
	}
	c.acked(now, n.Seq-1, out)
	c.cursor = c.window.head
	c.pump(now, out)
}

// lookup asks for a home above an epoch, once until the answer.
func (c *Cell) lookup(above Epoch, out *Actions) {
	if c.asked && !c.askedFor.Less(above) {
		return
	}
	c.asked, c.askedFor = true, above
	out.add(Action{Op: OpEvent, Event: Lookup{Above: above}})
}

// wake asks for a Tick while something waits.
func (c *Cell) wake(now machine.Instant, out *Actions) {
	if c.waking {
		return
	}
	c.waking = true
	out.add(Action{Op: OpWake, At: now.Add(c.cfg.Resend)})
}

// Tick repeats what went unanswered. The runtime calls it as asked by [OpWake];
// calling it more often does no harm.
func (c *Cell) Tick(now machine.Instant, out *Actions) {
	c.waking = false
	if c.postponed && !c.suspended {
		c.postponed = false
		c.restart(now, out)
	}
	c.askFlow(now, out)
	if c.window.n == 0 && c.transit.n == 0 {
		if len(c.holds) > 0 {
			c.wake(now, out)
		}
		return
	}
	c.asked = false
	if c.transit.n > 0 {
		c.retransit(now, out)
	}
	if c.window.n > 0 && now.Sub(c.progress) >= c.cfg.Resend<<min(c.patience, 3) {
		c.progress = now
		c.patience++
		c.blocked = false
		c.cursor = c.window.head
	}
	c.pump(now, out)
	c.wake(now, out)
}

// Deliver takes a message from another node, and owns it from now on. The runtime has
// looked before, by [OriginFault], whether it may come from there.
func (c *Cell) Deliver(now machine.Instant, m *Message, out *Actions) {
	switch age := m.Base.Compare(c.base); {
	case c.abandoned:
		out.drop(m, DropStopped)
	case age < 0:
		out.drop(m, DropOldStream)
	case m.Origin == c.cfg.Self:
		out.drop(m, DropDuplicate)
	case age == 0 && c.state == hostServing:
		c.receive(now, m, out)
	case age == 0 && c.state == hostNone && c.passable(m):
		c.forward(m, out)
	default:
		c.keep(now, m, out)
	}
}

// passable reports whether the own map knows better than the one by which m came.
func (c *Cell) passable(m *Message) bool {
	return c.route.Home != c.cfg.Self && c.route.Home != gossip.NodeID{} && m.Route.Less(c.route.Epoch)
}

// forward passes m on.
func (c *Cell) forward(m *Message, out *Actions) {
	if m.Hops >= MaxHops {
		out.drop(m, DropHops)
		return
	}
	m.Hops++
	m.Route = c.route.Epoch
	out.add(Action{Op: OpForward, To: c.route.Home, Message: m})
	out.free(m)
}

// keep lets m wait for a newer map, or for the shard's next home.
func (c *Cell) keep(now machine.Instant, m *Message, out *Actions) {
	if c.transit.n > 0 && c.transit.bytes+m.cost() > c.cfg.TransitBytes {
		out.drop(m, DropOverflow)
		return
	}
	c.transit.push(m)
	c.lookup(maxEpoch(m.Route, c.route.Epoch), out)
	c.wake(now, out)
}

func maxEpoch(a, b Epoch) Epoch {
	if a.Less(b) {
		return b
	}
	return a
}

// retransit looks at everything that waits as if it had just come.
func (c *Cell) retransit(now machine.Instant, out *Actions) {
	waiting := c.transit
	c.transit = queue{}
	for m := waiting.pop(); m != nil; m = waiting.pop() {
		c.Deliver(now, m, out)
	}
}

// stream returns the inbound stream of an origin.
func (c *Cell) stream(origin gossip.NodeID) *stream {
	if c.lastUsed != nil && c.lastUsed.origin == origin {
		return c.lastUsed
	}
	in := c.streams[origin]
	if in == nil {
		in = &stream{origin: origin}
		if c.streams == nil {
			c.streams = make(map[gossip.NodeID]*stream)
		}
		c.streams[origin] = in
	}
	c.lastUsed = in
	return in
}

// receive delivers by sequence number: each once, in order.
func (c *Cell) receive(now machine.Instant, m *Message, out *Actions) {
	in := c.stream(m.Origin)
	switch {
	case m.Seq <= in.last:
		c.markDirty(in)
		out.drop(m, DropDuplicate)
	case m.Seq == in.last+1:
		c.admit(now, in, m, out)
		for in.waiting.head != nil && in.waiting.head.Seq == in.last+1 {
			c.admit(now, in, in.waiting.pop(), out)
		}
	default:
		c.early(in, m, out)
	}
}

// admit delivers the next message of a stream, or refuses it to its sender.
func (c *Cell) admit(now machine.Instant, in *stream, m *Message, out *Actions) {
	c.counts.Received++
	in.last = m.Seq
	c.markDirty(in)
	if code := c.enqueue(now, m, out); code != CodeOK {
		c.refuse(m, code, out)
	}
}

// early keeps a message that came ahead of its turn, and asks for what is missing.
func (c *Cell) early(in *stream, m *Message, out *Actions) {
	if in.waiting.n > 0 && in.waiting.bytes+m.cost() > c.cfg.TransitBytes {
		out.drop(m, DropOverflow)
	} else if !in.waiting.insert(m) {
		out.drop(m, DropDuplicate)
	}
	if in.needed != in.last+1 {
		in.needed = in.last + 1
		out.add(Action{Op: OpNeed, To: in.origin, Base: c.base, Seq: in.needed})
	}
}

func (c *Cell) markDirty(in *stream) {
	if !in.dirty {
		in.dirty = true
		c.dirty = append(c.dirty, in)
	}
}

// Acks appends the acknowledgements that are due. The runtime calls it once for
// each cell that a frame of the lane touched, after the frame.
func (c *Cell) Acks(out *Actions) {
	for _, in := range c.dirty {
		in.dirty = false
		out.add(Action{Op: OpAck, To: in.origin, Base: c.base, Seq: in.last})
	}
	c.dirty = c.dirty[:0]
}

// refuse answers a message that no entity will process, and gives it up.
func (c *Cell) refuse(m *Message, code Code, out *Actions) {
	if !m.Own {
		c.refused(code)
	}
	detail := ""
	if code == CodeEntityFailed {
		detail = c.Reason(m.Entity)
	}
	switch {
	case m.Own:
		out.free(m)
	case m.Origin == c.cfg.Self && detail == "":
		out.add(Action{Op: OpFail, Message: m, Code: code})
	case m.Origin == c.cfg.Self:
		out.add(Action{Op: OpFail, Message: m, Code: code, Reply: &Reply{Detail: detail}})
	default:
		c.reply(m.Origin, &Reply{Correlation: m.Correlation, Code: code, Detail: detail}, out)
		out.free(m)
	}
}

func (c *Cell) reply(to gossip.NodeID, r *Reply, out *Actions) {
	if c.abandoned {
		return
	}
	r.Kind, r.Shard = c.cfg.Kind, c.cfg.Shard
	out.add(Action{Op: OpReply, To: to, Reply: r})
}

// Local reports whether Accept would put a message straight into a mailbox, so
// that it needs no encoding.
func (c *Cell) Local() bool { return c.state == hostServing && c.window.n == 0 }
