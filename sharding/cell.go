// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/wire"
	"github.com/quorate/quorate/transport"
)

// cell is this node's part of one shard: the machine, the lock that makes it
// somebody's for a moment, and what the runtime keeps for it. The lock is held
// for the bookkeeping of one message; under it a lane's lock and the mailroom's
// may be taken, never another cell's, and never is user code run.
type cell struct {
	id    protocol.ShardID
	dirty atomic.Bool   // It is in the mailroom's list of acknowledgements.
	away  atomic.Bool   // The last message went to another node: a hint for the next.
	ends  atomic.Uint32 // How often the hosting has ended. Written with the cell in hand.

	mu    sync.Mutex // Guards all below.
	shard *protocol.Cell
	out   protocol.Actions
	asks  map[uint64]*ask                     // By correlation; made at first use.
	jam   bool                                // The last step found the lane full.
	room  map[*protocol.Message]chan struct{} // Of those who wait for room: closed when it is kept for them.
	timer *time.Timer                         // For OpWake; made at first use.
	life  *life                               // What the entities' context is; made at first use.
	spare spares
	link  link
}

// life is the context of the entities of a cell for as long as it hosts.
type life struct {
	hostContext

	of *hostContext // That of the system from which it was derived.
}

// contextOf returns the context of an entity. It is the cell's, and made when an
// entity asks for it: most never do.
func (r *region) contextOf(e *protocol.Entity) context.Context {
	c, host := r.cellOf(e.ID()), r.system.hostContext.Load()
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.Ended() {
		return r.system.over
	}
	if c.life == nil || c.life.of != host {
		c.endLife()
		ctx, cancel := context.WithCancel(context.WithValue(host.ctx, ofEntity{}, true))
		c.life = &life{hostContext{ctx, cancel}, host}
	}
	return c.life.ctx
}

// endLife ends the context of the entities; the caller holds the cell.
func (c *cell) endLife() {
	if c.life != nil {
		c.life.cancel()
		c.life = nil
	}
}

// expect puts an ask into the table; the caller holds the cell.
func (c *cell) expect(a *ask, m *protocol.Message) {
	if c.asks == nil {
		c.asks = make(map[uint64]*ask)
	}
	a.message = m
	c.asks[a.correlation], a.homes = a, c.shard.Homes()
}

// info returns a snapshot of the cell.
func (c *cell) info() protocol.Info {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shard.Info()
}

// retract takes an ask that does not wait any longer out of the table, and takes its
// message back if that is possible. True: it was, and nobody processes the message.
func (r *region) retract(c *cell, a *ask) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asks[a.correlation] != a {
		return false // The reply has come.
	}
	delete(c.asks, a.correlation)
	if a.delivered {
		return false
	}
	if p := c.link.passage; p != nil {
		if _, over := p.Written(); over {
			c.reroute(nil)
		}
	}
	m := a.message
	if !c.shard.Retract(r.system.clock.Instant(), m, &c.out) {
		return false
	}
	r.system.messages.free(m)
	r.carry(c, nil)
	return true
}

// step runs f on the cell and carries out what follows.
func (r *region) step(c *cell, f func(out *protocol.Actions)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.out)
	r.carry(c, nil)
}

// flush transmits what waits for a node. It reports false when the lane there
// does not take it all.
func (r *region) flush(c *cell, now machine.Instant, node gossip.NodeID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shard.Flush(now, node, &c.out)
	r.carry(c, nil)
	return !c.jam
}

// apply feeds an input of the control machine to a cell.
func (r *region) apply(c *cell, in protocol.CellInput) {
	r.step(c, func(out *protocol.Actions) {
		if c.link.passage != nil {
			below, _ := c.link.passage.Written()
			c.shard.Written(below)
		}
		homes := c.shard.Homes()
		c.shard.Apply(r.system.clock.Instant(), in, out)
		if c.shard.Homes() != homes {
			r.settleEarly(c)
		}
	})
}

// carry carries out the actions of the cell's last step; the caller holds the
// cell. Mine is the entity that the caller's goroutine runs: work for it is
// returned instead of started on another goroutine.
func (r *region) carry(c *cell, mine *protocol.Entity) (next protocol.Op) {
	c.jam = false // The lane took a message no more; all of them go to the same node.
	// An acknowledgement to this node itself adds actions while they are read.
	for i := 0; i < len(c.out.List()); i++ {
		a := &c.out.List()[i]
		switch a.Op {
		case protocol.OpStart, protocol.OpRun, protocol.OpStop:
			if a.Entity == mine {
				next = a.Op
			} else {
				r.work(c, a.Entity, a.Op)
			}
		case protocol.OpTransmit:
			if !c.jam {
				c.jam = !r.transmit(c, a)
			}
		default:
			r.minor(c, a)
		}
	}
	c.out.Reset()
	return next
}

