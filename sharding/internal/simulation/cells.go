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
	"github.com/quorate/quorate/sharding/internal/wire"
	world "github.com/quorate/quorate/simulation"
)

// The cells of a node of the simulation, in the place of the runtime. Step takes a message of
// a client, a frame or a timer; send and received hand it to its cell; carry carries out what
// the cell asks for: virtual work of entities, which worked ends, and frames into lanes, which
// cells_lanes.go lets leave or break. The ledger hears of all of it.

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
	// Hot is how many entities are flooded: these are the first entities, which need
	// HotRun for a message, and get half of all messages.
	Hot    int
	HotRun time.Duration
	// Passivate is the chance that an entity asks to be stopped after a message.
	Passivate float64
	// CounterFaults lets the counters of the processors, by which nodes spare readings of
	// their clocks, go wrong all the time.
	CounterFaults bool
}

// Send is the input by which a client has a node accept a message.
type Send struct {
	ID     uint64
	Entity string
	Ask    bool
	// Patience is how long an asker waits; zero: for ever.
	Patience time.Duration
}

// The timers of Cells.
type (
	workTimer struct {
		shard  protocol.ShardID
		entity string
		op     cell.Op
		n      uint64 // Tells the work of an entity that was left behind from that of its successor.
	}
	wakeTimer  struct{ shard protocol.ShardID }
	flushTimer struct{ node gossip.NodeID }
	laneTimer  struct{ node gossip.NodeID }
	stallTimer struct{ node gossip.NodeID }
	roomTimer  struct{ id uint64 } // A client that was called offers its message again.
	tiredTimer struct{ id uint64 } // The patience of a client that waits for room ends.
	gateTimer  struct{ node gossip.NodeID }
	ackTimer   struct{}
	askTimer   struct{ id uint64 }
)

// Cells are the cells of one kind on one node, with stub entities.
type Cells struct {
	kind      string
	self      gossip.NodeID
	behaviour Behaviour
	state     *gossip.State // The membership state; nil before the node is in a cluster.
	rand      *rand.Rand
	ledger    *Ledger

	cells   []*cell.Cell
	acts    cell.Actions
	out     *machine.Outbox
	now     machine.Instant
	until   machine.Instant
	ended   bool
	working map[workTimer]*cell.Entity
	ahead   map[*cell.Entity]*cell.Message // The messages that were handed out with the present message of an entity.
	works   uint64
	behind  map[*cell.Entity]bool            // Entities that were left behind and have not returned.
	routes  map[*cell.Message]protocol.Epoch // The epoch of the map by which a message of another node came.
	asks    map[uint64]*ask
	clients map[uint64]*cell.Message // The messages of clients that wait for room, by id.
	outside []machine.Received       // Frames that wait until their senders are members.
	touched map[protocol.ShardID]bool
	refused map[gossip.NodeID]bool // Lanes that take no more of the present outbox.
	lanes   map[gossip.NodeID]*passage
	through []*passage // The passage that the messages of a shard took last, by shard.
	clocks  cell.Clocks
	watch   watch
}

// ask is a message that waits for its reply.
type ask struct {
	shard     protocol.ShardID
	delivered bool
	m         *cell.Message                   // The message, until it is delivered.
	homes     uint64                          // The number of the home to which the message goes first.
	early     map[gossip.NodeID]protocol.Code // Replies of members to which, as far as this node knows, the message did not go.
}

func newCells(env world.Env, kind control.KindConfig, b Behaviour, ledger *Ledger, cfg cell.Config, heartbeats time.Duration) *Cells {
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
		working: make(map[workTimer]*cell.Entity),
		ahead:   make(map[*cell.Entity]*cell.Message),
		behind:  make(map[*cell.Entity]bool),
		routes:  make(map[*cell.Message]protocol.Epoch),
		asks:    make(map[uint64]*ask),
		clients: make(map[uint64]*cell.Message),
		touched: make(map[protocol.ShardID]bool),
		refused: make(map[gossip.NodeID]bool),
		lanes:   make(map[gossip.NodeID]*passage),
		through: make([]*passage, kind.Settings.Shards),
		watch:   newWatch(env, heartbeats, b.CounterFaults),
	}
	for i := range kind.Settings.Shards {
		cfg.Kind, cfg.Shard, cfg.Self = kind.Name, protocol.ShardID(i), env.Self
		c.cells = append(c.cells, cell.New(cfg))
	}
	return c
}

