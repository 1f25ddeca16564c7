// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/handoff"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/window"
)

// A message of this node goes through Accept into the window or straight into a mailbox, by
// pump to the home, and leaves the window by Acked. A message of another node goes through
// Deliver: by receive into a mailbox, by forward to the present home, or by keep into the
// transit queue. Tick repeats what went unanswered. Two more files are inputs of the cell:
// home.go takes the orders of the control machine, outcomes.go what the runtime says of the
// actions. The parts are in place.go, origin.go, inbound.go, entitytable.go,
// memory.go and alarm.go.

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
	// Chunk makes memory for messages on their way to other nodes: a chunk for n bytes, see
	// [window.NewChunk], which is the default. Chunks come back as [Actions.Spent].
	Chunk func(n int) *window.Chunk
	// OnFailure says what becomes of an entity that failed. Default [Restart].
	OnFailure OnFailure
	// PassivateAfter is the time without a message after which [Maintenance.Sweep] stops
	// an instance. 0: never.
	PassivateAfter time.Duration
	// StuckAfter is how long an entity may take for one message, its start or its stop
	// before [Maintenance.Sweep] reports it. 0: for ever.
	StuckAfter time.Duration
	// Snapshots bound the memory of entities that goes with the shard; zero: none does.
	Snapshots handoff.Limits
	// SnapshotTimeout is how long an entity may take for its snapshot before the shard goes on
	// without it. Default 30 s.
	SnapshotTimeout time.Duration
	// Limiter bounds the instances of the region; nil: nothing does. See [Maintenance.Limit].
	Limiter Limiter
	// Permanent are the entities of the shard that run whenever this node hosts it, without a
	// message. They are not stopped for being idle, and those that could not start, or failed,
	// start again when they have rested, whatever OnFailure says.
	Permanent []string
	// Withheld are those of Permanent that do not run before a message comes, or [Handoff.Admit]: their shards of the
	// layout before are not retired.
	Withheld []string
	// RememberPort has entities that have begun run as those that are permanent, until they stop
	// themselves for good; nil: nothing does. RememberFirst has the first message to an entity wait until
	// it is remembered. Neither PassivateAfter nor Limiter goes with it.
	Rememberer    RememberPort
	RememberFirst bool
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
	}{{&c.Resend, 2 * time.Second}, {&c.BackoffMin, time.Second}, {&c.BackoffMax, 30 * time.Second}, {&c.SnapshotTimeout, 30 * time.Second}} {
		if *d.at <= 0 {
			*d.at = d.def
		}
	}
	if c.Chunk == nil {
		c.Chunk = window.NewChunk
	}
	return c
}

// Cell is the cell of one shard on one node: everything that this node knows
// and does about the shard. A cell belongs to one goroutine at a time: the runtime guards
// it by a mutex, and carries out the actions of each call before it unlocks the mutex.
// Methods do not block, and do not keep their parameter out.
//
// A Cell is the front of its parts, each of which has its own state and says what holds of
// it: the cell takes an input, asks the place what it means here, and has the parts do what
// follows, in an order that is the cell's to keep. The parts use the place and the alarm,
// and the entity table the memory; of the other parts they know nothing.
type Cell struct {
	cfg      Config
	place    place       // Where the shard lives, and what this node may do about it.
	own      origin      // The messages of this node.
	in       inbound     // The messages of other nodes, until they are in a mailbox.
	entities entityTable // The entities, while this node hosts them.
	memory   memory      // What entities without an instance have left for their next one.
	alarm    alarm       // When the cell is to be called again.
	counts   Counts
}

