// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/window"
)

// The bench of a cell, and its basic rules: first the origin and its lane, then the host, moves
// and standing, then refusals, failures, the end of a node and bounds, last allocations and
// benchmarks. The other tests of the package use the same bench.
//
// Tests read the actions of a cell as text, an action a word, in order. A helper such as tell,
// deliver or done makes one call of the cell and returns the words of that call; did returns
// the words of all actions that no helper has returned yet. After a done("x", ok) the words
// "reply free:x:1 run:x" say: the reply leaves, message 1 to entity x is freed, and entity x
// begins its next message.
//
//	transmit:x:3   the third message of the stream, to entity x, goes to the lane
//	forward:x:3    the same, for a message of another origin
//	acked:x:3      the third message of the stream, to entity x, is acknowledged
//	free:x:0       a message to x is freed; 0: it never had a number
//	fail:x:why     a message of this node to x fails with the code
//	drop:why       a message is dropped
//	reply          a reply leaves; with its code behind a colon if it is an error
//	ack:3, need:3  the stream is acknowledged up to 3; asked for from 3 on
//	start:x, run:x, stop:x           entity x is to be started, to process a message, to stop
//	snapshot:x, forgotten:x:why      entity x is to give its snapshot; its memory is lost
//	stuck:x, returned:x              entity x does not return; has returned after that
//	room:x                           a sender to x, which found no room, may try again
//	hold:x, open:x, ask:x            the flow of another node's messages to x, see Flow
//	lookup, shardstopped              an event for the control machine
//	reset, forged:fault              the streams begin anew; a frame is refused for that fault
//
// OpWake and OpEnd have no word.

var (
	nodeA = node("a", 1)
	nodeB = node("b", 2)
	nodeC = node("c", 3)
)

func node(host string, uid gossip.UID) gossip.NodeID {
	return gossip.NodeID{Address: gossip.Address{Host: host, Port: 1}, UID: uid}
}

func epoch(n uint64) protocol.Epoch {
	return protocol.Epoch{Born: 1, Term: protocol.Term{UpNumber: 1, Start: 1}, N: n}
}

// bench drives one Cell and returns its actions as text, an action a word.
type bench struct {
	*cell.Cell
	t        *testing.T
	now      machine.Instant
	out      cell.Actions
	entities map[string]*cell.Entity
	last     map[cell.Op]cell.Action
	place    uint64 // The place of the next message that is handed to a lane.
}

func newCell(t *testing.T, self gossip.NodeID, cfg cell.Config) *bench {
	t.Helper()
	cfg.Self, cfg.Kind = self, "k"
	return &bench{
		t: t, Cell: cell.New(cfg), now: 1,
		entities: make(map[string]*cell.Entity), last: make(map[cell.Op]cell.Action),
	}
}

