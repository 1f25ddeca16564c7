// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"errors"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/wire"
	"github.com/quorate/quorate/transport"
)

// What a cell asks for is carried out here, in the order of its actions and with mu
// held: carry starts work and lets messages of this node go to their lane, carryRest does
// everything else, with a function for each sort of action: failures, replies,
// acknowledgements, the timer.

// carry carries out the actions of the cell's last step. Work for the entity mine, which is
// that of the caller's job, is returned and not given to another worker.
func (sl *Slot) carry(mine *cell.Entity) (next cell.Op) {
	ports := &sl.region.node.Ports
	sl.laneFull = false // All messages of a step go to the same node: the first that finds the lane full ends the transmission.
	// An acknowledgement to this node itself adds actions while they are read.
	for i := 0; i < len(sl.out.List()); i++ {
		a := &sl.out.List()[i]
		if ports.Watcher != nil {
			ports.Watcher.Acts(sl.shard, sl.out.List(), i)
		}
		switch a.Op {
		case cell.OpStart, cell.OpRun, cell.OpStop, cell.OpSnapshot:
			if a.Entity == mine {
				next = a.Op
			} else {
				t := Task{Slot: sl, Entity: a.Entity, Op: a.Op, class: classOf(a.Entity.Slow())}
				if a.Op == cell.OpRun {
					t.mail = a.Entity.Mail()
				}
				sl.region.ports.Work(t)
			}
		case cell.OpTransmit:
			if !sl.laneFull {
				sl.laneFull = !sl.transmit(a)
			}
		default:
			sl.carryRest(a)
		}
	}
	sl.region.node.chunks.put(sl.out.Spent())
	sl.out.Reset()
	if ports.Watcher != nil {
		ports.Watcher.Acted(sl.shard, sl.cell)
	}
	return next
}

// carryRest carries out every action but those that start work or transmit messages of
// this origin.
func (sl *Slot) carryRest(a *cell.Action) {
	node := sl.region.node
	switch a.Op {
	case cell.OpForward:
		sl.link.forward(node, a.To, a.Message)
	case cell.OpFree:
		sl.freed(a.Message)
	case cell.OpArrived:
		sl.asks.arrived(a.Seq)
	case cell.OpAcked:
		sl.asks.delivered(a.Items)
	case cell.OpMove:
		sl.moved = append(sl.moved, a.Message)
	case cell.OpFail:
		sl.fail(a)
		node.messages.free(a.Message)
	case cell.OpReset:
		sl.asks.completeAll("the node that had the message is gone", func(a *Ask) bool { return a.delivered })
	case cell.OpReply:
		sl.reply(a)
	case cell.OpPress:
		node.acks.pressing.Store(true) // The round begins when the frame is read.
	case cell.OpAck, cell.OpNeed:
		sl.signal(a)
	case cell.OpDrop:
		node.Ports.Notes.Dropped(a.Drop)
		node.messages.free(a.Message)
	case cell.OpForged:
		sl.forged(a.To, a.Fault)
	case cell.OpOfferAgain:
		sl.waiters[a.Message].Room()
		delete(sl.waiters, a.Message)
	case cell.OpFlow:
		node.answer(a.To, func(dst []byte) []byte { return wire.AppendFlow(dst, *a.Flow) })
	case cell.OpEvent:
		node.Ports.Report(sl.region.name, sl.shard, a.Event)
	case cell.OpForgotten:
		forgotten, _ := a.Event.(protocol.MemoryLost)
		node.Ports.Notes.Forgotten(sl.region.name, forgotten)
	case cell.OpWake:
		sl.wake(a)
	case cell.OpStuck:
		node.Ports.Notes.Stuck(sl, a.Entity)
	case cell.OpReturned:
		node.Ports.Notes.Returned()
	case cell.OpEnd:
		sl.hostings.Add(1)
		sl.region.ports.Ended(sl)
	}
}

// freed returns a message, for which the cell has no use any more, to the pool; if it is an ask of
// this node, that now waits for its reply.
func (sl *Slot) freed(m *cell.Message) {
	node := sl.region.node
	if m.Correlation != 0 && m.Origin == node.Ports.Self {
		sl.asks.arrived(m.Correlation)
	}
	node.messages.free(m)
}

// flagTooLarge marks a message whose payload no frame could hold.
const flagTooLarge = 1

// TooLarge reports whether a message came without its payload, since no frame of its
// sender's transport could hold that.
func TooLarge(m *cell.Message) bool { return m.Flags&flagTooLarge != 0 }

