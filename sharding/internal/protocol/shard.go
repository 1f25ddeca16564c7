// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// ShardConfig configures a cell. Zero fields have their defaults.
type ShardConfig struct {
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
	// PassivateAfter is the time without a message after which [Shard.Sweep] stops
	// an instance. 0: never.
	PassivateAfter time.Duration
	// StuckAfter is how long an entity may be at one thing before [Shard.Sweep]
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

func (c ShardConfig) withDefaults() ShardConfig {
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

// Shard is the cell of one shard on one node: everything that this node knows
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
type Shard struct {
	cfg ShardConfig

	route     SetRoute // The highest epoch known.
	base      Epoch    // The base epoch of all streams.
	state     hosting
	epoch     Epoch           // The epoch of the home, while hosting.
	started   *Epoch          // A copy of the epoch that the last entity was started under, see token.
	since     machine.Instant // When the route, or what the cell is, last changed.
	suspended bool
	abandoned bool
	leaving   bool         // The last stop was for the node's leaving.
	former    []formerHome // Since base, the oldest first; see [Shard.Went].
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

// NewShard returns a cell that knows nothing yet.
func NewShard(cfg ShardConfig) *Shard { return &Shard{cfg: cfg.withDefaults()} }

// Admission says what became of a message given to [Shard.Accept].
type Admission uint8

// The admissions.
const (
	// Accepted: the cell owns the message.
	Accepted Admission = iota
	// WindowFull: the caller still owns it, and tries again after [OpRoom], or
	// takes it back by [Shard.Withdraw].
	WindowFull
	// MailboxFull: the same, for room in the mailbox of the entity, here or at its
	// home.
	MailboxFull
	// EntityFailing: the caller still owns it; it fails with [CodeEntityFailed].
	// [Shard.Reason] says why.
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
func (s *Shard) Accept(now machine.Instant, m *Message, out *Actions) Admission {
	if s.abandoned {
		m.redeem()
		s.refused(CodeNotDelivered)
		return Ended
	}
	m.Origin = s.cfg.Self
	right := m.redeem()
	a := s.admitOwn(now, m, right, out)
	if a == EntityFailing {
		s.refused(CodeEntityFailed)
	}
	s.vacated(right, out)
	return a
}

// admitOwn takes a message whose origin is this node, for which room may have been
// kept in a line.
func (s *Shard) admitOwn(now machine.Instant, m *Message, right *line, out *Actions) Admission {
	if s.Local() {
		return s.acceptHere(now, m, right, out)
	}
	if right != &s.line && s.mustWait(m) {
		if h := s.holds[m.Entity]; h != nil {
			h.line.wait(m, m.cost())
			return MailboxFull
		}
		s.line.wait(m, m.cost())
		return WindowFull
	}
	if s.window.n == 0 {
		s.moved, s.progress, s.patience = now, now, 0
	}
	s.push(m)
	s.pump(now, out)
	return Accepted
}

// pump transmits what the window holds from the cursor on, if it can.
func (s *Shard) pump(now machine.Instant, out *Actions) {
	if s.cursor == nil {
		return
	}
	switch {
	case s.state == hostServing:
		s.pumpLocal(now, out)
		return
	case s.route.Home == gossip.NodeID{}:
		s.lookup(Epoch{}, out)
		s.wake(now, out)
		return
	case s.route.Home == s.cfg.Self:
		// Either the mailboxes run out, and the next home is not known yet, or
		// the order to host is still on its way.
		s.lookup(s.route.Epoch, out)
		s.wake(now, out)
		return
	case s.blocked:
		s.wake(now, out)
		return
	}
	out.add(Action{Op: OpTransmit, To: s.route.Home, Message: s.cursor})
	s.cursor = nil
	s.wake(now, out)
}

// pumpLocal delivers the window to this node itself, by the rule that holds for
// every stream: what an earlier home delivered is not delivered again.
func (s *Shard) pumpLocal(now machine.Instant, out *Actions) {
	in := s.stream(s.cfg.Self)
	s.cursor = nil
	for m := s.window.pop(); m != nil; m = s.window.pop() {
		if m.Seq <= in.last {
			out.free(m)
			continue
		}
		in.last = m.Seq
		if code := s.enqueue(now, m, out); code != CodeOK {
			s.refuse(m, code, out)
		}
	}
	s.room(now, out)
}

// Unsent says that m, of an OpTransmit, could not be appended to its lane, and
// that none that follows it was. They are transmitted by the
// next [Shard.Flush] or [Shard.Tick].
func (s *Shard) Unsent(m *Message) { s.cursor, s.blocked = m, true }

// Flush says that the lane to node has room, or that the connection is up again.
func (s *Shard) Flush(now machine.Instant, node gossip.NodeID, out *Actions) {
	if s.route.Home == node {
		s.blocked = false
		s.pump(now, out)
	}
}

// Collect keeps what is accepted from now on in the window until the next [Shard.Flush]
// or [Shard.Tick], so that it is transmitted in one go with what comes meanwhile. It
// does nothing when the shard has no other home than this node.
func (s *Shard) Collect() {
	if s.state == hostNone && s.route.Home != s.cfg.Self {
		s.blocked = true
	}
}

// Follow puts m, whose origin is this node, behind others that wait for their lane,
// and owns it from now on. False: [Shard.Accept] decides.
func (s *Shard) Follow(m *Message) bool {
	if !s.blocked || s.cursor == nil || s.state != hostNone || s.abandoned || s.mustWait(m) {
		return false
	}
	s.push(m)
	return true
}

// push puts m into the window.
func (s *Shard) push(m *Message) {
	s.counts.Sent++
	s.next++
	m.Origin, m.Seq, m.Base, m.Route, m.place = s.cfg.Self, s.next, s.base, s.route.Epoch, 0
	s.window.push(m)
	if s.cursor == nil {
		s.cursor = m
	}
}

// Home returns the node to which the cell transmits, zero when none is known.
func (s *Shard) Home() gossip.NodeID { return s.route.Home }

// Broken says that the connection to node broke: what was not acknowledged may
// be lost, and is transmitted again by the next [Shard.Flush] or [Shard.Tick].
func (s *Shard) Broken(node gossip.NodeID) {
	if s.route.Home == node && s.state == hostNone {
		s.cursor, s.blocked = s.window.head, true
	}
}

// Acked takes an acknowledgement from a node. One of another base is ignored, and so is
// one of who is not the shard's home.
func (s *Shard) Acked(now machine.Instant, from gossip.NodeID, a Ack, out *Actions) {
	if a.Base != s.base || a.Seq > s.next || !s.atHome(from, out) {
		return
	}
	s.acked(now, a.Seq, out)
}

// acked takes out of the window what the home has.
func (s *Shard) acked(now machine.Instant, seq uint64, out *Actions) {
	over := s.window.cut(seq)
	if over == nil {
		return
	}
	if s.cursor != nil && s.cursor.Seq <= seq {
		s.cursor = s.window.head
	}
	out.free(over)
	s.room(now, out)
}

// room notes that the window moved.
func (s *Shard) room(now machine.Instant, out *Actions) {
	s.moved, s.progress, s.patience = now, now, 0
	s.callWindow(out)
}

// Needed takes the request of a shard's home to transmit a stream again from n.Seq on.
func (s *Shard) Needed(now machine.Instant, from gossip.NodeID, n Need, out *Actions) {
	if n.Base != s.base || n.Seq == 0 || n.Seq > s.next || !s.atHome(from, out) {
		return
	}
	s.acked(now, n.Seq-1, out)
	s.cursor = s.window.head
	s.pump(now, out)
}

// lookup asks for a home above an epoch, once until the answer.
func (s *Shard) lookup(above Epoch, out *Actions) {
	if s.asked && !s.askedFor.Less(above) {
		return
	}
	s.asked, s.askedFor = true, above
	out.add(Action{Op: OpEvent, Event: Lookup{Above: above}})
}

// wake asks for a Tick while something waits.
func (s *Shard) wake(now machine.Instant, out *Actions) {
	if s.waking {
		return
	}
	s.waking = true
	out.add(Action{Op: OpWake, At: now.Add(s.cfg.Resend)})
}

// Tick repeats what went unanswered. The runtime calls it as asked by [OpWake];
// calling it more often does no harm.
func (s *Shard) Tick(now machine.Instant, out *Actions) {
	s.waking = false
	if s.postponed && !s.suspended {
		s.postponed = false
		s.restart(now, out)
	}
	s.askFlow(now, out)
	if s.window.n == 0 && s.transit.n == 0 {
		if len(s.holds) > 0 {
			s.wake(now, out)
		}
		return
	}
	s.asked = false
	if s.transit.n > 0 {
		s.retransit(now, out)
	}
	if s.window.n > 0 && now.Sub(s.progress) >= s.cfg.Resend<<min(s.patience, 3) {
		s.progress = now
		s.patience++
		s.blocked = false
		s.cursor = s.window.head
	}
	s.pump(now, out)
	s.wake(now, out)
}

// Deliver takes a message from another node, and owns it from now on. The runtime has
// looked before, by [OriginFault], whether it may come from there.
func (s *Shard) Deliver(now machine.Instant, m *Message, out *Actions) {
	switch c := m.Base.Compare(s.base); {
	case s.abandoned:
		out.drop(m, DropStopped)
	case c < 0:
		out.drop(m, DropOldStream)
	case m.Origin == s.cfg.Self:
		out.drop(m, DropDuplicate)
	case c == 0 && s.state == hostServing:
		s.receive(now, m, out)
	case c == 0 && s.state == hostNone && s.passable(m):
		s.forward(m, out)
	default:
		s.keep(now, m, out)
	}
}

// passable reports whether the own map knows better than the one by which m came.
func (s *Shard) passable(m *Message) bool {
	return s.route.Home != s.cfg.Self && s.route.Home != gossip.NodeID{} && m.Route.Less(s.route.Epoch)
}

// forward passes m on.
func (s *Shard) forward(m *Message, out *Actions) {
	if m.Hops >= MaxHops {
		out.drop(m, DropHops)
		return
	}
	m.Hops++
	m.Route = s.route.Epoch
	out.add(Action{Op: OpForward, To: s.route.Home, Message: m})
	out.free(m)
}

// keep lets m wait for a newer map, or for the shard's next home.
func (s *Shard) keep(now machine.Instant, m *Message, out *Actions) {
	if s.transit.n > 0 && s.transit.bytes+m.cost() > s.cfg.TransitBytes {
		out.drop(m, DropOverflow)
		return
	}
	s.transit.push(m)
	s.lookup(maxEpoch(m.Route, s.route.Epoch), out)
	s.wake(now, out)
}

func maxEpoch(a, b Epoch) Epoch {
	if a.Less(b) {
		return b
	}
	return a
}

// retransit looks at everything that waits as if it had just come.
func (s *Shard) retransit(now machine.Instant, out *Actions) {
	waiting := s.transit
	s.transit = queue{}
	for m := waiting.pop(); m != nil; m = waiting.pop() {
		s.Deliver(now, m, out)
	}
}

// stream returns the inbound stream of an origin.
func (s *Shard) stream(origin gossip.NodeID) *stream {
	if s.lastUsed != nil && s.lastUsed.origin == origin {
		return s.lastUsed
	}
	in := s.streams[origin]
	if in == nil {
		in = &stream{origin: origin}
		if s.streams == nil {
			s.streams = make(map[gossip.NodeID]*stream)
		}
		s.streams[origin] = in
	}
	s.lastUsed = in
	return in
}

// receive delivers by sequence number: each once, in order.
func (s *Shard) receive(now machine.Instant, m *Message, out *Actions) {
	in := s.stream(m.Origin)
	switch {
	case m.Seq <= in.last:
		s.soil(in)
		out.drop(m, DropDuplicate)
	case m.Seq == in.last+1:
		s.admit(now, in, m, out)
		for in.waiting.head != nil && in.waiting.head.Seq == in.last+1 {
			s.admit(now, in, in.waiting.pop(), out)
		}
	default:
		s.early(in, m, out)
	}
}

// admit delivers the next message of a stream, or refuses it to its sender.
func (s *Shard) admit(now machine.Instant, in *stream, m *Message, out *Actions) {
	s.counts.Received++
	in.last = m.Seq
	s.soil(in)
	if code := s.enqueue(now, m, out); code != CodeOK {
		s.refuse(m, code, out)
	}
}

// early keeps a message that came ahead of its turn, and asks for what is missing.
func (s *Shard) early(in *stream, m *Message, out *Actions) {
	if in.waiting.n > 0 && in.waiting.bytes+m.cost() > s.cfg.TransitBytes {
		out.drop(m, DropOverflow)
	} else if !in.waiting.insert(m) {
		out.drop(m, DropDuplicate)
	}
	if in.needed != in.last+1 {
		in.needed = in.last + 1
		out.add(Action{Op: OpNeed, To: in.origin, Base: s.base, Seq: in.needed})
	}
}

func (s *Shard) soil(in *stream) {
	if !in.dirty {
		in.dirty = true
		s.dirty = append(s.dirty, in)
	}
}

// Acks appends the acknowledgements that are due. The runtime calls it once for
// each cell that a frame of the lane touched, after the frame.
func (s *Shard) Acks(out *Actions) {
	for _, in := range s.dirty {
		in.dirty = false
		out.add(Action{Op: OpAck, To: in.origin, Base: s.base, Seq: in.last})
	}
	s.dirty = s.dirty[:0]
}

// refuse answers a message that no entity will process, and gives it up.
func (s *Shard) refuse(m *Message, code Code, out *Actions) {
	if !m.Own {
		s.refused(code)
	}
	detail := ""
	if code == CodeEntityFailed {
		detail = s.Reason(m.Entity)
	}
	switch {
	case m.Own:
		out.free(m)
	case m.Origin == s.cfg.Self && detail == "":
		out.add(Action{Op: OpFail, Message: m, Code: code})
	case m.Origin == s.cfg.Self:
		out.add(Action{Op: OpFail, Message: m, Code: code, Reply: &Reply{Detail: detail}})
	default:
		s.reply(m.Origin, &Reply{Correlation: m.Correlation, Code: code, Detail: detail}, out)
		out.free(m)
	}
}

func (s *Shard) reply(to gossip.NodeID, r *Reply, out *Actions) {
	if s.abandoned {
		return
	}
	r.Kind, r.Shard = s.cfg.Kind, s.cfg.Shard
	out.add(Action{Op: OpReply, To: to, Reply: r})
}

// Local reports whether Accept would put a message straight into a mailbox, so
// that it needs no encoding.
func (s *Shard) Local() bool { return s.state == hostServing && s.window.n == 0 }