// minor carries out an action that starts no work and transmits nothing of
// this origin.
func (r *region) minor(c *cell, a *protocol.Action) {
	switch a.Op {
	case protocol.OpForward:
		_, _ = c.link.append(r.system, a.To, a.Message, 1) // Lost here when the lane is full: its origin sends it again.
	case protocol.OpFree:
		r.freed(c, a.Message)
	case protocol.OpFail:
		r.fail(c, a)
		r.system.messages.free(a.Message)
	case protocol.OpReset:
		r.reset(c)
	case protocol.OpReply:
		r.reply(c, a)
	case protocol.OpAck, protocol.OpNeed:
		r.signal(c, a)
	case protocol.OpDrop:
		r.system.counters.dropped[a.Drop].Add(1)
		r.system.messages.free(a.Message)
	case protocol.OpForged:
		r.forged(c, a.To, a.Fault)
	case protocol.OpOfferAgain:
		close(c.room[a.Message])
		delete(c.room, a.Message)
	case protocol.OpFlow:
		r.answerWith(a.To, func(dst []byte) []byte { return wire.AppendFlow(dst, *a.Flow) })
	case protocol.OpEvent:
		r.system.events.report(protocol.FromShard{Kind: r.name, Shard: c.id, Event: a.Event})
	case protocol.OpWake:
		r.wake(c, a)
	case protocol.OpStuck:
		r.stuck(c, a.Entity)
	case protocol.OpReturned:
		r.system.counters.stuck.Add(-1)
	case protocol.OpEnd:
		c.ends.Add(1)
		c.endLife()
	}
}

// stuck counts an entity that does not return, and reports it.
func (r *region) stuck(c *cell, e *protocol.Entity) {
	r.system.counters.stuck.Add(1)
	info := e.Info()
	since := r.system.clock.Instant().Sub(info.Since)
	// Owned by the system: ends when the line is written, which is not done with
	// the cell in hand.
	r.system.workers.Go(func() {
		r.system.log.Error("entity does not return", "kind", r.name, "shard", uint32(c.id), "entity", info.ID,
			"state", info.State, "for", since, "left behind", info.Released)
	})
}

// freed takes messages back that the cell has no use for any more.
func (r *region) freed(c *cell, list *protocol.Message) {
	for m := list; m != nil; {
		next := m.Next()
		if m.Correlation != 0 && m.Origin == r.system.self {
			if ask := c.asks[m.Correlation]; ask != nil {
				ask.delivered, ask.message = true, nil
			}
		}
		r.system.messages.free(m)
		m = next
	}
}

// transmit appends messages to the lane to their host, as many in each envelope as
// fit. It reports false when the lane takes no more at present.
func (r *region) transmit(c *cell, a *protocol.Action) bool {
	if !r.goes(c, a.To) {
		c.shard.Unsent(a.Message)
		return true // Other cells ask for themselves.
	}
	for m, most := a.Message, envelopeMost; m != nil; {
		sent, err := c.link.append(r.system, a.To, m, most)
		switch {
		case err == nil:
			if sent.passage != c.link.passage {
				c.reroute(sent.passage)
			}
			c.shard.Handed(m, sent.rest, sent.place)
			m, most = sent.rest, envelopeMost
		case errors.Is(err, transport.ErrTooLarge) && most > 1:
			most = 1
		case errors.Is(err, transport.ErrTooLarge) && m.Flags&flagTooLarge == 0:
			// The frames of the transport are smaller than the messages of sharding
			// may be. The host answers in the message's place, so that the sender
			// learns of it and the stream goes on.
			m.Flags |= flagTooLarge
			m.Payload = []byte{}
		default:
			c.shard.Unsent(m)
			if errors.Is(err, transport.ErrFull) {
				r.system.awaitRoom(a.To)
			}
			return false
		}
	}
	return true
}

// reroute settles what is known of the passage that the cell's messages took so far.
func (c *cell) reroute(next transport.Passage) {
	if old := c.link.passage; old != nil {
		c.shard.Rerouted(old.Written())
	}
	c.link.passage = next
}

// flagTooLarge marks a message whose payload no frame could hold.
const flagTooLarge = 1