// Step feeds one input.
func (c *Cells) Step(now machine.Now, in machine.Input, out *machine.Outbox) {
	c.now, c.out = now.Mono, out
	switch in := in.(type) {
	case machine.Started:
		c.check()
		c.look()
	case control.ToShard:
		if h, ok := in.Input.(protocol.StartHosting); ok {
			c.ledger.hosting(c.self, in.Shard, h)
		}
		if p := c.through[in.Shard]; p != nil {
			c.cells[in.Shard].Written(p.written)
		}
		c.cells[in.Shard].Apply(c.now, in.Input, &c.acts)
		c.settleEarly(in.Shard)
		c.carry(in.Shard)
	case control.ToShards:
		_, abandon := in.Input.(protocol.Abandon)
		c.ended = c.ended || abandon
		for i := range c.cells {
			c.cells[i].Apply(c.now, in.Input, &c.acts)
			c.carry(protocol.ShardID(i))
		}
	case component.Standing:
		c.until = in.Until
	case component.Changed:
		c.state = in.State
		c.enter()
	case machine.Received:
		c.gate(in)
	case machine.Fired:
		c.fired(in.Timer)
	case Send:
		c.send(in)
	}
	clear(c.refused)
	c.out = nil
}

// standing reports whether the node may host, by its own clock.
func (c *Cells) standing(now machine.Instant) bool { return now <= c.until && !c.ended }

// send has a message accepted, or lets its client wait for room.
func (c *Cells) send(in Send) {
	shard := protocol.ShardOf(in.Entity, uint32(len(c.cells)))
	m := &cell.Message{Kind: c.kind, Shard: shard, Entity: in.Entity, Payload: binary.BigEndian.AppendUint64(nil, in.ID)}
	if in.Ask {
		m.Correlation = in.ID
		c.asks[in.ID] = &ask{shard: shard, m: m, homes: c.cells[shard].Homes()}
		if in.Patience > 0 {
			m.Deadline = c.now.Add(in.Patience)
			c.out.Arm(askTimer{in.ID}, m.Deadline.Add(c.linger()))
		}
	}
	c.ledger.offer(in.ID, c.self, shard, in.Entity, in.Ask, in.Patience)
	if home := c.cells[shard].Home(); c.rand.IntN(4) == 0 && !home.IsZero() {
		c.cells[shard].Collect()
		c.out.Arm(flushTimer{home}, c.now.Add(10*time.Millisecond))
	}
	if c.cells[shard].Follow(m) {
		c.ledger.accept(in.ID, true)
		return
	}
	c.offer(in.ID, m, in.Patience)
}

// linger draws how long an asker waits beyond its deadline: mostly not at all.
func (c *Cells) linger() time.Duration {
	if c.rand.IntN(3) > 0 {
		return 0
	}
	return time.Duration(c.rand.Int64N(int64(time.Second)))
}

// giveUp ends the wait of an asker, which takes its message back if that is possible. An
// asker that waits for room is ended by tired.
func (c *Cells) giveUp(id uint64) {
	a := c.asks[id]
	if a == nil || c.clients[id] != nil {
		return
	}
	delete(c.asks, id)
	if p := c.through[a.shard]; p != nil && p.over {
		c.cells[a.shard].Rerouted(p.written, true)
		c.through[a.shard] = nil
	}
	if a.delivered || !c.cells[a.shard].Retract(c.now, a.m, &c.acts) {
		c.ledger.timeout(id)
		return
	}
	c.ledger.takenBack(id)
	c.carry(a.shard)
}

// offer hands a message to its cell. A client without room waits for as long as it
// has patience.
func (c *Cells) offer(id uint64, m *cell.Message, patience time.Duration) {
	s := c.cells[m.Shard]
	routed := !s.Info().Home.IsZero()
	switch s.Accept(c.now, m, &c.acts) {
	case cell.Accepted:
		c.ledger.accept(id, routed)
	case cell.WindowFull, cell.MailboxFull:
		c.ledger.counts.Waited++
		if c.clients[id] = m; patience > 0 {
			c.out.Arm(tiredTimer{id}, c.now.Add(patience))
		}
	default:
		delete(c.asks, id)
		c.ledger.refuse(id)
	}
	c.carry(m.Shard)
}