// did returns the words of the actions since the last call, and forgets the actions.
func (c *bench) did() string {
	names := map[cell.Op]string{
		cell.OpTransmit: "transmit", cell.OpForward: "forward", cell.OpFree: "free", cell.OpArrived: "arrived", cell.OpFail: "fail",
		cell.OpReset: "reset", cell.OpReply: "reply", cell.OpAck: "ack", cell.OpNeed: "need",
		cell.OpStart: "start", cell.OpRun: "run", cell.OpStop: "stop", cell.OpDrop: "drop",
		cell.OpOfferAgain: "room", cell.OpStuck: "stuck", cell.OpReturned: "returned",
		cell.OpForged: "forged", cell.OpAcked: "acked", cell.OpMove: "move",
		cell.OpSnapshot: "snapshot", cell.OpForgotten: "forgotten",
	}
	var words []string
	for _, a := range c.out.List() {
		c.last[a.Op] = a
		word := names[a.Op]
		switch {
		case a.Op == cell.OpWake || a.Op == cell.OpEnd || a.Op == cell.OpPress:
			continue
		case a.Op == cell.OpEvent:
			word = strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", a.Event), "protocol."))
		case a.Op == cell.OpForgotten:
			f := a.Event.(protocol.MemoryLost)
			word += ":" + f.Entity + ":" + f.Loss.String()
		case a.Op == cell.OpForged:
			word += ":" + a.Fault.String()
		case a.Op == cell.OpAck || a.Op == cell.OpNeed || a.Op == cell.OpArrived:
			word += fmt.Sprintf(":%d", a.Seq)
		case a.Op == cell.OpReply && a.Reply.Code != protocol.CodeOK:
			word += ":" + a.Reply.Code.String()
		case a.Op == cell.OpFail:
			word += ":" + a.Message.Entity + ":" + a.Code.String()
		case a.Op == cell.OpDrop:
			word += ":" + a.Drop.String()
		case a.Op == cell.OpTransmit || a.Op == cell.OpAcked:
			items := a.Items
			if a.Op == cell.OpTransmit {
				items = c.Outbound().Transmission().Window.From(a.Seq)
			}
			for v := (window.View{}); items.Next(&v); {
				if a.Op == cell.OpTransmit {
					c.Outbound().Handed(v.Seq, v.Seq+1, c.place)
					c.place++
				}
				words = append(words, fmt.Sprintf("%s:%s:%d", word, v.Entity(), v.Seq))
			}
			continue
		case a.Op == cell.OpFlow:
			word = [...]string{"", "hold:", "open:", "ask:"}[a.Flow.State] + a.Flow.Entity
		case a.Op == cell.OpOfferAgain:
			word += ":" + a.Message.Entity
		case a.Message != nil:
			word += fmt.Sprintf(":%s:%d", a.Message.Entity, a.Message.Seq)
		case a.Entity != nil:
			c.entities[a.Entity.ID()] = a.Entity
			word += ":" + a.Entity.ID()
		}
		words = append(words, word)
	}
	c.out.Reset()
	return strings.Join(words, " ")
}

func (c *bench) apply(in protocol.CellInput) string {
	c.Apply(c.now, in, &c.out)
	return c.did()
}

func (c *bench) tell(entity string) string {
	c.t.Helper()
	admission := c.Accept(c.now, &cell.Message{Entity: entity, Payload: []byte("m")}, &c.out)
	require.Contains(c.t, []cell.Admission{cell.Accepted, cell.Packed}, admission)
	return c.did()
}

// from returns a message as it comes from a stream of another node.
func from(origin gossip.NodeID, entity string, seq uint64, base protocol.Epoch) *cell.Message {
	return &cell.Message{Origin: origin, Entity: entity, Seq: seq, Base: base, Route: base, Payload: []byte("m"), Correlation: 100 + seq}
}

func (c *bench) deliver(m *cell.Message) string {
	c.Deliver(c.now, m, &c.out)
	return c.did()
}

func (c *bench) started(id string, ok bool) string {
	c.Instances().Started(c.now, c.entities[id], ok, &c.out)
	return c.did()
}

func (c *bench) done(id string, r cell.Result) string {
	c.Instances().Done(c.now, c.entities[id], r, &c.out)
	return c.did()
}

func (c *bench) stopped(id string) string {
	c.Instances().Stopped(c.now, c.entities[id], &c.out)
	return c.did()
}

func (c *bench) tick(d time.Duration) string {
	c.now = c.now.Add(d)
	c.Tick(c.now, &c.out)
	return c.did()
}

func (c *bench) acks() string {
	c.Acks(&c.out)
	return c.did()
}

func host(t *testing.T, cfg cell.Config) *bench {
	t.Helper()
	c := newCell(t, nodeA, cfg)
	require.Empty(t, c.apply(protocol.StartHosting{Epoch: epoch(1), Base: epoch(1)}))
	return c
}

var ok = cell.Result{Reply: &protocol.Reply{}}

// A home asks for acknowledgements to be sent at once when a quarter of a window was delivered, and
// again when that has been done and as much has come.
func TestAnOriginIsAcknowledgedBeforeItsWindowIsFull(t *testing.T) {
	c := host(t, cell.Config{WindowBytes: 8 << 10, Mailbox: 1 << 10})
	pressed := func() bool {
		_, pressed := c.last[cell.OpPress]
		delete(c.last, cell.OpPress)
		return pressed
	}
	seq := uint64(0)
	until := func() (n int) {
		for n = 1; n <= 100; n++ {
			seq++
			if c.deliver(from(nodeB, "x", seq, epoch(1))); pressed() {
				return n
			}
		}
		return n
	}
	require.Equal(t, 16, until(), "a message counts some 130 bytes")
	require.Greater(t, until(), 100, "said once")
	require.Equal(t, fmt.Sprintf("ack:%d", seq), c.acks())
	require.Equal(t, 16, until())
}

