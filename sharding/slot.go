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
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/wire"
	"github.com/quorate/quorate/transport"
)

// The runtime of one cell: it holds the cell's mutex for a step, and carries out the actions
// of that step in their order. First come the ways in: asks, inputs of the control machine, a
// lane with room. Then carry and carryRest, with a function for each sort of action:
// messages to a lane, failures, replies, acknowledgements, the timer.

// slot holds the cell of one shard: the state machine, the mutex that gives one goroutine
// exclusive use of it, and the runtime's own state. The mutex is held for the bookkeeping
// of one message; under it the lock of a lane and that of the dispatcher may be taken,
// never that of another slot, and never is user code run.
type slot struct {
	id    protocol.ShardID
	dirty atomic.Bool   // The slot is in the dispatcher's list of acknowledgements.
	away  atomic.Bool   // The last message went to another node: a hint for the next message.
	ends  atomic.Uint32 // How often the hosting has ended. Written with mu held.

	mu      sync.Mutex // Guards all fields below.
	cell    *cell.Cell
	out     cell.Actions
	asks    map[uint64]*ask                 // The asks without a reply, by correlation; made at first use.
	full    bool                            // The last step found the lane full.
	waiters map[*cell.Message]chan struct{} // Senders that wait for room, by message: the channel is closed when room is kept for the message.
	timer   *time.Timer                     // The timer of OpWake; made at first use.
	life    *life                           // The context of the entities; made at first use.
	free    freeList
	link    link
}

// life is the context of the entities of a cell for as long as it hosts.
type life struct {
	hostContext

	of *hostContext // The context of the system from which this one was derived.
}

// contextOf returns the context of an entity. The entities of a cell share one context,
// made when the first of them asks for it: most never do.
func (r *router) contextOf(e *cell.Entity) context.Context {
	sl, host := r.slotOf(e.ID()), r.system.hostContext.Load()
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if e.Ended() {
		return r.system.canceled
	}
	if sl.life == nil || sl.life.of != host {
		sl.endLife()
		ctx, cancel := context.WithCancel(context.WithValue(host.ctx, ofEntity{}, true))
		sl.life = &life{hostContext{ctx, cancel}, host}
	}
	return sl.life.ctx
}

// endLife ends the context that the entities share; the caller holds the slot.
func (sl *slot) endLife() {
	if sl.life != nil {
		sl.life.cancel()
		sl.life = nil
	}
}

// expect puts an ask into the table of asks; the caller holds the slot.
func (sl *slot) expect(a *ask, m *cell.Message) {
	if sl.asks == nil {
		sl.asks = make(map[uint64]*ask)
	}
	a.message = m
	sl.asks[a.correlation], a.homes = a, sl.cell.Homes()
}

// info returns a snapshot of the cell.
func (sl *slot) info() cell.Info {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	return sl.cell.Info()
}

// retract takes an ask that does not wait any longer out of the table, and takes its
// message back if that is possible. True: the message was taken back, and no entity will
// process it.
func (r *router) retract(sl *slot, a *ask) bool {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.asks[a.correlation] != a {
		return false // The reply has come.
	}
	delete(sl.asks, a.correlation)
	if a.delivered {
		return false
	}
	if p := sl.link.passage; p != nil {
		if _, over := p.Written(); over {
			sl.reroute(nil)
		}
	}
	m := a.message
	if !sl.cell.Retract(r.system.clock.Instant(), m, &sl.out) {
		return false
	}
	r.system.messages.free(m)
	r.carry(sl, nil)
	return true
}

// step runs f with the slot in hand, and carries out the actions of the cell that follow.
func (r *router) step(sl *slot, f func(out *cell.Actions)) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	f(&sl.out)
	r.carry(sl, nil)
}

// flush transmits the messages of a cell that wait for a node. It reports false when the
// lane to the node does not take them all.
func (r *router) flush(sl *slot, now machine.Instant, node gossip.NodeID) bool {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	sl.cell.Flush(now, node, &sl.out)
	r.carry(sl, nil)
	return !sl.full
}

// apply feeds an input of the control machine to a cell.
func (r *router) apply(sl *slot, in protocol.CellInput) {
	r.step(sl, func(out *cell.Actions) {
		if sl.link.passage != nil {
			below, _ := sl.link.passage.Written()
			sl.cell.Written(below)
		}
		homes := sl.cell.Homes()
		sl.cell.Apply(r.system.clock.Instant(), in, out)
		if sl.cell.Homes() != homes {
			r.settleEarly(sl)
		}
	})
}