// returns lets a client that was called offer its message again after a moment.
func (c *Cells) returns(id uint64) {
	if m := c.clients[id]; m != nil {
		delete(c.clients, id)
		c.offer(id, m, 0)
	}
}

// tired ends the wait of a client for room.
func (c *Cells) tired(id uint64) {
	m := c.clients[id]
	if m == nil {
		return
	}
	delete(c.clients, id)
	delete(c.asks, id)
	c.ledger.refuse(id)
	c.cells[m.Shard].Withdraw(m, &c.acts)
	c.carry(m.Shard)
}

// member reports whether a node is a member in the state that this node knows.
func (c *Cells) member(node gossip.NodeID) bool { return c.state != nil && c.state.Member(node) != nil }

// strangerPatience is how long the frames of an unknown node wait for the news that it has
// joined.
const strangerPatience = 2 * time.Second

// gate takes the frames of members. Frames of other nodes wait for a while, since these
// nodes may have just joined.
func (c *Cells) gate(in machine.Received) {
	switch {
	case c.member(in.From):
		c.received(in)
	case c.removed(in.From):
		c.ledger.counts.Strangers++
	default:
		if !slices.ContainsFunc(c.outside, func(o machine.Received) bool { return o.From == in.From }) {
			c.out.Arm(gateTimer{in.From}, c.now.Add(strangerPatience))
		}
		c.outside = append(c.outside, in)
	}
}

// removed reports whether a node was a member.
func (c *Cells) removed(node gossip.NodeID) bool {
	if c.state == nil {
		return false
	}
	_, removed := c.state.Removed(node)
	return removed
}

// enter takes the frames that wait and whose senders are members now.
func (c *Cells) enter() {
	waiting := c.outside
	c.outside = nil
	for _, in := range waiting {
		if c.member(in.From) {
			c.received(in)
		} else {
			c.outside = append(c.outside, in)
		}
	}
}

// dismiss drops the frames of a node that did not become a member in time.
func (c *Cells) dismiss(node gossip.NodeID) {
	c.outside = slices.DeleteFunc(c.outside, func(in machine.Received) bool {
		if in.From == node {
			c.ledger.counts.Strangers++
		}
		return in.From == node
	})
}

// received takes a frame of a member.
func (c *Cells) received(in machine.Received) {
	item, err := wire.DecodeItem(in.Message.([]byte), c.now)
	if err != nil {
		c.ledger.violate("a frame that cannot be decoded: %v", err)
		return
	}
	switch m := item.(type) {
	case *cell.Message:
		if c.trusts(in.From, m.Origin, m.Hops) {
			c.deliver(m)
		}
		c.carry(m.Shard)
	case *wire.Run:
		if !c.trusts(in.From, m.Origin(), 0) {
			return
		}
		if err := m.Messages(c.now, cell.NewMessage, c.deliver); err != nil {
			c.ledger.violate("a run that cannot be decoded: %v", err)
		}
		c.carry(m.Shard())
	case *protocol.Reply:
		c.clocks.Heard(in.From, m.Clock, c.now)
		c.answered(in.From, m)
	case protocol.Ack:
		c.clocks.Heard(in.From, m.Clock, c.now)
		c.cells[m.Shard].Acked(c.now, in.From, m, &c.acts)
		c.carry(m.Shard)
	case protocol.Need:
		c.cells[m.Shard].Needed(c.now, in.From, m, &c.acts)
		c.carry(m.Shard)
	case protocol.Flow:
		c.cells[m.Shard].Flowed(c.now, in.From, m, &c.acts)
		c.carry(m.Shard)
	}
}

// trusts reports whether messages of an origin may come from a node.
func (c *Cells) trusts(from, origin gossip.NodeID, hops uint8) bool {
	if cell.OriginFault(from, origin, hops, c.member) != cell.FaultNone {
		c.ledger.counts.Forged++
		return false
	}
	return true
}

// deliver hands a message to its cell, whose actions are carried out later.
func (c *Cells) deliver(m *cell.Message) {
	c.routes[m] = m.Route
	c.cells[m.Shard].Deliver(c.now, m, &c.acts)
	if len(c.touched) == 0 {
		c.out.Arm(ackTimer{}, c.now.Add(time.Millisecond))
	}
	c.touched[m.Shard] = true
}

