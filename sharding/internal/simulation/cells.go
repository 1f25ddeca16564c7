// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/remembering"
	"github.com/quorate/quorate/sharding/internal/runtime"
	world "github.com/quorate/quorate/simulation"
)

// The cells of a simulated node: those of production, in the runtime of production, with virtual ports. Step hands a
// message of a client, a frame or a timer to the runtime, as package sharding does; the clients here wait for room and
// for replies. cells_work.go has the workers and the entities, cells_lanes.go the lanes, and cells_watch.go tells the
// ledger.

// Behaviour says what the stub entities and the lanes do. The zero value has quick entities
// and lanes that never fail.
type Behaviour struct {
	// Start, Run and Stop bound the time that an instance takes to start, to process
	// a message and to stop: each time is drawn evenly from a tenth of the bound up to the
	// bound. Zero: 20 ms, 5 ms and 20 ms.
	Start, Run, Stop time.Duration
	// FailStart and FailRun are the chances that a start fails, and that an
	// instance is unusable after a message.
	FailStart, FailRun float64
	// SlowStop is the chance that a stop takes SlowStopFor.
	SlowStop    float64
	SlowStopFor time.Duration
	// LaneFull is the chance that a lane takes no more of an outbox.
	LaneFull float64
	// LaneDown is the chance that a connection breaks at a message, for up to two
	// seconds. Messages that are sent meanwhile leave afterwards, or never.
	LaneDown float64
	// LaneStall is the chance that a connection stands still at a message, for up to
	// three seconds, as when a link is cut and healed. Frames in it come afterwards.
	LaneStall float64
	// LaneBusy has lanes take batches all the time, long ones, so that what the cells of a node
	// send to another goes together.
	LaneBusy bool
	// Hot is how many entities are flooded: these are the first entities, which need
	// HotRun for a message, and get half of all messages.
	Hot    int
	HotRun time.Duration
	// Passivate is the chance that an entity asks to be stopped after a message.
	Passivate float64
	// Snapshots says how the memory of entities goes with them when their shards move.
	Snapshots Snapshots
	// CounterFaults lets the counters of the processors, by which nodes spare readings of
	// their clocks, go wrong all the time.
	CounterFaults bool
	// Starved bounds the time for which a worker waits for a processor before each job and after
	// each call, as on a node whose processors have other work: drawn as Run is. Zero: none.
	Starved time.Duration

	sweeps time.Duration // The time after which idle entities are stopped.
}

// Send is the input by which a client has a node accept a message.
type Send struct {
	ID     uint64
	Entity string
	Ask    bool
	// Patience is how long an asker waits; zero: for ever.
	Patience time.Duration
}

// cellsTimer is a timer of [Cells]. The function that it calls is kept under its number.
type cellsTimer struct{ id uint64 }

// Cells are the cells of one kind on one node, with stub entities.
type Cells struct {
	kind      string
	self      gossip.NodeID
	behaviour Behaviour
	state     *gossip.State // The membership state; nil before the node is in a cluster.
	rand      *rand.Rand
	ledger    *Ledger
	watch     watch
	weight    limitState

	node    *runtime.Node
	region  *runtime.Region
	workers workers
	memory  nodeMemory
	keepers keepers

	out     *machine.Outbox
	now     machine.Instant
	until   machine.Instant
	ended   bool
	timers  map[uint64]func() // What is to happen when a timer fires, by its number.
	numbers uint64            // The number of the last timer.

	behind  map[*cell.Entity]bool            // Entities that were left behind and have not returned.
	routes  map[*cell.Message]protocol.Epoch // The epoch of the map by which a message of another node came.
	asks    map[uint64]*ask                  // The asks without a reply, by the id of their message.
	clients map[uint64]*client               // The clients that wait for room, by the id of their message.
	failing []*ask                           // The asks whose messages have failed in the present step of a cell.
	offers  *client                          // The client whose message is being offered.
	outside []machine.Received               // Frames that wait until their senders are members.
	refused map[gossip.NodeID]bool           // Lanes that take no more of the present outbox.
	rooms   map[gossip.NodeID]bool           // Lanes for whose room the runtime waits.
	lanes   map[gossip.NodeID]*lane
	through map[protocol.ShardID]*passage // The passage that the messages of a shard took last.
}

