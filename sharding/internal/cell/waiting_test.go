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
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// Senders that find no room, and nodes that are held back: first the lines for a mailbox,
// how they move up, and how they end; then the host that holds other nodes back; last the
// origin that is held back, and what it does when the home changes.

// offer gives the cell a message of its own node.
func (c *bench) offer(m *cell.Message) cell.Admission { return c.Accept(c.now, m, &c.out) }

// full returns a host whose entity x handles a message and has a full mailbox.
func full(t *testing.T, mailbox int) *bench {
	t.Helper()
	c := host(t, cell.Config{Mailbox: mailbox, WindowBytes: 1000})
	c.tell("x")
	c.started("x", true)
	for range mailbox {
		require.Empty(t, c.tell("x"))
	}
	return c
}

// lined puts n messages to x into the line for its mailbox.
func (c *bench) lined(n int) (waiting []*cell.Message) {
	c.t.Helper()
	for i := range n {
		m := &cell.Message{Entity: "x", Payload: []byte("m"), Value: i}
		require.Equal(c.t, cell.MailboxFull, c.offer(m))
		waiting = append(waiting, m)
	}
	require.Empty(c.t, c.did())
	return waiting
}

// rooms returns the words for n senders to x that are called.
func rooms(n int) string { return strings.Repeat(" room:x", n) }

// Senders that find a mailbox full are called in the order in which they came, once half of
// it is free, as many as there is room for. No sender that comes later takes their room, or
// is called before them.
func TestSendersWaitInLineForAMailbox(t *testing.T) {
	c := full(t, 4)
	waiting := c.lined(5)
	require.Nil(t, c.Open("x"), "others stand in line")
	require.Equal(t, "free:x:0 run:x", c.done("x", cell.Result{}))
	late := c.lined(1)[0]
	require.Equal(t, "free:x:0 run:x room:x room:x", c.done("x", cell.Result{}), "half is free")
	later := c.lined(1)[0]
	for _, m := range waiting[:2] {
		require.Equal(t, cell.Accepted, c.offer(m))
	}
	require.Equal(t, cell.MailboxFull, c.offer(waiting[2]), "it was not called, and is last now")
	require.Equal(t, 4, c.entities["x"].Waiting())
	c.done("x", cell.Result{})
	require.Equal(t, "free:x:0 run:x"+rooms(2), c.done("x", cell.Result{}))
	for _, m := range []*cell.Message{waiting[3], waiting[4]} {
		require.Equal(t, cell.Accepted, c.offer(m))
	}
	c.done("x", cell.Result{})
	require.Equal(t, "free:x:0 run:x"+rooms(2), c.done("x", cell.Result{}))
	for _, m := range []*cell.Message{late, later} {
		require.Equal(t, cell.Accepted, c.offer(m))
	}
	c.done("x", cell.Result{})
	require.Equal(t, "free:x:0 run:x room:x", c.done("x", cell.Result{}))
	require.Equal(t, cell.Accepted, c.offer(waiting[2]))
	require.NotNil(t, c.Open("x"), "nobody waits any more")
}

// A sender that withdraws after it was called gives its room to the next in line; one that
// was not called gives up its place.
func TestWithdrawing(t *testing.T) {
	c := full(t, 2)
	waiting := c.lined(4)
	c.Withdraw(waiting[1], &c.out)
	require.Empty(t, c.did())
	require.Equal(t, "free:x:0 run:x room:x", c.done("x", cell.Result{}))
	c.Withdraw(waiting[0], &c.out)
	require.Equal(t, "room:x", c.did())
	c.Withdraw(waiting[0], &c.out)
	require.Empty(t, c.did(), "it has no place any more")
	c.Withdraw(waiting[2], &c.out)
	require.Equal(t, "room:x", c.did())
	require.Equal(t, cell.Accepted, c.offer(waiting[3]))
	c.done("x", cell.Result{})
	c.done("x", cell.Result{})
	c.done("x", cell.Result{})
	c.Instances().Passivate(c.now, c.entities["x"], &c.out)
	c.did()
	c.stopped("x")
	require.Zero(t, c.Info().Entities, "nothing is left of it")
}