// answered takes a reply from another node. The reply of a home of which this node does not
// know yet waits for the map.
func (c *Cells) answered(from gossip.NodeID, r *protocol.Reply) {
	a := c.asks[r.Correlation]
	switch {
	case a == nil:
	case c.cells[a.shard].Went(from, a.homes):
		c.replied(r)
	default:
		c.ledger.counts.Forged++
		if a.early == nil {
			a.early = make(map[gossip.NodeID]protocol.Code)
		}
		a.early[from] = r.Code
	}
}

// settleEarly completes asks with early replies of a home of which this node has just
// learned.
func (c *Cells) settleEarly(shard protocol.ShardID) {
	s := c.cells[shard]
	for _, id := range c.asksOf(shard, false) {
		a := c.asks[id]
		if code, told := a.early[s.Home()]; told && s.Went(s.Home(), a.homes) {
			c.replied(&protocol.Reply{Correlation: id, Code: code})
		}
	}
}

func (c *Cells) replied(r *protocol.Reply) {
	if a := c.asks[r.Correlation]; a != nil {
		delete(c.asks, r.Correlation)
		c.ledger.outcome(r.Correlation, r.Code)
	}
}

func (c *Cells) fired(t machine.Timer) {
	switch t := t.(type) {
	case workTimer:
		c.worked(t)
	case wakeTimer:
		c.cells[t.shard].Tick(c.now, &c.acts)
		c.cells[t.shard].Sweep(c.now, 4, &c.acts)
		c.carry(t.shard)
	case checkTimer:
		c.check()
	case lookTimer:
		c.look()
	case flushTimer:
		c.flush(t.node)
	case laneTimer:
		c.mend(t.node)
	case stallTimer:
		c.goOn(t.node)
	case roomTimer:
		c.returns(t.id)
	case tiredTimer:
		c.tired(t.id)
	case gateTimer:
		c.dismiss(t.node)
	case ackTimer:
		for i := range c.cells {
			if c.touched[protocol.ShardID(i)] {
				c.cells[i].Acks(&c.acts)
				c.carry(protocol.ShardID(i))
			}
		}
		clear(c.touched)
	case askTimer:
		c.giveUp(t.id)
	}
}

// worked ends a piece of virtual work of an entity.
func (c *Cells) worked(t workTimer) {
	e := c.working[t]
	if e == nil {
		return
	}
	delete(c.working, t)
	s := c.cells[t.shard]
	switch t.op {
	case cell.OpStart:
		ok := c.rand.Float64() >= c.behaviour.FailStart
		if !ok {
			c.gone(e)
		}
		s.Started(c.now, e, ok, &c.acts)
	case cell.OpRun:
		r := cell.Result{
			Failed:   c.rand.Float64() < c.behaviour.FailRun,
			Withhold: !c.held(),
		}
		if m := e.Message(); m.Correlation != 0 {
			r.Reply = &protocol.Reply{Payload: m.Payload}
		}
		c.runAhead(t.shard, e, r)
		s.Done(c.now, e, r, &c.acts)
		if c.rand.Float64() < c.behaviour.Passivate {
			s.Passivate(c.now, e, &c.acts)
		}
	case cell.OpStop:
		c.gone(e)
		s.Stopped(c.now, e, &c.acts)
	}
	c.carry(t.shard)
}

// runAhead processes some of the messages that were handed out with the present message of
// an entity, at the moment at which that message ends.
func (c *Cells) runAhead(shard protocol.ShardID, e *cell.Entity, r cell.Result) {
	ran := 0
	for m := c.ahead[e]; m != nil && !r.Failed && !r.Withhold && !e.Ended() && c.rand.IntN(4) > 0; m = m.Next() {
		c.ledger.begin(c.self, shard, e, binary.BigEndian.Uint64(m.Payload), m.Origin)
		ran++
	}
	delete(c.ahead, e)
	for m := c.cells[shard].Ran(e, ran, &c.acts); m != nil; m = m.Next() {
		c.freed(m)
	}
}

// gone notes that an instance has ended.
func (c *Cells) gone(e *cell.Entity) {
	if !c.behind[e] {
		c.ledger.stopped(c.self, e.ID())
	}
	delete(c.behind, e)
}