func newCells(env world.Env, kind control.KindConfig, b Behaviour, ledger *Ledger, cfg cell.Config, heartbeats time.Duration) *Cells {
	shards := kind.Settings.Shards
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&b.Start, 20*time.Millisecond)
	def(&b.Run, 5*time.Millisecond)
	def(&b.Stop, 20*time.Millisecond)
	c := &Cells{
		kind: kind.Name, self: env.Self, behaviour: b, rand: env.Rand, ledger: ledger,
		watch:   newWatch(env, heartbeats, b.CounterFaults),
		timers:  make(map[uint64]func()),
		behind:  make(map[*cell.Entity]bool),
		routes:  make(map[*cell.Message]protocol.Epoch),
		asks:    make(map[uint64]*ask),
		clients: make(map[uint64]*client),
		refused: make(map[gossip.NodeID]bool),
		rooms:   make(map[gossip.NodeID]bool),
		lanes:   make(map[gossip.NodeID]*lane),
		through: make(map[protocol.ShardID]*passage),
	}
	c.keepers = keepers{c, make(map[protocol.ShardID]*keeper)}
	c.memory = nodeMemory{c, make(map[*cell.Entity]*instance)}
	c.workers.queue.Init(processors)
	c.workers.long, c.workers.calls = make(map[*cell.Entity]bool), make(map[*worker]int)
	c.node = runtime.NewNode(c.ports())
	ports := runtime.KindPorts{Work: func(t runtime.Task) { c.put(t) }, Decode: decode, Ended: func(*runtime.Slot) {}}
	if a := ledger.archive; a.cfg.On {
		cfg.RememberFirst = a.cfg.First
		ports.Store, ports.Remembering = &storeCalls{c, a, make(map[remembering.Set]uint64)}, a.remembering()
	}
	c.region = c.node.NewRegion(kind.Name, shards, cfg, ports)
	return c
}

// ports returns the ports that the runtime has in a simulated node.
func (c *Cells) ports() runtime.Ports {
	return runtime.Ports{
		Self: c.self, Clock: c, Standing: c, Members: c, Watcher: c,
		Lane:      func(to gossip.NodeID) runtime.Lane { return c.lane(to) },
		AwaitRoom: c.awaitRoom,
		AcksDue:   func() { c.after(time.Millisecond, c.node.Acknowledge) },
		AfterFunc: func(d time.Duration, f func()) runtime.Timer {
			t := &virtualTimer{cells: c, f: f}
			t.Reset(d)
			return t
		},
		Waiter:  func(*cell.Message) runtime.Waiter { return c.offers },
		Crowded: func(of runtime.Class) bool { return c.workers.queue.Waiting(of) > 0 },
		Report: func(kind string, shard protocol.ShardID, e protocol.CellEvent) {
			c.out.Add(control.FromShard{Kind: kind, Shard: shard, Event: e})
		},
		Notes: runtime.Notes{
			Malformed: func(_ gossip.NodeID, err error) { c.ledger.violate("a frame that cannot be decoded: %v", err) },
			Misdirected: func() { // A node may hear late of a change of the number of shards.
				if len(c.ledger.layouts) == 0 {
					c.ledger.violate("a frame for a shard that nobody has")
				}
			},
			Forged: func(runtime.Forgery) { c.ledger.counts.Forged++ },
			Dropped: func(why cell.Drop) {
				if why == cell.DropUnknownStream {
					c.ledger.counts.Unnamed++
				}
			},
			Lost:      func(string, string, protocol.Code, string) {},
			Unsent:    func(int) {},
			Forgotten: func(_ string, f protocol.MemoryLost) { c.ledger.memories.forgotten(f) },
			Stuck:     func(_ *runtime.Slot, e *cell.Entity) { c.leave(e) },
			Returned:  func() {},
		},
	}
}