// While room is kept for a sender that was called, the cell keeps the record of the stopped
// entity. It removes the record when the sender withdraws.
func TestRoomIsKeptWhileTheEntityStops(t *testing.T) {
	c := full(t, 1)
	m := c.lined(1)[0]
	c.Instances().Passivate(c.now, c.entities["x"], &c.out)
	require.Equal(t, "free:x:0 run:x room:x", c.done("x", cell.Result{}))
	require.Equal(t, "free:x:0 stop:x", c.done("x", cell.Result{}))
	require.Empty(t, c.stopped("x"))
	require.Equal(t, 1, c.Info().Entities)
	c.Withdraw(m, &c.out)
	require.Empty(t, c.did())
	require.Zero(t, c.Info().Entities)
}

// Senders that wait for a mailbox are called one after the other when its entity has failed,
// and are told of the failure.
func TestWaitersOfAnEntityThatFails(t *testing.T) {
	c := host(t, cell.Config{Mailbox: 2})
	c.tell("x")
	c.tell("x")
	waiting := c.lined(3)
	require.Equal(t, "fail:x:entity failed fail:x:entity failed room:x room:x", c.started("x", false))
	require.Equal(t, cell.EntityFailing, c.offer(waiting[0]))
	require.Equal(t, cell.EntityFailing, c.offer(waiting[1]))
	require.Equal(t, "room:x", c.did())
	require.Equal(t, cell.EntityFailing, c.offer(waiting[2]))
}

// When the hosting ends, all senders in line are called, and find out anew where their
// messages go.
func TestWaitersWhenTheHostingEnds(t *testing.T) {
	endings := map[string]struct {
		input protocol.CellInput
		then  cell.Admission
	}{
		"stop":    {protocol.StopHosting{Epoch: epoch(1)}, cell.Packed}, // The message waits in the window.
		"evict":   {protocol.SetRoute{Home: nodeB, Epoch: epoch(2), Base: epoch(2)}, cell.Packed},
		"abandon": {protocol.AbandonHosting{}, cell.Ended},
	}
	for name, end := range endings {
		t.Run(name, func(t *testing.T) {
			c := full(t, 2)
			waiting := c.lined(3)
			c.done("x", cell.Result{}) // This calls one of the three senders.
			require.Equal(t, 2, strings.Count(c.apply(end.input), "room:x"))
			for _, m := range waiting {
				require.Equal(t, end.then, c.offer(m))
			}
		})
	}
}

// A full mailbox does not refuse the messages of another node: that node is held back, and
// the messages that were on their way are taken.
// covers I20, I36 in the cell.
func TestAFullMailboxHoldsBackAnotherNode(t *testing.T) {
	c := full(t, 4)
	require.Equal(t, "hold:x", c.deliver(from(nodeB, "x", 1, epoch(1))))
	require.Equal(t, nodeB, c.last[cell.OpFlow].To)
	require.Empty(t, c.deliver(from(nodeB, "x", 2, epoch(1))), "said once")
	require.Equal(t, "start:y", c.deliver(from(nodeB, "y", 3, epoch(1))), "others are not concerned")
	require.Equal(t, "hold:x", c.deliver(from(nodeC, "x", 1, epoch(1))), "each node by itself")
	require.Equal(t, "ack:3 ack:1", c.acks())
	require.Equal(t, "hold:x", c.deliver(from(nodeB, "x", 4, epoch(1))), "a quarter of a window later")
	require.Empty(t, c.deliver(from(nodeB, "x", 5, epoch(1))))
	c.now = c.now.Add(time.Second)
	require.Equal(t, "hold:x", c.deliver(from(nodeB, "x", 6, epoch(1))), "it may not have heard")
	did := ""
	for !strings.Contains(did, "open") {
		did = c.done("x", cell.Result{})
	}
	require.Equal(t, "free:x:1 run:x open:x open:x", strings.Replace(did, ":0", ":1", 1))
	require.Equal(t, 2, c.entities["x"].Waiting())
}

// The messages of a node that sends on although it is held back are refused after two
// windows, so that no mailbox grows without a bound.
// covers I36 in the cell.
func TestANodeThatDoesNotObeyIsRefused(t *testing.T) {
	c := full(t, 1)
	did := ""
	seq := uint64(0)
	for !strings.Contains(did, "overloaded") {
		seq++
		require.Less(t, seq, uint64(100))
		did = c.deliver(from(nodeB, "x", seq, epoch(1)))
	}
	require.InDelta(t, 2000/130, seq, 1, "two windows")
	require.Equal(t, fmt.Sprintf("reply:overloaded free:x:%d", seq), did)
	require.Equal(t, fmt.Sprintf("ack:%d", seq), c.acks())
}