// leave notes that an entity is left behind: it must begin no message, and no answer of it
// must be seen by anybody.
func (c *Cells) leave(e *cell.Entity) {
	if e.Ended() && !c.behind[e] {
		c.behind[e] = true
		c.ledger.stopped(c.self, e.ID())
		c.ledger.counts.LeftBehind++
	}
}

// work begins a piece of virtual work.
func (c *Cells) work(shard protocol.ShardID, a *cell.Action, most time.Duration) {
	c.works++
	t := workTimer{shard: shard, entity: a.Entity.ID(), op: a.Op, n: c.works}
	if a.Op == cell.OpStop && c.rand.Float64() < c.behaviour.SlowStop {
		most = c.behaviour.SlowStopFor
	}
	c.working[t] = a.Entity
	c.out.Arm(t, c.now.Add(most/10+time.Duration(c.rand.Int64N(int64(most-most/10)+1))))
}

// carry carries out the actions of a cell.
func (c *Cells) carry(shard protocol.ShardID) {
	for i := 0; i < len(c.acts.List()); i++ {
		a := c.acts.List()[i]
		switch a.Op {
		case cell.OpTransmit:
			c.transmit(shard, &a)
		case cell.OpForward:
			c.forward(shard, &a)
		case cell.OpFree, cell.OpDrop, cell.OpFail, cell.OpReset:
			c.settle(shard, &a)
		case cell.OpReply:
			if a.Reply.Code != protocol.CodeOK && a.Reply.Code != protocol.CodeUnknownOutcome {
				// The action after this one frees the refused message.
				c.ledger.turn(binary.BigEndian.Uint64(c.acts.List()[i+1].Message.Payload))
			}
			c.reply(&a)
		case cell.OpAck:
			c.acknowledge(shard, &a)
		case cell.OpNeed:
			c.frame(a.To, wire.AppendNeed(nil, protocol.Need{Kind: c.kind, Shard: shard, Base: a.Base, Seq: a.Seq}))
		case cell.OpStart:
			c.ledger.started(c.self, a.Entity)
			c.work(shard, &a, c.behaviour.Start)
		case cell.OpRun:
			c.run(shard, &a)
		case cell.OpStop:
			c.stop(shard, &a)
		case cell.OpEvent:
			c.out.Add(control.FromShard{Kind: c.kind, Shard: shard, Event: a.Event})
		case cell.OpWake:
			c.out.Arm(wakeTimer{shard}, a.At)
		case cell.OpStuck:
			c.leave(a.Entity)
		case cell.OpFlow:
			c.frame(a.To, wire.AppendFlow(nil, *a.Flow))
		case cell.OpForged:
			c.ledger.counts.Forged++
		case cell.OpOfferAgain:
			id := binary.BigEndian.Uint64(a.Message.Payload)
			c.out.Arm(roomTimer{id}, c.now.Add(time.Duration(c.rand.Int64N(int64(3*time.Millisecond)))))
		case cell.OpReturned, cell.OpEnd:
		}
	}
	c.acts.Reset()
	c.ledger.follow(c.self, shard, c.cells[shard].Info().Stopping)
}

// run begins the message of an entity if the node's clock shows standing.
func (c *Cells) run(shard protocol.ShardID, a *cell.Action) {
	if !c.held() && !c.ended {
		c.cells[shard].Postpone(c.now, a.Entity, &c.acts)
		return
	}
	m := a.Entity.Message()
	c.ledger.begin(c.self, shard, a.Entity, binary.BigEndian.Uint64(m.Payload), m.Origin)
	if first := c.cells[shard].Ahead(a.Entity, c.rand.IntN(4)); first != nil {
		c.ahead[a.Entity] = first
	}
	c.ledger.bounded(c.self, a.Entity)
	most := c.behaviour.Run
	if c.ledger.hot[a.Entity.ID()] {
		most = c.behaviour.HotRun
	}
	c.work(shard, a, most)
}

// stop begins the stop of an entity if the cell permits it now.
func (c *Cells) stop(shard protocol.ShardID, a *cell.Action) {
	if why, begins := c.cells[shard].BeginStop(c.now, a.Entity, c.held(), &c.acts); begins {
		c.ledger.stopping(c.self, a.Entity, why)
		c.work(shard, a, c.behaviour.Stop)
	}
}