// Step handles an input.
func (c *Cells) Step(now machine.Now, in machine.Input, out *machine.Outbox) {
	c.now, c.out = now.Mono, out
	switch in := in.(type) {
	case machine.Started:
		c.check()
		c.look()
		c.trim()
		c.sweep(runtime.SweepInterval(c.behaviour.sweeps))
		c.checkLimit()
		c.keepers.look()
	case control.ToShard:
		if h, ok := in.Input.(protocol.StartHosting); ok {
			c.ledger.hosting(c.self, in.Shard, h)
		}
		c.node.Apply(in.Kind, in.Shard, in.Input)
	case control.AskLease, control.GiveLease:
		c.keepers.take(in)
	case control.ScaleChanged:
		c.ledger.scaled(c.self, in.Scale)
	case control.ToShards:
		if _, c.ended = in.Input.(protocol.AbandonHosting); c.ended {
			c.node.Abandon()
		} else {
			c.node.ApplyAll(in.Kind, in.Input)
		}
	case control.UseLayouts:
		c.ledger.noteLayouts(in)
		c.region.UseLayouts(in.Layouts)
	case control.ToRemembering:
		c.region.Remembered(in.Input)
	case control.MeasureLoad:
		out.Add(control.LoadMeasurement{Kind: in.Kind, Busy: c.region.Busy(), Processors: processors})
	case component.Standing:
		c.until = in.Until
	case component.Changed:
		c.state = in.State
		c.admitWaiting()
	case machine.Received:
		c.receive(in)
	case machine.Fired:
		t := in.Timer.(cellsTimer)
		f := c.timers[t.id]
		delete(c.timers, t.id)
		f()
	case Send:
		c.send(in)
	}
	c.begin()
	clear(c.refused)
	c.out = nil
}

// after calls f after a time.
func (c *Cells) after(d time.Duration, f func()) {
	c.numbers++
	c.timers[c.numbers] = f
	c.out.Arm(cellsTimer{c.numbers}, c.now.Add(d))
}

// virtualTimer is a timer of the runtime.
type virtualTimer struct {
	cells *Cells
	f     func()
	set   uint64 // How often it was set: only the last time counts.
}

// Reset sets the timer.
func (t *virtualTimer) Reset(d time.Duration) bool {
	t.set++
	set := t.set
	t.cells.after(d, func() {
		if set == t.set {
			t.f()
		}
	})
	return true
}

// Stop ends the timer.
func (t *virtualTimer) Stop() bool {
	t.set++
	return true
}

// sweep sweeps the cells at an interval.
func (c *Cells) sweep(every time.Duration) {
	c.after(every, func() {
		c.region.Sweep(func() bool { return false })
		c.sweep(every)
	})
}

// client is a sender of one message.
type client struct {
	cells *Cells
	id    uint64
	slot  *runtime.Slot // Kept while it waits: its layout may be in force no more.
	m     *cell.Message
	ask   *runtime.Ask // Nil for a tell.
}

// ask is a message that waits for its reply.
type ask struct {
	runtime.Ask

	cells *Cells
	shard protocol.ShardID
	told  bool // The ledger has been told that the message failed.
}

// idBytes is the size of a message.
const idBytes = 8

