// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// Orders of the control machine to a cell, and what arrives at the same time: first an
// origin that becomes the home, stops that are taken back, and another order to host; then
// messages that come early, answers of entities that come late, and rests after a failure.

// An origin that becomes the home delivers the messages of its own window, except those that
// the home before has delivered.
// covers I20.
func TestOriginBecomesHome(t *testing.T) {
	c := newCell(t, nodeA, cell.Config{Mailbox: 1})
	c.apply(protocol.SetRoute{Home: nodeB, Epoch: epoch(1), Base: epoch(1)})
	c.tell("x")
	c.tell("y")
	c.tell("y")
	positions := []protocol.Position{{Origin: nodeA, Seq: 1}}
	require.Equal(t, "acked:x:1 start:y",
		c.apply(protocol.StartHosting{Epoch: epoch(2), Base: epoch(1), Positions: positions}))
	require.True(t, c.Local())
	require.Equal(t, "run:y", c.started("y", true))
	require.Equal(t, epoch(2), c.entities["y"].Epoch())
	require.Equal(t, "start:z", c.tell("z"))
	require.Equal(t, "run:z", c.started("z", true))
	require.Equal(t, "free:z:0", c.done("z", cell.Result{}))
	require.Contains(t, c.String(), "hosting true")
}

// A message that a home accepts while its shard is stopping waits. It is delivered when the
// stop is taken back, and goes to the next home when the shard has stopped.
func TestMessagesDuringAStop(t *testing.T) {
	c := host(t, cell.Config{})
	c.tell("x")
	c.started("x", true)
	c.apply(protocol.StopHosting{Epoch: epoch(1)})
	require.Equal(t, "lookup", c.tell("x"))
	require.Empty(t, c.tell("y"), "asked once")
	require.Empty(t, c.apply(protocol.StopHosting{Epoch: epoch(1)}), "told twice")
	require.Empty(t, c.apply(protocol.ResumeHosting{Epoch: epoch(9)}), "another epoch")
	require.Equal(t, "start:y", c.apply(protocol.ResumeHosting{Epoch: epoch(1)}))
	require.Equal(t, 1, c.entities["x"].Waiting())
	require.Equal(t, "free:x:0 run:x", c.done("x", cell.Result{}))

	c.apply(protocol.StopHosting{Epoch: epoch(1)})
	c.started("y", true)
	c.done("x", cell.Result{})
	c.done("y", cell.Result{})
	c.tell("z")
	require.Empty(t, c.stopped("x"))
	require.Equal(t, "shardstopped", c.stopped("y"))
	require.Equal(t, "transmit:z:3", c.apply(protocol.SetRoute{Home: nodeB, Epoch: epoch(2), Base: epoch(1)}))
}

// A shard of which no instance is at a message stops at once: idle instances are stopped,
// and failed ones need no stop.
func TestStopOfIdleAndFailed(t *testing.T) {
	c := host(t, cell.Config{})
	c.deliver(from(nodeB, "x", 1, epoch(1)))
	c.started("x", false)
	c.deliver(from(nodeB, "y", 2, epoch(1)))
	c.started("y", true)
	c.done("y", cell.Result{})
	c.deliver(from(nodeB, "y", 4, epoch(1)))
	require.Equal(t, "stop:y", c.apply(protocol.StopHosting{Epoch: epoch(1)})[len("lookup "):])
	require.Equal(t, "ack:2 shardstopped", c.stopped("y"))
}

// A home that is told to host again under a higher epoch obeys orders with that epoch only.
// An order to host under a lower epoch than that of the known home is ignored.
func TestHostAgain(t *testing.T) {
	c := host(t, cell.Config{})
	require.Empty(t, c.apply(protocol.StartHosting{Epoch: epoch(3), Base: epoch(1)}))
	require.Empty(t, c.apply(protocol.StopHosting{Epoch: epoch(1)}))
	require.Equal(t, "shardstopped", c.apply(protocol.StopHosting{Epoch: epoch(3)}))

	n := newCell(t, nodeA, cell.Config{})
	n.apply(protocol.SetRoute{Home: nodeB, Epoch: epoch(2), Base: epoch(2)})
	n.apply(protocol.StartHosting{Epoch: epoch(1), Base: epoch(1)})
	require.False(t, n.Info().Hosting)
}