func (c *Cells) acknowledge(shard protocol.ShardID, a *cell.Action) {
	ack := protocol.Ack{Kind: c.kind, Shard: shard, Base: a.Base, Seq: a.Seq, Clock: c.now}
	if a.To == c.self {
		c.cells[shard].Acked(c.now, a.To, ack, &c.acts)
		return
	}
	c.frame(a.To, wire.AppendAck(nil, ack))
}

// transmit appends messages of this origin to their lane, until it is full, several
// in an envelope.
func (c *Cells) transmit(shard protocol.ShardID, a *cell.Action) {
	for m := a.Message; m != nil; {
		if c.laneFull(a.To) || c.stays(a.To) {
			c.cells[shard].Unsent(m)
			return
		}
		encoder := wire.Encoder{There: c.clocks.At(a.To, c.now)}
		b, rest := encoder.Run(nil, m, 1+c.rand.IntN(4), c.now)
		c.ledger.handed(m, rest, encoder.There != 0)
		c.hand(shard, a.To, m, rest, b)
		m = rest
	}
}

// forward passes a message of another origin on.
func (c *Cells) forward(shard protocol.ShardID, a *cell.Action) {
	if came := c.routes[a.Message]; !came.Less(a.Message.Route) {
		c.ledger.violate("I20: %s passes message of shard %d on by epoch %s, by which it came: %s", c.self, shard, a.Message.Route, came)
	}
	if !c.laneFull(a.To) {
		encoder := wire.Encoder{There: c.clocks.At(a.To, c.now)}
		c.ledger.handed(a.Message, nil, encoder.There != 0)
		c.frame(a.To, encoder.Message(nil, a.Message, c.now))
	}
}

// laneFull draws whether the lane to a node takes another envelope of this outbox.
func (c *Cells) laneFull(to gossip.NodeID) bool {
	if !c.refused[to] && c.rand.Float64() < c.behaviour.LaneFull {
		c.refused[to] = true
		c.out.Arm(flushTimer{to}, c.now.Add(10*time.Millisecond))
	}
	return c.refused[to]
}

func (c *Cells) frame(to gossip.NodeID, b []byte) {
	if p := c.lanes[to]; p != nil && p.stalled {
		p.standing = append(p.standing, b)
		return
	}
	c.out.Add(machine.Send{To: to, Lane: machine.LaneMessage, Message: b})
}

func (c *Cells) reply(a *cell.Action) {
	if a.To == c.self {
		c.replied(a.Reply)
		return
	}
	if a.Reply.Correlation != 0 {
		a.Reply.Clock = c.now
		c.frame(a.To, wire.AppendReply(nil, a.Reply))
	}
}

// settle tells the ledger what became of messages.
func (c *Cells) settle(shard protocol.ShardID, a *cell.Action) {
	if a.Op == cell.OpReset {
		for _, id := range c.asksOf(shard, true) {
			delete(c.asks, id)
			c.ledger.outcome(id, protocol.CodeUnknownOutcome)
		}
		return
	}
	if a.Op == cell.OpFree {
		for m := a.Message; m != nil; m = m.Next() {
			c.freed(m)
		}
		return
	}
	delete(c.routes, a.Message)
	id := binary.BigEndian.Uint64(a.Message.Payload)
	switch a.Op {
	case cell.OpFail:
		if a.Message.Seq == 0 {
			c.ledger.messages[id].left = true // A message of this node reaches its entity without leaving.
		}
		delete(c.asks, id)
		c.ledger.outcome(id, a.Code)
	case cell.OpDrop:
		c.ledger.drop(a.Drop, id)
	}
}

// freed notes that the cell has no use for a message any more.
func (c *Cells) freed(m *cell.Message) {
	delete(c.routes, m)
	if m.Origin != c.self {
		return
	}
	id := binary.BigEndian.Uint64(m.Payload)
	c.ledger.delivered(id)
	if waiting := c.asks[id]; waiting != nil {
		waiting.delivered, waiting.m = true, nil
	}
}

// asksOf returns the asks to a shard, sorted: all asks, or those whose message was
// delivered.
func (c *Cells) asksOf(shard protocol.ShardID, delivered bool) []uint64 {
	var ids []uint64
	for id, a := range c.asks {
		if a.shard == shard && (a.delivered || !delivered) {
			ids = append(ids, id)
		}
	}
	sortIDs(ids)
	return ids
}

// frames is the codec of the message lane, on which bytes travel that are encoded already.
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
