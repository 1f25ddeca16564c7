// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// A message of this node goes through Accept into the window or straight into a mailbox, by
// pump to the home, and leaves the window by Acked. A message of another node goes through
// Deliver: by receive into a mailbox, by forward to the present home, or by keep into the
// transit queue. Tick repeats what went unanswered. The other files continue from there:
// home.go takes the orders of the control machine, entities.go runs the mailboxes.

// Config configures a cell. A field that is zero has its default.
type Config struct {
	Kind  string
	Shard protocol.ShardID
	// Self is this node.
	Self gossip.NodeID
	// WindowBytes bounds the messages that are accepted and not acknowledged. One message
	// always fits. Default 256 KiB.
	WindowBytes int
	// TransitBytes bounds two sorts of messages of other nodes: those of one origin that
	// wait for a missing one, and those that wait for a newer map. Default 256 KiB.
	TransitBytes int
	// Mailbox bounds the messages that wait for one entity. Default 1000.
	Mailbox int
	// Resend is the time without an acknowledgement after which the window is
	// transmitted again; it doubles each time, up to the eightfold. Default 2 s.
	Resend time.Duration
	// BackoffMin and BackoffMax bound the time for which an entity that could not
	// be started, or failed repeatedly, fails its messages at once: the time doubles with
	// each failure. Default 1 s and 30 s.
	BackoffMin, BackoffMax time.Duration
	// OnFailure says what becomes of an entity that failed. Default [Restart].
	OnFailure OnFailure
	// PassivateAfter is the time without a message after which [Cell.Sweep] stops
	// an instance. 0: never.
	PassivateAfter time.Duration
	// StuckAfter is how long an entity may take for one message, its start or its stop
	// before [Cell.Sweep] reports it. 0: for ever.
	StuckAfter time.Duration
}

// OnFailure says what becomes of an entity whose instance failed at a message.
type OnFailure uint8

const (
	// Restart has a new instance process the messages that wait and those that come. From
	// the second failure without a success in between the entity rests first, for a time
	// that doubles, and fails its messages meanwhile.
	Restart OnFailure = iota
	// StopOnFailure has the messages that wait fail; the next message starts a new
	// instance.
	StopOnFailure
)