// Messages that come before their turn are kept in order and within bounds.
func TestEarlyMessagesAreSortedAndBounded(t *testing.T) {
	c := host(t, cell.Config{TransitBytes: 400})
	require.Equal(t, "need:1", c.deliver(from(nodeB, "x", 5, epoch(1))))
	require.Empty(t, c.deliver(from(nodeB, "x", 3, epoch(1))))
	require.Empty(t, c.deliver(from(nodeB, "x", 4, epoch(1))))
	require.Equal(t, "drop:overflow", c.deliver(from(nodeB, "x", 2, epoch(1))))
	require.Equal(t, "start:x", c.deliver(from(nodeB, "x", 1, epoch(1))))
	require.Equal(t, "drop:overflow need:2", c.deliver(from(nodeB, "x", 9, epoch(1))))
	require.Empty(t, c.deliver(from(nodeB, "x", 2, epoch(1))))
	require.Equal(t, "ack:5", c.acks())
	require.Equal(t, "run:x", c.started("x", true))
	require.EqualValues(t, 1, c.entities["x"].Mail().Message().Seq)
	require.Equal(t, 4, c.entities["x"].Waiting())
}

// A start or a message that is under way when the node or the hosting ends has an end too,
// and answers that come twice change nothing.
func TestLateAnswersOfEntities(t *testing.T) {
	c := host(t, cell.Config{})
	c.deliver(from(nodeB, "x", 1, epoch(1)))
	c.apply(protocol.AbandonHosting{})
	require.Equal(t, "stop:x", c.started("x", true), "started after the end")
	require.Empty(t, c.started("x", true), "said twice")
	require.Empty(t, c.stopped("x"))
	require.Empty(t, c.done("x", ok), "there is no message")

	c = host(t, cell.Config{})
	c.deliver(from(nodeB, "x", 1, epoch(1)))
	c.started("x", true)
	c.apply(protocol.SetRoute{Home: nodeC, Epoch: epoch(2), Base: epoch(2)})
	c.Instances().Postpone(c.now, c.entities["x"], &c.out)
	require.Equal(t, "reply:not delivered free:x:1 stop:x", c.did(), "the hosting has ended meanwhile")
	c.Instances().Postpone(c.now, c.entities["x"], &c.out)
	require.Empty(t, c.did())
}

// An entity whose start fails rests for longer each time, up to a bound.
func TestBackOffGrows(t *testing.T) {
	c := host(t, cell.Config{BackoffMin: 100 * time.Millisecond, BackoffMax: 300 * time.Millisecond})
	seq := uint64(0)
	next := func() string {
		seq++
		return c.deliver(from(nodeB, "x", seq, epoch(1)))
	}
	for _, rest := range []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 300 * time.Millisecond, 300 * time.Millisecond} {
		require.Equal(t, "start:x", next())
		c.started("x", false)
		c.now = c.now.Add(rest - 1)
		require.Contains(t, next(), "entity failed")
		c.now++
	}
}

// Doubling a rest of many days does not overflow. It once did, and there was no rest.
func TestALongBackOffStaysLong(t *testing.T) {
	c := host(t, cell.Config{BackoffMin: 1000 * time.Hour, BackoffMax: 30_000 * time.Hour})
	for seq := range uint64(16) {
		require.Contains(t, c.deliver(from(nodeB, "x", seq+1, epoch(1))), "start:x")
		c.started("x", false)
		info, _ := c.Entity("x")
		rest := info.Since.Sub(c.now)
		require.GreaterOrEqual(t, rest, 1000*time.Hour)
		require.LessOrEqual(t, rest, 30_000*time.Hour)
		c.now = info.Since
	}
}

func TestAdmissionsHaveCodes(t *testing.T) {
	require.Equal(t, protocol.CodeOK, cell.Accepted.Code())
	require.Equal(t, protocol.CodeOK, cell.MailboxFull.Code(), "it is tried again")
	require.Equal(t, protocol.CodeOK, cell.WindowFull.Code(), "it is tried again")
	require.Equal(t, protocol.CodeNotDelivered, cell.Ended.Code())
	require.Equal(t, "duplicate old-stream overflow hops stopped none", cell.DropDuplicate.String()+" "+
		cell.DropOldStream.String()+" "+cell.DropOverflow.String()+" "+cell.DropHops.String()+" "+
		cell.DropStopped.String()+" "+cell.Drop(0).String())
	text, err := epoch(3).MarshalText()
	require.NoError(t, err)
	require.Equal(t, epoch(3).String(), string(text))
}