// send has a message accepted, or lets its client wait for room.
func (c *Cells) send(in Send) {
	sl := c.region.SlotOf(in.Entity)
	c.ledger.offer(in.ID, c.self, sl.Shard(), in.Entity, in.Ask, in.Patience)
	var a *runtime.Ask
	joined := false
	if in.Ask {
		a = c.asking(in, sl.Shard())
		joined = sl.Ask(in.Entity, in.ID, a)
	} else {
		joined = sl.Tell(in.Entity, in.ID)
	}
	if joined {
		c.ledger.counts.Joined++
		c.ledger.accept(in.ID, true)
		return
	}
	m, _ := sl.Blank(in.Entity, in.ID, nil)
	if a != nil {
		m.Correlation, m.Deadline = a.Correlation, a.Deadline
	}
	c.offer(&client{cells: c, id: in.ID, slot: sl, m: m, ask: a}, in.Patience)
}

// asking returns an ask, which ends by the runtime at its deadline, or by its client some time after that.
func (c *Cells) asking(in Send, shard protocol.ShardID) *runtime.Ask {
	a := &ask{cells: c, shard: shard}
	a.Renew(in.ID)
	a.Asker, c.asks[in.ID] = a, a
	if in.Patience > 0 {
		a.Deadline = c.now.Add(in.Patience)
		if linger := c.drawExtraWait(); linger > 0 {
			c.after(in.Patience+linger, func() { c.giveUp(in.ID) })
		} else {
			a.Limited = true
			c.after(in.Patience+askEndsWithin, func() { c.overdue(a) })
		}
	}
	return &a.Ask
}

// drawExtraWait draws how long a client waits beyond its deadline: mostly not at all.
func (c *Cells) drawExtraWait() time.Duration {
	if c.rand.IntN(3) > 0 {
		return 0
	}
	return time.Duration(c.rand.Int64N(int64(time.Second)))
}

// offer hands a message to its cell. If there is no room, the client waits, at most for its patience.
func (c *Cells) offer(cl *client, patience time.Duration) {
	sl := cl.slot
	routed := !sl.Info().Home.IsZero()
	c.offers = cl
	admission, _, _ := sl.Offer(cl.m, cl.ask)
	for admission == runtime.EncodeFirst || admission == cell.Moved {
		if admission == cell.Moved {
			sl = c.region.Next(cl.m)
			cl.slot = sl
			routed = !sl.Info().Home.IsZero()
		} else {
			cl.m.Payload = binary.BigEndian.AppendUint64(nil, cl.id)
		}
		admission, _, _ = sl.Offer(cl.m, cl.ask)
	}
	switch admission {
	case cell.Accepted:
		c.ledger.accept(cl.id, routed)
	case cell.WindowFull, cell.MailboxFull:
		c.ledger.counts.Waited++
		if c.clients[cl.id] = cl; patience > 0 {
			c.after(patience, func() { c.giveUpRoom(cl.id) })
		}
	default:
		delete(c.asks, cl.id)
		c.ledger.clientRefused(cl.id)
		sl.Withdraw(cl.m)
	}
}

// Room lets a client that is called offer its message again after a moment.
func (cl *client) Room() {
	c := cl.cells
	c.after(time.Duration(c.rand.Int64N(int64(3*time.Millisecond))), func() {
		if c.clients[cl.id] != nil {
			delete(c.clients, cl.id)
			c.offer(cl, 0)
		}
	})
}

// giveUpRoom ends the wait of a client for room.
func (c *Cells) giveUpRoom(id uint64) {
	cl := c.clients[id]
	if cl == nil {
		return
	}
	delete(c.clients, id)
	delete(c.asks, id)
	c.ledger.clientRefused(id)
	cl.slot.Withdraw(cl.m)
}

// giveUp ends the wait of a client for a reply. The client takes its message back if that is possible. The wait for
// room is ended by [Cells.giveUpRoom].
func (c *Cells) giveUp(id uint64) {
	a := c.asks[id]
	if a == nil || c.clients[id] != nil {
		return
	}
	delete(c.asks, id)
	back, told := a.Retract()
	if told {
		c.ledger.violate("I20: the ask of message %d has ended, and its asker was not told", id)
	}
	c.gaveUp(id, back)
}

// askEndsWithin is when, after its deadline, an ask must have ended that the runtime ends.
const askEndsWithin = 100 * time.Millisecond