// fail ends a message of this origin.
func (r *region) fail(c *cell, a *protocol.Action) {
	if a.Message.Correlation != 0 {
		reply := &protocol.Reply{Correlation: a.Message.Correlation, Code: a.Code}
		if a.Reply != nil {
			reply.Detail = a.Reply.Detail
		}
		r.complete(c, reply)
		return
	}
	detail := ""
	if a.Reply != nil {
		detail = a.Reply.Detail
	}
	r.system.losses.note(r.name, a.Message.Entity, a.Code, detail)
}

// reset ends the asks whose messages a host had that is gone.
func (r *region) reset(c *cell) {
	for correlation, a := range c.asks {
		if a.delivered {
			r.complete(c, &protocol.Reply{Correlation: correlation, Code: protocol.CodeUnknownOutcome, Detail: "the node that had the message is gone"})
		}
	}
}

// abandon ends a cell of a node that has ended, with all asks and the timer.
func (r *region) abandon(c *cell) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shard.Apply(r.system.clock.Instant(), protocol.Abandon{}, &c.out)
	r.carry(c, nil)
	for correlation := range c.asks {
		r.complete(c, &protocol.Reply{Correlation: correlation, Code: protocol.CodeUnknownOutcome, Detail: "this node has ended"})
	}
	if c.timer != nil {
		c.timer.Stop()
	}
}

// complete hands a reply to whoever waits for it; the caller holds the cell. A
// reply without a correlation reports a tell that was refused. Whoever does not wait
// any more for one with a correlation has its reply, or was told why it has none.
func (r *region) complete(c *cell, reply *protocol.Reply) {
	a := c.asks[reply.Correlation]
	if a == nil {
		if reply.Correlation == 0 && reply.Code != protocol.CodeOK {
			r.system.losses.note(r.name, "", reply.Code, reply.Detail)
		}
		return
	}
	delete(c.asks, reply.Correlation)
	a.reply <- reply
}

// reply sends an answer to where its message came from.
func (r *region) reply(c *cell, a *protocol.Action) {
	reply := a.Reply
	if a.To == r.system.self {
		r.complete(c, reply)
		return
	}
	if reply.Correlation == 0 && reply.Code == protocol.CodeOK {
		return // Nobody asked.
	}
	err := r.respond(a.To, reply)
	if errors.Is(err, transport.ErrTooLarge) {
		reply.Code, reply.Detail, reply.Payload = protocol.CodeEntityFailed, "the reply is larger than a frame", nil
		err = r.respond(a.To, reply)
	}
	if err != nil {
		r.system.counters.unsent.Add(1) // The asker's deadline tells it.
	}
}

func (r *region) respond(to gossip.NodeID, reply *protocol.Reply) error {
	reply.Clock = r.system.clock.Instant()
	return r.system.respond(to, func(dst []byte) []byte { return wire.AppendReply(dst, reply) })
}

// signal sends an acknowledgement or a request to repeat. One that is lost with
// a connection is made up for by the origin's own repetition.
func (r *region) signal(c *cell, a *protocol.Action) {
	now := r.system.clock.Instant()
	if a.To == r.system.self {
		if a.Op == protocol.OpAck {
			c.shard.Acked(now, a.To, protocol.Ack{Kind: r.name, Shard: c.id, Base: a.Base, Seq: a.Seq}, &c.out)
		}
		return
	}
	base, seq := a.Base, a.Seq
	encode := func(dst []byte) []byte {
		return wire.AppendAck(dst, protocol.Ack{Kind: r.name, Shard: c.id, Base: base, Seq: seq, Clock: r.system.clock.Instant()})
	}
	if a.Op == protocol.OpNeed {
		encode = func(dst []byte) []byte {
			return wire.AppendNeed(dst, protocol.Need{Kind: r.name, Shard: c.id, Base: base, Seq: seq})
		}
	}
	r.answerWith(a.To, encode)
}

// answerWith sends what nobody waits for; what cannot be sent is counted.
func (r *region) answerWith(to gossip.NodeID, encode func(dst []byte) []byte) {
	if r.system.respond(to, encode) != nil {
		r.system.counters.unsent.Add(1)
	}
}

// wake arms the cell's timer.
func (r *region) wake(c *cell, a *protocol.Action) {
	after := max(a.At.Sub(r.system.clock.Instant()), 0)
	if c.timer != nil {
		c.timer.Reset(after)
		return
	}
	// Its function runs on a goroutine of the runtime for the time of one step.
	// A cell of a node that has ended asks for no further one.
	c.timer = time.AfterFunc(after, func() {
		r.step(c, func(out *protocol.Actions) { c.shard.Tick(r.system.clock.Instant(), out) })
	})
}