// New returns a cell that knows no home yet.
func New(cfg Config) *Cell {
	c := &Cell{cfg: cfg.withDefaults()}
	s := env{cfg: &c.cfg, place: &c.place, alarm: &c.alarm, counts: &c.counts}
	c.place.cfg, c.alarm.cfg = &c.cfg, &c.cfg
	c.own.env, c.in.env, c.entities.env, c.memory.env = s, s, s, s
	c.entities.memory, c.memory.buffer = &c.memory, handoff.New(c.cfg.Snapshots)
	c.entities.limiter.cfg, c.entities.remembering.env = &c.cfg, s
	c.own.window = window.New(1)
	return c
}

// env has what all parts of a cell use.
type env struct {
	cfg    *Config
	place  *place
	alarm  *alarm
	counts *Counts
}

// Admission says what became of a message given to [Cell.Accept].
type Admission uint8

// The admissions.
const (
	// Accepted: the cell owns the message.
	Accepted Admission = iota
	// Packed: the message is accepted, and the cell has its bytes. The caller still owns the
	// message, and may use it for another.
	Packed
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
	// Moved: the caller still owns the message, and offers it to the entity's shard of the next
	// layout, since this one is retired.
	Moved
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
// empty, and never gets a number. Every other message needs its payload, and is [Packed].
func (c *Cell) Accept(now machine.Instant, m *Message, out *Actions) Admission {
	if c.place.isOver() {
		m.leaveLine()
		c.counts.refused(protocol.CodeNotDelivered)
		return Ended
	}
	if c.place.isRetired() {
		m.leaveLine()
		return Moved
	}
	m.Origin = c.cfg.Self
	right := m.leaveLine()
	a := c.admitOwn(now, m, right, out)
	if a == EntityFailing {
		c.counts.refused(protocol.CodeEntityFailed)
	}
	c.vacated(right, out)
	return a
}

// admitOwn takes a message whose origin is this node. If a line has kept room for the
// message, right is that line; else nil.
func (c *Cell) admitOwn(now machine.Instant, m *Message, right *line, out *Actions) Admission {
	if c.Local() {
		return c.entities.acceptHere(now, m, right, out)
	}
	a := c.own.admit(now, m, right)
	if a == Packed {
		c.pump(now, out)
	}
	return a
}

// pump transmits the messages of the window from the cursor on, if the home is known and
// its lane has room.
func (c *Cell) pump(now machine.Instant, out *Actions) {
	if !c.own.pending() {
		return
	}
	switch {
	case c.place.serves():
		c.pumpLocal(now, out)
		return
	case c.place.home() == gossip.NodeID{}:
		c.place.lookup(protocol.Epoch{}, out)
		c.alarm.wake(now, out)
		return
	case c.place.home() == c.cfg.Self:
		// Either this node lets its mailboxes run out, and the next home is not known
		// yet, or the order to host is still on its way.
		c.place.lookup(c.place.mapEpoch(), out)
		c.alarm.wake(now, out)
		return
	case c.own.isBlocked():
		c.alarm.wake(now, out)
		return
	}
	c.own.transmit(c.place.home(), out)
	c.alarm.wake(now, out)
}

// pumpLocal delivers the window to this node itself, by the rule that holds for
// every stream: a message that an earlier home delivered is not delivered again.
func (c *Cell) pumpLocal(now machine.Instant, out *Actions) {
	c.own.take(now, c.in.ownDelivered(), func(m *Message) {
		c.in.deliverOwn(m.Seq)
		c.entities.enqueue(now, m.Entity, MailOf(nil, m), m.cost(), out)
	}, out)
}

// Flush says that the lane to node has room, or that the connection is up again.
func (c *Cell) Flush(now machine.Instant, node gossip.NodeID, out *Actions) {
	if c.place.home() == node {
		c.own.unblock()
		c.pump(now, out)
	}
}

// Collect keeps the messages that are accepted from now on in the window until the next
// [Cell.Flush] or [Cell.Tick], so that they are transmitted in one go. It does nothing
// when this node hosts the shard or is its home.
func (c *Cell) Collect() {
	if !c.place.hosts() && c.place.home() != c.cfg.Self {
		c.own.block()
	}
}

// Follow puts the bytes of m, whose origin is this node, behind the messages that wait for their
// lane, as [Cell.Accept] does with [Packed]. False: nothing was done, and Accept decides.
func (c *Cell) Follow(m *Message) bool {
	if c.place.isRetired() || !c.own.isBlocked() || !c.own.pending() || c.place.hosts() || c.place.isOver() || c.own.mustWait(m) {
		return false
	}
	c.own.push(m)
	return true
}

// Home returns the node to which the cell transmits, zero when none is known.
func (c *Cell) Home() gossip.NodeID { return c.place.home() }

// Broken says that the connection to node broke: messages without an acknowledgement may
// be lost, and are transmitted again by the next [Cell.Flush] or [Cell.Tick].
func (c *Cell) Broken(node gossip.NodeID) {
	if c.place.home() == node && !c.place.hosts() {
		c.own.again()
		c.own.block()
	}
}

// Acked takes an acknowledgement from a node. An acknowledgement of another base is
// ignored, and so is that of a node that is not the shard's home.
func (c *Cell) Acked(now machine.Instant, from gossip.NodeID, a protocol.Ack, out *Actions) {
	if a.Base != c.place.baseEpoch() || !c.own.numbered(a.Seq) || !c.place.atHome(from, out) {
		return
	}
	c.own.acked(now, a.Seq, out)
}

// Needed takes the request of a shard's home to transmit a stream again from n.Seq on.
func (c *Cell) Needed(now machine.Instant, from gossip.NodeID, n protocol.Nack, out *Actions) {
	if n.Base != c.place.baseEpoch() || n.Seq == 0 || !c.own.numbered(n.Seq) || !c.place.atHome(from, out) {
		return
	}
	c.own.acked(now, n.Seq-1, out)
	c.own.again()
	c.pump(now, out)
}

// Tick repeats what went unanswered. The runtime calls Tick as asked by [OpWake]; further
// calls do no harm.
func (c *Cell) Tick(now machine.Instant, out *Actions) {
	if c.alarm.rang(c.place.isSuspended()) {
		c.entities.restart(now, out)
		c.checkHalted(now, out)
	}
	c.entities.keepUp(now, out)
	c.Handoff().hurry(now, out)
	c.own.askFlow(now, out)
	if c.own.empty() && c.in.kept() == 0 {
		if c.own.held() > 0 {
			c.alarm.wake(now, out)
		}
		return
	}
	c.place.lookAgain()
	if c.in.kept() > 0 {
		c.retransit(now, out)
	}
	c.own.repeatLate(now)
	c.pump(now, out)
	c.alarm.wake(now, out)
}

// Deliver takes a message from another node, and the cell owns it from now on. The runtime
// has checked before, by [OriginFault], that the message may come from that node.
func (c *Cell) Deliver(now machine.Instant, m *Message, out *Actions) {
	switch age := m.Base.Compare(c.place.baseEpoch()); {
	case c.place.isOver():
		out.drop(m, DropStopped)
	case age < 0:
		out.drop(m, DropOldStream)
	case c.place.isRetired():
		out.drop(m, DropOldStream)
	case m.Origin == c.cfg.Self:
		out.drop(m, DropDuplicate)
	case age == 0 && c.place.serves():
		c.receive(now, m, out)
	case age == 0 && !c.place.hosts() && c.place.passable(m):
		c.place.forward(m, out)
	default:
		c.in.keep(now, m, out)
	}
}

func maxEpoch(a, b protocol.Epoch) protocol.Epoch {
	if a.Less(b) {
		return b
	}
	return a
}

// retransit delivers the messages of the transit queue as if they had just come.
func (c *Cell) retransit(now machine.Instant, out *Actions) {
	waiting := c.in.takeTransit()
	for m := waiting.pop(); m != nil; m = waiting.pop() {
		c.Deliver(now, m, out)
	}
}

// receive delivers the messages of a stream by their numbers: each once, in order.
func (c *Cell) receive(now machine.Instant, m *Message, out *Actions) {
	in := c.in.stream(m.Origin)
	if c.in.take(in, m, out) {
		c.deliverFrom(now, in, m, out)
	}
}

// deliverFrom delivers the next message of a stream, and those that have waited for it.
func (c *Cell) deliverFrom(now machine.Instant, in *stream, m *Message, out *Actions) {
	for ; m != nil; m = in.following() {
		c.counts.Received++
		c.in.delivered(in, m.Seq, m.cost(), out)
		c.entities.enqueue(now, m.Entity, MailOf(m.Value, m), m.cost(), out)
	}
}

// Arrival is a message of another node whose value the runtime has decoded.
type Arrival struct {
	Origin gossip.NodeID
	Base   protocol.Epoch
	Seq    uint64
	Entity string
	Bytes  int // The size of the payload.
	Mail   Mail
}

// Enter delivers a message of another node, if it goes into a mailbox now: this node serves the
// shard, and the message is the next one of its stream. False: nothing was done, and
// [Cell.Deliver] decides, which needs the message encoded.
func (c *Cell) Enter(now machine.Instant, a *Arrival, out *Actions) bool {
	if !c.place.serves() || c.place.isOver() || a.Base != c.place.baseEpoch() || a.Origin == c.cfg.Self {
		return false
	}
	in := c.in.stream(a.Origin)
	if a.Seq != in.last+1 {
		return false
	}
	c.counts.Received++
	cost := a.Bytes + len(a.Entity) + len(a.Mail.Trace()) + messageOverhead
	c.in.delivered(in, a.Seq, cost, out)
	switch about := a.Mail.about; {
	case about == nil:
		a.Mail.about = &in.about
	case about.message == nil:
		about.from = in
	}
	c.entities.enqueue(now, a.Entity, a.Mail, cost, out)
	if m := in.following(); m != nil {
		c.deliverFrom(now, in, m, out)
	}
	return true
}

// Serves reports whether messages go into mailboxes here.
func (c *Cell) Serves() bool { return c.place.serves() }

// Local reports whether Accept would put a message straight into a mailbox, so
// that it needs no encoding.
func (c *Cell) Local() bool { return c.place.serves() && c.own.empty() }

// Withdraw takes back a message for which [Cell.Accept] found no room, when its sender
// waits no longer.
func (c *Cell) Withdraw(m *Message, out *Actions) {
	switch t := m.waiter; {
	case t == nil:
		return
	case t.line.entity != nil && c.place.isSuspended():
		c.counts.refused(protocol.CodeNoStanding)
	default:
		c.counts.refused(protocol.CodeOverloaded)
	}
	c.vacated(m.leaveLine(), out)
}

// vacated calls further senders when room of a line is not kept any more; nil for no line.
func (c *Cell) vacated(l *line, out *Actions) {
	switch {
	case l == nil:
	case c.own.keeps(l):
		c.own.callWindow(out)
	case l.entity != nil:
		c.entities.vacated(l.entity, out)
	}
}

// Flowed handles flow control between nodes: at a host, the question whether an entity still holds the
// senders back; at a sender, to hold messages to an entity back or to let them go on.
func (c *Cell) Flowed(now machine.Instant, from gossip.NodeID, f protocol.Flow, out *Actions) {
	switch {
	case c.place.isOver():
	case f.State == protocol.FlowAsk:
		c.entities.flowAsked(now, from, f.Entity, out)
	case !c.place.atHome(from, out):
	case c.place.hosts():
	case f.State == protocol.FlowHold && !f.Epoch.Less(c.place.mapEpoch()):
		c.own.holdBack(now, f)
		c.alarm.wake(now, out)
	case f.State == protocol.FlowOpen:
		c.own.letOn(f, out)
	}
}