func (c Config) withDefaults() Config {
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

// hosting says whether a cell hosts its shard.
type hosting uint8

const (
	hostNone     hosting = iota // This node does not host the shard; another node may, and may not be known.
	hostServing                 // This node hosts the shard.
	hostStopping                // This node hosts the shard and lets its mailboxes run out.
)

// Cell is the cell of one shard on one node: everything that this node knows
// and does about the shard. A cell belongs to one goroutine at a time: the runtime guards
// it by a mutex, and carries out the actions of each call before it unlocks the mutex; the
// simulation needs no lock. Methods do not block, and do not keep their parameter out.
//
// Invariants, which hold between calls:
//
//	S1  the window holds messages with consecutive numbers of the stream of base;
//	S2  the field last of a stream is the number of its messages that were delivered
//	    here or at earlier homes since base;
//	S3  at most one message of an entity is being processed;
//	S4  when the cell does not host, no entity exists but those of an earlier
//	    hosting that have not returned yet, and these begin no message any more.
type Cell struct {
	cfg Config

	route     protocol.SetRoute // The highest epoch known.
	base      protocol.Epoch    // The base epoch of all streams.
	state     hosting
	epoch     protocol.Epoch  // The epoch of the home, while hosting.
	started   *protocol.Epoch // A copy of the epoch under which the last entity was started, see token.
	since     machine.Instant // When route or state last changed.
	suspended bool            // The node has no standing, see [protocol.Suspend].
	abandoned bool            // The node has ended, see [protocol.Abandon].
	leaving   bool            // The last stop of the shard was because the node leaves.
	former    []formerHome    // Earlier homes of the shard since base, the oldest first; see [Cell.Went].
	homes     uint64          // How many homes this cell has heard of.

	// The origin's side.
	window   queue            // Messages of this node that are accepted and not acknowledged.
	cursor   *Message         // The first message of the window that is to be transmitted.
	next     uint64           // The number of the last message that was put into the window.
	blocked  bool             // The lane to the home is full or broken, or the cell collects.
	line     line             // Senders that found the window full.
	holds    map[string]*hold // Entities elsewhere that take no messages of this node at present, by id.
	asked    bool             // A lookup is under way.
	askedFor protocol.Epoch   // The epoch that the home of the lookup under way must exceed.
	moved    machine.Instant  // When the window last moved, or began to fill.
	progress machine.Instant  // When the window last moved, began to fill, or was transmitted again.
	patience uint8            // How often the window was transmitted again without progress.
	written  uint64           // The place in the present passage below which messages may have left, see [Cell.Written].
	waking   bool             // An OpWake is under way.

	// The host's side.
	streams   map[gossip.NodeID]*stream
	lastUsed  *stream   // The stream of the last message, since frames come in runs.
	dirty     []*stream // The streams for which an acknowledgement is due.
	transit   queue     // Messages of other nodes that wait for a newer map or for the shard's next home.
	entities  map[string]*Entity
	recent    *Entity   // The entity of the last message, since messages come in runs.
	first     *Entity   // The first of a list of all entities in the order of creation.
	last      *Entity   // The last of that list.
	postponed bool      // A message, a reply or a stop waits for the clock to show standing again.
	sweeping  bool      // A round of Sweep is under way, and goes on with the entity sweep.
	sweep     *Entity   // The entity with which the next call of Sweep goes on.
	stuck     int       // The number of entities that were reported as stuck and have not returned.
	released  []*Entity // Entities that were left behind and have not returned yet.

	counts Counts
	depth  depth // Of the mailboxes, as the last whole round of Sweep found them.
	seen   depth // Of the mailboxes that the present round of Sweep has seen so far.
}

// stream is the host's side of one inbound stream.
type stream struct {
	origin  gossip.NodeID
	last    uint64 // The number of the last message that was delivered.
	needed  uint64 // The number of the message that was last asked for by OpNeed.
	waiting queue  // Messages that came before one with a lower number.
	dirty   bool   // An acknowledgement is due.
}

// New returns a cell that knows no home yet.
func New(cfg Config) *Cell { return &Cell{cfg: cfg.withDefaults()} }

// Admission says what became of a message given to [Cell.Accept].
type Admission uint8

// The admissions.
const (
	// Accepted: the cell owns the message.
	Accepted Admission = iota
	// WindowFull: the caller still owns the message, and offers it again after
	// [OpOfferAgain], or gives up by [Cell.Withdraw].
	WindowFull
	// MailboxFull is like WindowFull, but the mailbox of the entity is full, here or at
	// its home.
	MailboxFull
	// EntityFailing: the caller still owns the message, which fails with [protocol.CodeEntityFailed].
	// [Cell.Reason] says why.
	EntityFailing
	// Ended: the caller still owns the message, which fails with [protocol.CodeNotDelivered], since
	// this node has stopped.
	Ended
)

// Code returns the error of an admission after which there is no other try; [protocol.CodeOK] for
// the others.
func (a Admission) Code() protocol.Code {
	switch a {
	case EntityFailing:
		return protocol.CodeEntityFailed
	case Ended:
		return protocol.CodeNotDelivered
	default:
		return protocol.CodeOK
	}
}

// Accept takes a message whose origin is this node. If the result is [Accepted], the
// cell owns the message until OpFree or OpFail; else the caller does. A message
// to a shard that this node hosts goes straight to the mailbox when the window is
// empty, and never gets a number.
func (c *Cell) Accept(now machine.Instant, m *Message, out *Actions) Admission {
	if c.abandoned {
		m.leaveLine()
		c.refused(protocol.CodeNotDelivered)
		return Ended
	}
	m.Origin = c.cfg.Self
	right := m.leaveLine()
	a := c.admitOwn(now, m, right, out)
	if a == EntityFailing {
		c.refused(protocol.CodeEntityFailed)
	}
	c.vacated(right, out)
	return a
}

// admitOwn takes a message whose origin is this node. If a line has kept room for the
// message, right is that line; else nil.
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

// pump transmits the messages of the window from the cursor on, if the home is known and
// its lane has room.
func (c *Cell) pump(now machine.Instant, out *Actions) {
	if c.cursor == nil {
		return
	}
	switch {
	case c.state == hostServing:
		c.pumpLocal(now, out)
		return
	case c.route.Home == gossip.NodeID{}:
		c.lookup(protocol.Epoch{}, out)
		c.wake(now, out)
		return
	case c.route.Home == c.cfg.Self:
		// Either this node lets its mailboxes run out, and the next home is not known
		// yet, or the order to host is still on its way.
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
// every stream: a message that an earlier home delivered is not delivered again.
func (c *Cell) pumpLocal(now machine.Instant, out *Actions) {
	in := c.stream(c.cfg.Self)
	c.cursor = nil
	for m := c.window.pop(); m != nil; m = c.window.pop() {
		if m.Seq <= in.last {
			out.free(m)
			continue
		}
		in.last = m.Seq
		if code := c.enqueue(now, m, out); code != protocol.CodeOK {
			c.refuse(m, code, out)
		}
	}
	c.windowMoved(now, out)
}

// Unsent says that m, of an OpTransmit, could not be appended to its lane, nor any message
// that follows it. They are transmitted by the next [Cell.Flush] or [Cell.Tick].
func (c *Cell) Unsent(m *Message) { c.cursor, c.blocked = m, true }

// Flush says that the lane to node has room, or that the connection is up again.
func (c *Cell) Flush(now machine.Instant, node gossip.NodeID, out *Actions) {
	if c.route.Home == node {
		c.blocked = false
		c.pump(now, out)
	}
}

// Collect keeps the messages that are accepted from now on in the window until the next
// [Cell.Flush] or [Cell.Tick], so that they are transmitted in one go. It does nothing
// when this node hosts the shard or is its home.
func (c *Cell) Collect() {
	if c.state == hostNone && c.route.Home != c.cfg.Self {
		c.blocked = true
	}
}

// Follow puts m, whose origin is this node, behind the messages that wait for their lane,
// and the cell owns m from now on. False: nothing was done, and [Cell.Accept] decides.
func (c *Cell) Follow(m *Message) bool {
	if !c.blocked || c.cursor == nil || c.state != hostNone || c.abandoned || c.mustWait(m) {
		return false
	}
	c.push(m)
	return true
}

// push puts m into the window, under the next number of the stream.
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

// Broken says that the connection to node broke: messages without an acknowledgement may
// be lost, and are transmitted again by the next [Cell.Flush] or [Cell.Tick].
func (c *Cell) Broken(node gossip.NodeID) {
	if c.route.Home == node && c.state == hostNone {
		c.cursor, c.blocked = c.window.head, true
	}
}

// Acked takes an acknowledgement from a node. An acknowledgement of another base is
// ignored, and so is that of a node that is not the shard's home.
func (c *Cell) Acked(now machine.Instant, from gossip.NodeID, a protocol.Ack, out *Actions) {
	if a.Base != c.base || a.Seq > c.next || !c.atHome(from, out) {
		return
	}
	c.acked(now, a.Seq, out)
}

// acked takes the messages up to a number, which the home has, out of the window.
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

// windowMoved notes that the window has moved, and calls senders that wait for room in it.
func (c *Cell) windowMoved(now machine.Instant, out *Actions) {
	c.moved, c.progress, c.patience = now, now, 0
	c.callWindow(out)
}

// Needed takes the request of a shard's home to transmit a stream again from n.Seq on.
func (c *Cell) Needed(now machine.Instant, from gossip.NodeID, n protocol.Need, out *Actions) {
	if n.Base != c.base || n.Seq == 0 || n.Seq > c.next || !c.atHome(from, out) {
		return
	}
	c.acked(now, n.Seq-1, out)
	c.cursor = c.window.head
	c.pump(now, out)
}

// lookup asks for a home above an epoch, once until the answer.
func (c *Cell) lookup(above protocol.Epoch, out *Actions) {
	if c.asked && !c.askedFor.Less(above) {
		return
	}
	c.asked, c.askedFor = true, above
	out.add(Action{Op: OpEvent, Event: protocol.Lookup{Above: above}})
}

// wake asks for a Tick after the time to transmit again, unless a Tick is due already.
func (c *Cell) wake(now machine.Instant, out *Actions) {
	if c.waking {
		return
	}
	c.waking = true
	out.add(Action{Op: OpWake, At: now.Add(c.cfg.Resend)})
}

// Tick repeats what went unanswered. The runtime calls Tick as asked by [OpWake]; further
// calls do no harm.
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

// Deliver takes a message from another node, and the cell owns it from now on. The runtime
// has checked before, by [OriginFault], that the message may come from that node.
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

// passable reports whether m should be passed on: this node knows a newer home than the
// map by which m was sent here.
func (c *Cell) passable(m *Message) bool {
	return c.route.Home != c.cfg.Self && c.route.Home != gossip.NodeID{} && m.Route.Less(c.route.Epoch)
}

// forward passes m on to the home, unless it was passed on too often.
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

func maxEpoch(a, b protocol.Epoch) protocol.Epoch {
	if a.Less(b) {
		return b
	}
	return a
}

// retransit delivers the messages of the transit queue as if they had just come.
func (c *Cell) retransit(now machine.Instant, out *Actions) {
	waiting := c.transit
	c.transit = queue{}
	for m := waiting.pop(); m != nil; m = waiting.pop() {
		c.Deliver(now, m, out)
	}
}

// stream returns the inbound stream of an origin, which it creates if there is none.
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

// receive delivers the messages of a stream by their numbers: each once, in order.
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
	if code := c.enqueue(now, m, out); code != protocol.CodeOK {
		c.refuse(m, code, out)
	}
}

// early keeps a message that came before one with a lower number, and asks for the
// missing ones.
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

// Acks appends the acknowledgements that are due. The runtime calls Acks after messages
// were delivered, with or without a delay.
func (c *Cell) Acks(out *Actions) {
	for _, in := range c.dirty {
		in.dirty = false
		out.add(Action{Op: OpAck, To: in.origin, Base: c.base, Seq: in.last})
	}
	c.dirty = c.dirty[:0]
}

// refuse answers a message that no entity will process with an error, and gives the
// message up.
func (c *Cell) refuse(m *Message, code protocol.Code, out *Actions) {
	if !m.Own {
		c.refused(code)
	}
	detail := ""
	if code == protocol.CodeEntityFailed {
		detail = c.Reason(m.Entity)
	}
	switch {
	case m.Own:
		out.free(m)
	case m.Origin == c.cfg.Self && detail == "":
		out.add(Action{Op: OpFail, Message: m, Code: code})
	case m.Origin == c.cfg.Self:
		out.add(Action{Op: OpFail, Message: m, Code: code, Reply: &protocol.Reply{Detail: detail}})
	default:
		c.reply(m.Origin, &protocol.Reply{Correlation: m.Correlation, Code: code, Detail: detail}, out)
		out.free(m)
	}
}

func (c *Cell) reply(to gossip.NodeID, r *protocol.Reply, out *Actions) {
	if c.abandoned {
		return
	}
	r.Kind, r.Shard = c.cfg.Kind, c.cfg.Shard
	out.add(Action{Op: OpReply, To: to, Reply: r})
}

// Local reports whether Accept would put a message straight into a mailbox, so
// that it needs no encoding.
func (c *Cell) Local() bool { return c.state == hostServing && c.window.n == 0 }

// Reload gives the cell other times. 0 means never, as in [Config].
func (c *Cell) Reload(passivateAfter, stuckAfter time.Duration) {
	c.cfg.PassivateAfter, c.cfg.StuckAfter = passivateAfter, stuckAfter
}