// transmit appends messages to the lane to their host, as many in each envelope as
// fit. It reports false when the lane takes no more at present.
func (sl *Slot) transmit(a *cell.Action) bool {
	if sl.link.batch != nil {
		sl.link.handOver(sl.cell, a.Seq)
		return true
	}
	if !sl.link.goes(sl, a.To) {
		sl.cell.Outbound().Unsent(a.Seq)
		return true // The lane is not full; every cell asks by itself whether its messages would leave.
	}
	o := sl.cell.Outbound().Transmission()
	for first, most := a.Seq, maxEnvelope; first < o.Window.Next(); {
		sent, err := sl.link.append(sl.region.node, a.To, o, first, most)
		switch {
		case err == nil:
			if sent.passage != sl.link.passage {
				sl.link.reroute(sl.cell, sent.passage)
			}
			sl.cell.Outbound().Handed(first, sent.unsent, sent.place)
			first, most = sent.unsent, maxEnvelope
		case errors.Is(err, transport.ErrTooLarge) && most > 1:
			most = 1
		case errors.Is(err, transport.ErrTooLarge) && sl.cell.Outbound().Strip(first, flagTooLarge, &sl.out):
			// The frames of the transport are smaller than the messages of sharding
			// may be. The host answers in the message's place, so that the sender
			// learns of it and the stream goes on.
		default:
			sl.cell.Outbound().Unsent(first)
			if errors.Is(err, transport.ErrFull) {
				sl.region.node.Ports.AwaitRoom(a.To)
			}
			return false
		}
	}
	return true
}

// fail ends a message of this node with an error: its ask is told, or a tell is counted.
func (sl *Slot) fail(a *cell.Action) {
	detail := ""
	if a.Reply != nil {
		detail = a.Reply.Detail
	}
	if a.Message.Correlation != 0 {
		sl.complete(&protocol.Reply{Correlation: a.Message.Correlation, Code: a.Code, Detail: detail})
		return
	}
	sl.region.node.Ports.Notes.Lost(sl.region.name, a.Message.Entity, a.Code, detail)
}

// forged notes a frame that the cell refused as forged.
func (sl *Slot) forged(from gossip.NodeID, fault cell.Fault) {
	sl.region.node.Ports.Notes.Forged(Forgery{from, fault, sl.region.name, sl.shard, func() bool {
		sl.mu.Lock()
		defer sl.mu.Unlock()
		return sl.cell.Went(from, 0)
	}})
}

// reply sends a reply to the origin of its message.
func (sl *Slot) reply(a *cell.Action) {
	node, reply := sl.region.node, a.Reply
	if a.To == node.Ports.Self {
		sl.complete(reply)
		return
	}
	if reply.Correlation == 0 && reply.Code == protocol.CodeOK {
		return // Nobody asked.
	}
	if !sl.lastAsker.keeps(a.To) {
		sl.lastAsker = node.peer(a.To)
	}
	err := sl.lastAsker.reply(reply)
	if errors.Is(err, transport.ErrTooLarge) {
		reply.Code, reply.Detail, reply.Payload = protocol.CodeEntityFailed, "the reply is larger than a frame", nil
		err = sl.lastAsker.reply(reply)
	}
	if err != nil {
		node.Ports.Notes.Unsent(1) // The ask ends with its deadline.
	}
}

// signal sends an acknowledgement, or a request to transmit messages again. When a
// connection loses either, the origin's own repetition makes up for the loss.
func (sl *Slot) signal(a *cell.Action) {
	node := sl.region.node
	switch {
	case a.To == node.Ports.Self && a.Op == cell.OpAck:
		sl.cell.Acked(sl.now(), a.To, protocol.Ack{Kind: sl.region.name, Shard: sl.shard, Base: a.Base, Seq: a.Seq}, &sl.out)
	case a.To == node.Ports.Self:
	case a.Op == cell.OpAck:
		node.gather(sl, a)
	default:
		need := protocol.Nack{Kind: sl.region.name, Shard: sl.shard, Base: a.Base, Seq: a.Seq}
		node.answer(a.To, func(dst []byte) []byte { return wire.AppendNeed(dst, need) })
	}
}

// wake arms the slot's timer.
func (sl *Slot) wake(a *cell.Action) {
	after := max(a.At.Sub(sl.now()), 0)
	if sl.timer != nil {
		sl.timer.Reset(after)
		return
	}
	// The cell of a node that has ended asks for no further step.
	sl.timer = sl.region.node.Ports.AfterFunc(after, func() {
		sl.Step(func(c *cell.Cell, out *cell.Actions) { c.Tick(sl.now(), out) })
	})
}