// An origin keeps messages until they are acknowledged, transmits them again, and asks for
// the home of its shard once.
func TestOriginTransmitsAndKeeps(t *testing.T) {
	c := newCell(t, nodeA, cell.Config{})
	require.Equal(t, "lookup", c.tell("x"))
	require.Empty(t, c.tell("y"), "asked once")
	require.Equal(t, "transmit:x:1 transmit:y:2", c.apply(protocol.SetRoute{Home: nodeB, Epoch: epoch(1), Base: epoch(1)}))
	require.Equal(t, "transmit:x:3", c.tell("x"))
	require.Empty(t, c.apply(protocol.SetRoute{Home: nodeC, Epoch: epoch(1), Base: epoch(1)}), "an epoch that is not above")
	c.Acked(c.now, nodeB, protocol.Ack{Base: epoch(1), Seq: 2}, &c.out)
	require.Equal(t, "acked:x:1 acked:y:2", c.did())
	c.Acked(c.now, nodeB, protocol.Ack{Base: epoch(1), Seq: 9}, &c.out)
	require.Empty(t, c.did(), "an acknowledgement of what was never sent")
	require.Equal(t, "transmit:x:3", c.tick(2*time.Second), "sent again without an acknowledgement")
	c.Needed(c.now, nodeB, protocol.Nack{Base: epoch(1), Seq: 3}, &c.out)
	require.Equal(t, "transmit:x:3", c.did())
	c.Broken(nodeB)
	require.Empty(t, c.tell("z"))
	c.Flush(c.now, nodeB, &c.out)
	require.Equal(t, "transmit:x:3 transmit:z:4", c.did())
}

// A message that a full lane did not take counts as not sent, and goes to the next home.
func TestFullLane(t *testing.T) {
	c := newCell(t, nodeA, cell.Config{})
	c.apply(protocol.SetRoute{Home: nodeB, Epoch: epoch(1), Base: epoch(1)})
	require.Equal(t, "transmit:x:1", c.tell("x"))
	require.Equal(t, cell.Packed, c.Accept(c.now, &cell.Message{Entity: "y", Payload: []byte("m")}, &c.out))
	c.out.Reset()
	c.Outbound().Unsent(2)
	require.Empty(t, c.tell("z"))
	c.Outbound().Written(1)
	require.Equal(t, "reset fail:x:unknown outcome transmit:y:1 transmit:z:2",
		c.apply(protocol.SetRoute{Home: nodeC, Epoch: epoch(2), Base: epoch(2)}))
}

// When the streams begin anew after the death of a home, the messages that have not left
// this node go to the next home; the outcome of those that may have left is unknown.
// covers I20 in the cell.
func TestWhatHasNotLeftGoesToTheNextHome(t *testing.T) {
	lost := func(id string) string { return "fail:" + id + ":unknown outcome" }
	told := func(c *bench) {
		c.apply(protocol.SetRoute{Home: nodeB, Epoch: epoch(1), Base: epoch(1)})
		c.tell("x")
		c.tell("y")
	}
	next := protocol.SetRoute{Home: nodeC, Epoch: epoch(2), Base: epoch(2)}
	tests := map[string]struct {
		then func(c *bench)
		want string
	}{
		"no message was written":    {func(*bench) {}, "reset transmit:x:1 transmit:y:2"},
		"one message was written":   {func(c *bench) { c.Outbound().Written(1) }, "reset " + lost("x") + " transmit:y:1"},
		"all messages were written": {func(c *bench) { c.Outbound().Written(2) }, "reset " + lost("x") + " " + lost("y")},
		"sent again, and the first copies were written": {func(c *bench) {
			c.Outbound().Written(1)
			c.tick(2 * time.Second)
			c.Outbound().Written(2)
		}, "reset " + lost("x") + " " + lost("y")},
		"sent again, and no copy was written": {func(c *bench) {
			c.tick(2 * time.Second)
			c.Outbound().Written(0)
		}, "reset transmit:x:1 transmit:y:2"},
		"the passage was given up": {func(c *bench) {
			c.Outbound().Rerouted(1, true)
			c.Broken(nodeB)
			c.Flush(c.now, nodeB, &c.out)
			c.place = 0
			c.did()
			c.Outbound().Written(0)
		}, "reset " + lost("x") + " transmit:y:1"},
		"another passage, while the first goes on": {func(c *bench) { c.Outbound().Rerouted(1, false) }, "reset " + lost("x") + " " + lost("y")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCell(t, nodeA, cell.Config{})
			told(c)
			test.then(c)
			require.Equal(t, test.want, c.apply(next))
		})
	}
}