// carry carries out the actions of the cell's last step; the caller holds the
// slot. The entity mine is the one that the caller's goroutine runs: work for mine is
// returned instead of started on another goroutine.
func (r *router) carry(sl *slot, mine *cell.Entity) (next cell.Op) {
	sl.full = false // All messages of a step go to the same node: the first that finds the lane full ends the transmission.
	// An acknowledgement to this node itself adds actions while they are read.
	for i := 0; i < len(sl.out.List()); i++ {
		a := &sl.out.List()[i]
		switch a.Op {
		case cell.OpStart, cell.OpRun, cell.OpStop:
			if a.Entity == mine {
				next = a.Op
			} else {
				r.work(sl, a.Entity, a.Op)
			}
		case cell.OpTransmit:
			if !sl.full {
				sl.full = !r.transmit(sl, a)
			}
		default:
			r.carryRest(sl, a)
		}
	}
	sl.out.Reset()
	return next
}

// carryRest carries out every action but those that start work or transmit messages of
// this origin.
func (r *router) carryRest(sl *slot, a *cell.Action) {
	switch a.Op {
	case cell.OpForward:
		_, _ = sl.link.append(r.system, a.To, a.Message, 1) // The message is lost here when the lane is full: its origin sends it again.
	case cell.OpFree:
		r.freed(sl, a.Message)
	case cell.OpFail:
		r.fail(sl, a)
		r.system.messages.free(a.Message)
	case cell.OpReset:
		r.reset(sl)
	case cell.OpReply:
		r.reply(sl, a)
	case cell.OpAck, cell.OpNeed:
		r.signal(sl, a)
	case cell.OpDrop:
		r.system.counters.dropped[a.Drop].Add(1)
		r.system.messages.free(a.Message)
	case cell.OpForged:
		r.forged(sl, a.To, a.Fault)
	case cell.OpOfferAgain:
		close(sl.waiters[a.Message])
		delete(sl.waiters, a.Message)
	case cell.OpFlow:
		r.answerWith(a.To, func(dst []byte) []byte { return wire.AppendFlow(dst, *a.Flow) })
	case cell.OpEvent:
		r.system.dispatcher.report(control.FromShard{Kind: r.name, Shard: sl.id, Event: a.Event})
	case cell.OpWake:
		r.wake(sl, a)
	case cell.OpStuck:
		r.stuck(sl, a.Entity)
	case cell.OpReturned:
		r.system.counters.stuck.Add(-1)
	case cell.OpEnd:
		sl.ends.Add(1)
		sl.endLife()
	}
}

// stuck counts an entity that does not return, and reports it.
func (r *router) stuck(sl *slot, e *cell.Entity) {
	r.system.counters.stuck.Add(1)
	info := e.Info()
	since := r.system.clock.Instant().Sub(info.Since)
	// The goroutine is owned by the system and ends when the line is written, which is
	// not done with the slot in hand.
	r.system.workers.Go(func() {
		r.system.log.Error("entity does not return", "kind", r.name, "shard", uint32(sl.id), "entity", info.ID,
			"state", info.State, "for", since, "left behind", info.Released)
	})
}

// freed returns messages, for which the cell has no use any more, to the pool; the asks
// among them now wait for their replies.
func (r *router) freed(sl *slot, list *cell.Message) {
	for m := list; m != nil; {
		next := m.Next()
		if m.Correlation != 0 && m.Origin == r.system.self {
			if ask := sl.asks[m.Correlation]; ask != nil {
				ask.delivered, ask.message = true, nil
			}
		}
		r.system.messages.free(m)
		m = next
	}
}

// transmit appends messages to the lane to their host, as many in each envelope as
// fit. It reports false when the lane takes no more at present.
func (r *router) transmit(sl *slot, a *cell.Action) bool {
	if !r.goes(sl, a.To) {
		sl.cell.Unsent(a.Message)
		return true // The lane is not full; every cell asks by itself whether its messages would leave.
	}
	for m, most := a.Message, envelopeMost; m != nil; {
		sent, err := sl.link.append(r.system, a.To, m, most)
		switch {
		case err == nil:
			if sent.passage != sl.link.passage {
				sl.reroute(sent.passage)
			}
			sl.cell.Handed(m, sent.unsent, sent.place)
			m, most = sent.unsent, envelopeMost
		case errors.Is(err, transport.ErrTooLarge) && most > 1:
			most = 1
		case errors.Is(err, transport.ErrTooLarge) && m.Flags&flagTooLarge == 0:
			// The frames of the transport are smaller than the messages of sharding
			// may be. The host answers in the message's place, so that the sender
			// learns of it and the stream goes on.
			m.Flags |= flagTooLarge
			m.Payload = []byte{}
		default:
			sl.cell.Unsent(m)
			if errors.Is(err, transport.ErrFull) {
				r.system.awaitRoom(a.To)
			}
			return false
		}
	}
	return true
}