// origin returns a cell that sends to nodeB.
func origin(t *testing.T) *bench {
	t.Helper()
	c := newCell(t, nodeA, cell.Config{WindowBytes: 1000})
	c.apply(protocol.SetRoute{Home: nodeB, Epoch: epoch(1), Base: epoch(1)})
	return c
}

func (c *bench) hear(from gossip.NodeID, state protocol.FlowState, e protocol.Epoch) string {
	c.Flowed(c.now, from, protocol.Flow{Entity: "x", State: state, Epoch: e}, &c.out)
	return c.did()
}

// An origin that is held back from an entity lets only the senders to that entity wait. It
// asks the home now and then, and calls the senders when the home opens.
func TestAnOriginThatIsHeldBack(t *testing.T) {
	c := origin(t)
	require.Empty(t, c.hear(nodeB, protocol.FlowHold, epoch(1)))
	waiting := c.lined(2)
	require.Equal(t, "transmit:y:1", c.tell("y"))
	c.Acked(c.now, nodeB, protocol.Ack{Base: epoch(1), Seq: 1}, &c.out)
	c.did()
	require.Equal(t, "ask:x", c.tick(2*time.Second))
	require.Empty(t, c.hear(nodeB, protocol.FlowHold, epoch(1)))
	require.Equal(t, "room:x room:x", c.hear(nodeB, protocol.FlowOpen, epoch(1)))
	require.Empty(t, c.hear(nodeB, protocol.FlowHold, epoch(1)), "again at once")
	for i, m := range waiting {
		require.Equal(t, cell.Packed, c.offer(m), "room was kept in the window")
		require.Equal(t, fmt.Sprintf("transmit:x:%d", i+2), c.did())
	}
	c.lined(1)
	require.Equal(t, "ask:x transmit:x:2 transmit:x:3", c.tick(2*time.Second))
}

// A new home ends the holds of the old one, and words of the old home that come late change
// nothing.
func TestHoldsOfAnOldHome(t *testing.T) {
	c := origin(t)
	c.hear(nodeB, protocol.FlowHold, epoch(1))
	c.lined(1)
	require.Equal(t, "room:x", c.apply(protocol.SetRoute{Home: nodeC, Epoch: epoch(3), Base: epoch(1)}))
	require.Empty(t, c.hear(nodeB, protocol.FlowHold, epoch(1)))
	require.Equal(t, "transmit:x:1", c.tell("x"))
	c.hear(nodeC, protocol.FlowHold, epoch(3))
	require.Empty(t, c.hear(nodeB, protocol.FlowOpen, epoch(1)))
	c.lined(1)
	require.Empty(t, c.hear(nodeC, protocol.FlowState(9), epoch(3)), "a word of a later version")
	require.Equal(t, "reset fail:x:unknown outcome room:x", func() string {
		c.Outbound().Written(9)
		return c.apply(protocol.StartHosting{Epoch: epoch(4), Base: epoch(4)})
	}())
}

// A host that is asked answers whether the node may send to the entity.
func TestAHostIsAsked(t *testing.T) {
	c := full(t, 2)
	require.Equal(t, "open:x", c.hear(nodeB, protocol.FlowAsk, epoch(1)), "it was never held back")
	c.deliver(from(nodeB, "x", 1, epoch(1)))
	require.Equal(t, "hold:x", c.hear(nodeB, protocol.FlowAsk, epoch(1)))
	require.Equal(t, "open:x", c.hear(nodeC, protocol.FlowAsk, epoch(1)))
	o := origin(t)
	require.Empty(t, o.hear(nodeB, protocol.FlowAsk, epoch(1)), "it does not host")
}

// Messages that this node has accepted before it becomes the home are put into the mailbox
// even if that is full.
func TestTheOwnWindowIsTaken(t *testing.T) {
	c := newCell(t, nodeA, cell.Config{Mailbox: 1})
	for range 3 {
		c.tell("x")
	}
	require.Equal(t, "start:x", c.apply(protocol.StartHosting{Epoch: epoch(1), Base: epoch(1)}))
	require.Equal(t, 3, c.entities["x"].Waiting())
	c.lined(1)
}