// The window is bounded. A sender that found it full is called when there is room.
func TestWindowIsBounded(t *testing.T) {
	c := newCell(t, nodeA, cell.Config{WindowBytes: 300})
	c.apply(protocol.SetRoute{Home: nodeB, Epoch: epoch(1), Base: epoch(1)})
	c.tell("x")
	c.tell("y")
	m := &cell.Message{Entity: "z"}
	require.Equal(t, cell.WindowFull, c.Accept(c.now, m, &c.out))
	c.Acked(c.now, nodeB, protocol.Ack{Base: epoch(1), Seq: 2}, &c.out)
	require.Equal(t, "acked:x:1 acked:y:2 room:z", c.did())
	require.Equal(t, cell.Packed, c.Accept(c.now, m, &c.out))
	require.Equal(t, "transmit:z:3", c.did())
}

// A host delivers each message once and in order, asks for messages that are missing, and
// acknowledges all messages up to a number at once.
func TestHostDeliversInOrderOnce(t *testing.T) {
	c := host(t, cell.Config{})
	require.Equal(t, "need:1", c.deliver(from(nodeB, "x", 2, epoch(1))))
	require.Empty(t, c.deliver(from(nodeB, "x", 3, epoch(1))), "asked once")
	require.Equal(t, "drop:duplicate", c.deliver(from(nodeB, "x", 3, epoch(1))))
	require.Equal(t, "start:x", c.deliver(from(nodeB, "x", 1, epoch(1))))
	require.Equal(t, "drop:duplicate", c.deliver(from(nodeB, "x", 2, epoch(1))))
	require.Equal(t, "ack:3", c.acks())
	require.Empty(t, c.acks())
	require.Equal(t, "run:x", c.started("x", true))
	require.Equal(t, "reply free:x:1 run:x", c.done("x", ok))
	require.Equal(t, nodeB, c.last[cell.OpReply].To)
	require.EqualValues(t, 101, c.last[cell.OpReply].Reply.Correlation)
	require.Equal(t, "reply free:x:2 run:x", c.done("x", ok))
	require.Equal(t, "reply free:x:3", c.done("x", ok))
	require.Equal(t, "drop:old-stream", c.deliver(from(nodeB, "x", 4, protocol.Epoch{Born: 1})))
}

// Local messages go into the mailbox without a number while the window is empty.
func TestLocalMessagesBypassStreams(t *testing.T) {
	c := host(t, cell.Config{})
	require.True(t, c.Local())
	require.Equal(t, "start:x", c.tell("x"))
	require.Equal(t, "run:x", c.started("x", true))
	require.Equal(t, "free:x:0", c.done("x", cell.Result{}))
}

// A move carries the positions of the streams: messages that were delivered are not
// delivered again, messages that waited are passed on, and none is lost or overtaken.
// covers I20.
func TestMoveCarriesPositions(t *testing.T) {
	x := host(t, cell.Config{})
	x.deliver(from(nodeB, "x", 1, epoch(1)))
	x.started("x", true)
	x.deliver(from(nodeB, "x", 2, epoch(1)))
	require.Empty(t, x.apply(protocol.StopHosting{Epoch: epoch(1)}))
	require.Equal(t, "lookup", x.deliver(from(nodeB, "x", 3, epoch(1))), "delivers no more")
	require.Equal(t, "free:x:1 run:x", x.done("x", cell.Result{}), "the mailbox runs out")
	require.Equal(t, "free:x:2 stop:x", x.done("x", cell.Result{}))
	require.Equal(t, "ack:2 shardstopped", x.stopped("x"))
	halted := x.last[cell.OpEvent].Event.(protocol.ShardStopped)
	require.Equal(t, []protocol.Position{{Origin: nodeB, Seq: 2}}, halted.Positions)
	require.Empty(t, x.apply(protocol.ResumeHosting{Epoch: epoch(1)}), "too late")
	require.Equal(t, "forward:x:3 free:x:3", x.apply(protocol.SetRoute{Home: nodeC, Epoch: epoch(2), Base: epoch(1)}))
	m := *x.last[cell.OpForward].Message
	require.Equal(t, epoch(2), m.Route)

	y := newCell(t, nodeC, cell.Config{})
	require.Equal(t, "lookup", y.deliver(&m), "the message is ahead of the command")
	require.Equal(t, "start:x", y.apply(protocol.StartHosting{Epoch: epoch(2), Base: epoch(1), Positions: halted.Positions}))
	require.Equal(t, "drop:duplicate", y.deliver(from(nodeB, "x", 2, epoch(1))))
	require.Equal(t, "ack:3", y.acks())
}