// overdue checks that an ask has ended, unless its client waits for room.
func (c *Cells) overdue(a *ask) {
	if id := a.Correlation; c.asks[id] == a && c.clients[id] == nil {
		c.ledger.violate("I20: the ask of message %d waits %v after its deadline", id, askEndsWithin)
	}
}

// gaveUp tells the ledger of an ask that has ended without a reply.
func (c *Cells) gaveUp(id uint64, back bool) {
	if back {
		c.ledger.takenBack(id)
	} else {
		c.ledger.timeout(id)
	}
}

// End takes that the ask has ended at its deadline.
func (a *ask) End(back bool, _ error) {
	c, id := a.cells, a.Correlation
	if c.asks[id] != a {
		c.ledger.violate("I20: the ask of message %d has ended twice", id)
	}
	delete(c.asks, id)
	c.gaveUp(id, back)
}

// Answer takes the reply to an ask, which is the id of the message.
func (a *ask) Answer(r *protocol.Reply) {
	c, id := a.cells, a.Correlation
	delete(c.asks, id)
	if a.told {
		return
	}
	if r.Code == protocol.CodeOK && (len(r.Payload) != idBytes || binary.BigEndian.Uint64(r.Payload) != id) {
		c.ledger.violate("I20: the ask of message %d has the reply to another message: %x", id, r.Payload)
	}
	c.ledger.outcome(id, r.Code)
}

// Instant reads the clock.
func (c *Cells) Instant() machine.Instant { return c.now }

// standing reports whether the node may host, by its own clock.
func (c *Cells) standing(now machine.Instant) bool { return now <= c.until && !c.ended }

// IsMember reports whether a node is a member in the state that this node knows.
func (c *Cells) IsMember(node gossip.NodeID) bool {
	return c.state != nil && c.state.Member(node) != nil
}

// WasMember reports whether a node was a member.
func (c *Cells) WasMember(node gossip.NodeID) bool {
	if c.state == nil {
		return false
	}
	_, removed := c.state.Removed(node)
	return removed
}

// strangerPatience is how long the frames of an unknown node wait for the news that it has
// joined.
const strangerPatience = 2 * time.Second

// receive hands frames of members to the runtime. Frames of other nodes wait for a while, since these may have just
// joined.
func (c *Cells) receive(in machine.Received) {
	switch {
	case c.IsMember(in.From):
		c.node.Received(in.From, in.Message.([]byte))
	case c.WasMember(in.From):
		c.ledger.counts.Strangers++
	default:
		if !slices.ContainsFunc(c.outside, func(o machine.Received) bool { return o.From == in.From }) {
			c.after(strangerPatience, func() { c.dropStranger(in.From) })
		}
		c.outside = append(c.outside, in)
	}
}

// admitWaiting hands on the frames that wait and whose senders are members now.
func (c *Cells) admitWaiting() {
	waiting := c.outside
	c.outside = nil
	for _, in := range waiting {
		if c.IsMember(in.From) {
			c.node.Received(in.From, in.Message.([]byte))
		} else {
			c.outside = append(c.outside, in)
		}
	}
}

// dropStranger drops the frames of a node that did not become a member in time.
func (c *Cells) dropStranger(node gossip.NodeID) {
	c.outside = slices.DeleteFunc(c.outside, func(in machine.Received) bool {
		if in.From == node {
			c.ledger.counts.Strangers++
		}
		return in.From == node
	})
}

// frames is the codec of the message lane, whose messages are bytes that are encoded already.
type frames struct{}

// Append appends the bytes.
func (frames) Append(dst []byte, message any) ([]byte, error) {
	b, ok := message.([]byte)
	if !ok {
		return dst, fmt.Errorf("a frame is a %T", message)
	}
	return append(dst, b...), nil
}

// Decode returns a copy of the bytes.
func (frames) Decode(b []byte) (any, error) { return append([]byte(nil), b...), nil }