// reroute tells the cell that its next messages take another passage, and how far the
// passage that they took so far has come.
func (sl *slot) reroute(next transport.Passage) {
	if old := sl.link.passage; old != nil {
		sl.cell.Rerouted(old.Written())
	}
	sl.link.passage = next
}

// flagTooLarge marks a message whose payload no frame could hold.
const flagTooLarge = 1

// fail ends a message of this node with an error: its ask is told, or a tell is counted.
func (r *router) fail(sl *slot, a *cell.Action) {
	if a.Message.Correlation != 0 {
		reply := &protocol.Reply{Correlation: a.Message.Correlation, Code: a.Code}
		if a.Reply != nil {
			reply.Detail = a.Reply.Detail
		}
		r.complete(sl, reply)
		return
	}
	detail := ""
	if a.Reply != nil {
		detail = a.Reply.Detail
	}
	r.system.losses.note(r.name, a.Message.Entity, a.Code, detail)
}

// reset ends the asks whose messages were delivered to a host that is gone.
func (r *router) reset(sl *slot) {
	for correlation, a := range sl.asks {
		if a.delivered {
			r.complete(sl, &protocol.Reply{Correlation: correlation, Code: protocol.CodeUnknownOutcome, Detail: "the node that had the message is gone"})
		}
	}
}

// abandon ends a cell of a node that has ended, with all asks and the timer.
func (r *router) abandon(sl *slot) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	sl.cell.Apply(r.system.clock.Instant(), protocol.Abandon{}, &sl.out)
	r.carry(sl, nil)
	for correlation := range sl.asks {
		r.complete(sl, &protocol.Reply{Correlation: correlation, Code: protocol.CodeUnknownOutcome, Detail: "this node has ended"})
	}
	if sl.timer != nil {
		sl.timer.Stop()
	}
}

// complete hands a reply to the ask that waits for it; the caller holds the slot. A
// reply without a correlation reports a tell that was refused. A reply whose ask is not
// in the table is dropped: the ask has a reply already, or was told why it has none.
func (r *router) complete(sl *slot, reply *protocol.Reply) {
	a := sl.asks[reply.Correlation]
	if a == nil {
		if reply.Correlation == 0 && reply.Code != protocol.CodeOK {
			r.system.losses.note(r.name, "", reply.Code, reply.Detail)
		}
		return
	}
	delete(sl.asks, reply.Correlation)
	a.reply <- reply
}

// reply sends a reply to the origin of its message.
func (r *router) reply(sl *slot, a *cell.Action) {
	reply := a.Reply
	if a.To == r.system.self {
		r.complete(sl, reply)
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
		r.system.counters.unsent.Add(1) // The ask ends with its deadline.
	}
}

func (r *router) respond(to gossip.NodeID, reply *protocol.Reply) error {
	reply.Clock = r.system.clock.Instant()
	return r.system.respond(to, func(dst []byte) []byte { return wire.AppendReply(dst, reply) })
}

// signal sends an acknowledgement, or a request to transmit messages again. When a
// connection loses either, the origin's own repetition makes up for the loss.
func (r *router) signal(sl *slot, a *cell.Action) {
	now := r.system.clock.Instant()
	if a.To == r.system.self {
		if a.Op == cell.OpAck {
			sl.cell.Acked(now, a.To, protocol.Ack{Kind: r.name, Shard: sl.id, Base: a.Base, Seq: a.Seq}, &sl.out)
		}
		return
	}
	base, seq := a.Base, a.Seq
	encode := func(dst []byte) []byte {
		return wire.AppendAck(dst, protocol.Ack{Kind: r.name, Shard: sl.id, Base: base, Seq: seq, Clock: r.system.clock.Instant()})
	}
	if a.Op == cell.OpNeed {
		encode = func(dst []byte) []byte {
			return wire.AppendNeed(dst, protocol.Need{Kind: r.name, Shard: sl.id, Base: base, Seq: seq})
		}
	}
	r.answerWith(a.To, encode)
}

// answerWith sends a frame that no ask waits for. A frame that cannot be sent is counted.
func (r *router) answerWith(to gossip.NodeID, encode func(dst []byte) []byte) {
	if r.system.respond(to, encode) != nil {
		r.system.counters.unsent.Add(1)
	}
}

// wake arms the slot's timer.
func (r *router) wake(sl *slot, a *cell.Action) {
	after := max(a.At.Sub(r.system.clock.Instant()), 0)
	if sl.timer != nil {
		sl.timer.Reset(after)
		return
	}
	// The timer's function runs on a goroutine of the Go runtime for the time of one step.
	// The cell of a node that has ended asks for no further step.
	sl.timer = time.AfterFunc(after, func() {
		r.step(sl, func(out *cell.Actions) { sl.cell.Tick(r.system.clock.Instant(), out) })
	})
}