// When a stop is taken back, the shard goes on where it was.
func TestResume(t *testing.T) {
	c := host(t, cell.Config{})
	c.deliver(from(nodeB, "x", 1, epoch(1)))
	c.started("x", true)
	c.apply(protocol.StopHosting{Epoch: epoch(1)})
	c.deliver(from(nodeB, "x", 2, epoch(1)))
	require.Empty(t, c.apply(protocol.ResumeHosting{Epoch: epoch(1)}))
	require.Equal(t, "reply free:x:1 run:x", c.done("x", ok))
	require.Equal(t, "ack:2", c.acks())
}

// A cell without standing begins nothing, and lets no reply leave.
func TestSuspendedCell(t *testing.T) {
	c := host(t, cell.Config{})
	c.deliver(from(nodeB, "x", 1, epoch(1)))
	c.started("x", true)
	c.deliver(from(nodeB, "x", 2, epoch(1)))
	require.Empty(t, c.apply(protocol.SuspendHosting{}))
	require.Equal(t, "free:x:1", c.done("x", ok), "the reply is withheld, the next message waits")
	require.Empty(t, c.deliver(from(nodeB, "y", 3, epoch(1))), "nothing starts")
	require.Equal(t, "reply run:x start:y", c.apply(protocol.UnsuspendHosting{}))

	c.Instances().Postpone(c.now, c.entities["x"], &c.out)
	require.Empty(t, c.did())
	require.Equal(t, "run:x", c.tick(50*time.Millisecond))
	require.Equal(t, "free:x:2", c.done("x", cell.Result{Reply: &protocol.Reply{}, Withhold: true}))
	require.Equal(t, "reply", c.tick(50*time.Millisecond))
}

// Messages to an entity that rests after a failure are refused, and expired messages are not
// processed. Every sender is told, and a refused message is acknowledged as any other.
func TestRefusals(t *testing.T) {
	c := host(t, cell.Config{})
	c.deliver(from(nodeB, "x", 1, epoch(1)))
	c.deliver(from(nodeB, "x", 2, epoch(1)))
	require.Equal(t, "reply:entity failed free:x:1 reply:entity failed free:x:2", c.started("x", false))
	require.Equal(t, "reply:entity failed free:x:3", c.deliver(from(nodeB, "x", 3, epoch(1))))
	require.Equal(t, cell.EntityFailing, c.Accept(c.now, &cell.Message{Entity: "x"}, &c.out))
	require.Equal(t, protocol.CodeEntityFailed, cell.EntityFailing.Code())
	c.now = c.now.Add(time.Second)
	require.Equal(t, "start:x", c.deliver(from(nodeB, "x", 4, epoch(1))), "after the back-off")
	require.Equal(t, "run:x", c.started("x", true))
	late := from(nodeB, "x", 5, epoch(1))
	late.Deadline = c.now + 1
	require.Empty(t, c.deliver(late))
	c.now++
	require.Equal(t, "reply free:x:4 reply:deadline passed before the message was processed free:x:5", c.done("x", ok))
	require.Equal(t, "ack:5", c.acks(), "a refusal is an outcome")
	overdue := from(nodeB, "y", 6, epoch(1))
	overdue.Deadline = cell.Overdue
	require.Equal(t, "reply:deadline passed before the message was processed free:y:6", c.deliver(overdue), "nothing starts for it")
	require.Equal(t, "ack:6", c.acks(), "it counts all the same")
}

// A message whose deadline passes after it was handed to its entity, and before the entity
// begins it, is refused, and the next message begins.
func TestWhatLapsesIsRefused(t *testing.T) {
	c := host(t, cell.Config{})
	c.deliver(from(nodeB, "x", 1, epoch(1)))
	require.Equal(t, "run:x", c.started("x", true))
	c.deliver(from(nodeB, "x", 2, epoch(1)))
	c.Instances().Lapse(c.now, c.entities["x"], &c.out)
	require.Equal(t, "reply:deadline passed before the message was processed free:x:1 run:x", c.did())
	c.apply(protocol.SetRoute{Home: nodeC, Epoch: epoch(2), Base: epoch(1)})
	c.Instances().Lapse(c.now, c.entities["x"], &c.out)
	require.Equal(t, "reply:not delivered free:x:2 stop:x", c.did(), "its hosting has ended")
	c.Instances().Lapse(c.now, c.entities["x"], &c.out)
	require.Empty(t, c.did(), "it is at nothing")
}

// An entity that fails is stopped, and started anew for the messages that wait. An entity
// that is passivated is stopped when no message waits, and leaves no record.
func TestFailureAndPassivation(t *testing.T) {
	c := host(t, cell.Config{})
	c.tell("x")
	c.started("x", true)
	c.tell("x")
	require.Equal(t, "free:x:0 stop:x", c.done("x", cell.Result{Failed: true}))
	require.Equal(t, "start:x", c.stopped("x"))
	require.Equal(t, "run:x", c.started("x", true))
	c.Instances().Passivate(c.now, c.entities["x"], &c.out)
	require.Empty(t, c.did(), "it is busy")
	require.Equal(t, "free:x:0 stop:x", c.done("x", cell.Result{}))
	require.Empty(t, c.tell("x"), "a message during the stop waits")
	require.Equal(t, "start:x", c.stopped("x"))
	c.started("x", true)
	c.done("x", cell.Result{})
	c.Instances().Passivate(c.now, c.entities["x"], &c.out)
	require.Equal(t, "stop:x", c.did())
	require.Empty(t, c.stopped("x"))
	require.Zero(t, c.Info().Entities, "a passive entity has no record")
}

// A host that is replaced under a higher epoch refuses the messages that wait, and stops its
// entities when they return.
func TestReplacedHostGivesBack(t *testing.T) {
	c := host(t, cell.Config{})
	c.deliver(from(nodeB, "x", 1, epoch(1)))
	c.started("x", true)
	c.deliver(from(nodeB, "x", 2, epoch(1)))
	require.Equal(t, "reply:not delivered free:x:2 reset", c.apply(protocol.SetRoute{Home: nodeC, Epoch: epoch(2), Base: epoch(2)}))
	require.Equal(t, "reply free:x:1 stop:x", c.done("x", ok))
	require.Empty(t, c.stopped("x"))
	require.False(t, c.Info().Hosting)
}

// At the end of a node every message gets an outcome.
func TestAbandon(t *testing.T) {
	c := newCell(t, nodeA, cell.Config{WindowBytes: 300})
	c.apply(protocol.SetRoute{Home: nodeB, Epoch: epoch(1), Base: epoch(1)})
	c.tell("x")
	c.Broken(nodeB)
	c.tell("y")
	c.Accept(c.now, &cell.Message{Entity: "z"}, &c.out)
	require.Equal(t, "fail:x:unknown outcome fail:y:not delivered room:z", c.apply(protocol.AbandonHosting{}))
	require.Equal(t, cell.Ended, c.Accept(c.now, &cell.Message{Entity: "z"}, &c.out))
	require.Equal(t, "drop:node-stopped", strings.ReplaceAll(c.deliver(from(nodeB, "x", 1, epoch(1))), "stopped", "node-stopped"))

	h := host(t, cell.Config{})
	h.tell("x")
	h.started("x", true)
	h.tell("x")
	require.Equal(t, "fail:x:not delivered", h.apply(protocol.AbandonHosting{}))
	require.Equal(t, "free:x:0 stop:x", h.done("x", ok), "the answer stays here")
}

// The messages that wait for a newer map are bounded, and so is the number of times that a
// message is passed on.
func TestTransitIsBounded(t *testing.T) {
	c := newCell(t, nodeA, cell.Config{TransitBytes: 300})
	c.apply(protocol.SetRoute{Home: nodeB, Epoch: epoch(1), Base: epoch(1)})
	for seq := range uint64(2) {
		c.deliver(from(nodeC, "x", seq+1, epoch(1)))
	}
	require.Equal(t, "drop:overflow", c.deliver(from(nodeC, "x", 3, epoch(1))))
	tired := from(nodeC, "x", 3, epoch(1))
	tired.Route, tired.Hops = protocol.Epoch{}, cell.MaxHops
	require.Equal(t, "drop:hops", c.deliver(tired))
	require.Equal(t, "forward:x:1 free:x:1 forward:x:2 free:x:2", c.apply(protocol.SetRoute{Home: nodeB, Epoch: epoch(2), Base: epoch(1)}))
}

// The cell allocates nothing for a message, neither at a local entity nor on the way to
// another node.
func TestHotPathsDoNotAllocate(t *testing.T) {
	local := host(t, cell.Config{})
	local.tell("x")
	local.started("x", true)
	local.done("x", cell.Result{})
	m := &cell.Message{Payload: []byte("m")}
	require.Zero(t, testing.AllocsPerRun(100, func() { localRound(local, m) }))
	remote := newCell(t, nodeA, cell.Config{})
	remote.apply(protocol.SetRoute{Home: nodeB, Epoch: epoch(1), Base: epoch(1)})
	require.Zero(t, testing.AllocsPerRun(100, func() { remoteRound(remote, m) }))
}

// localRound accepts one local message and ends it.
func localRound(c *bench, m *cell.Message) {
	m.Reset()
	m.Entity = "x"
	c.Accept(c.now, m, &c.out)
	c.Instances().Done(c.now, c.entities["x"], cell.Result{}, &c.out)
	c.out.Reset()
}

// remoteRound accepts one message for another node and acknowledges it.
func remoteRound(c *bench, m *cell.Message) {
	m.Reset()
	m.Entity = "x"
	c.Accept(c.now, m, &c.out)
	c.Acked(c.now, nodeB, protocol.Ack{Base: epoch(1), Seq: m.Seq}, &c.out)
	c.out.Reset()
}

func BenchmarkShard(b *testing.B) {
	b.Run("local", func(b *testing.B) {
		b.ReportAllocs()
		c := host(&testing.T{}, cell.Config{})
		c.tell("x")
		c.started("x", true)
		c.done("x", cell.Result{})
		m := new(cell.Message)
		for b.Loop() {
			localRound(c, m)
		}
	})
	b.Run("origin", func(b *testing.B) {
		b.ReportAllocs()
		c := newCell(&testing.T{}, nodeA, cell.Config{})
		c.apply(protocol.SetRoute{Home: nodeB, Epoch: epoch(1), Base: epoch(1)})
		m := new(cell.Message)
		for b.Loop() {
			remoteRound(c, m)
		}
	})
	b.Run("sweep", func(b *testing.B) { // A benchmark round is a sweep over 100,000 idle entities.
		b.ReportAllocs()
		c := host(&testing.T{}, cell.Config{PassivateAfter: time.Hour, StuckAfter: time.Hour})
		for i := range 100_000 {
			id := fmt.Sprint(i)
			c.tell(id)
			c.started(id, true)
			c.done(id, cell.Result{})
		}
		for b.Loop() {
			for over := false; !over; {
				over = c.Maintenance().Sweep(c.now, 128, &c.out)
			}
		}
	})
	b.Run("host", func(b *testing.B) {
		b.ReportAllocs()
		c := host(&testing.T{}, cell.Config{})
		c.tell("x")
		c.started("x", true)
		c.done("x", cell.Result{})
		m, seq := from(nodeB, "x", 0, epoch(1)), uint64(0)
		for b.Loop() {
			seq++
			m.Seq = seq
			c.Deliver(c.now, m, &c.out)
			c.Instances().Done(c.now, c.entities["x"], cell.Result{}, &c.out)
			c.Acks(&c.out)
			c.out.Reset()
		}
	})
}
