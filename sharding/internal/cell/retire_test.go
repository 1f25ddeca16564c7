// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// sender returns the cell of a node that has sent three messages to a home elsewhere, and has a fourth
// that no lane has had.
func sender(t *testing.T) *bench {
	t.Helper()
	c := newCell(t, nodeA, cell.Config{})
	c.apply(protocol.SetRoute{Home: nodeB, Epoch: epoch(3), Base: epoch(1)})
	require.Equal(t, "transmit:x:1", c.tell("x"))
	require.Equal(t, "transmit:y:2", c.tell("y"))
	require.Equal(t, "transmit:x:3", c.tell("x"))
	c.Collect()
	require.Empty(t, c.tell("x"))
	c.Outbound().Written(c.place)
	return c
}

// What was delivered before the shard stopped stays delivered, and the rest goes on, in order.
func TestARetiredShardHandsOnWhatWasNotDelivered(t *testing.T) {
	c := sender(t)
	at := []protocol.Position{{Origin: nodeB, Seq: 9}, {Origin: nodeA, Seq: 1}}
	require.Equal(t, "acked:x:1 move:y:2 move:x:3 move:x:4", c.apply(protocol.RetireShard{Epoch: epoch(9), Base: epoch(1), Positions: at, Known: true}))
	require.True(t, c.Handoff().Retired())
	require.True(t, c.Info().Retired)
	require.Empty(t, c.apply(protocol.RetireShard{Epoch: epoch(10), Base: epoch(1)}), "a shard is retired once")
	require.Empty(t, c.apply(protocol.StartHosting{Epoch: epoch(11), Base: epoch(11)}), "and never hosted again")
	require.Empty(t, c.apply(protocol.SetRoute{Home: nodeC, Epoch: epoch(12), Base: epoch(1)}))
	require.Equal(t, "drop:old-stream", c.deliver(from(nodeC, "x", 1, epoch(1))))
	require.Equal(t, cell.Moved, c.Accept(c.now, &cell.Message{Entity: "x", Payload: []byte("m")}, &c.out))
	require.Empty(t, c.did())
	c.Acked(c.now, nodeB, protocol.Ack{Base: epoch(1), Seq: 3}, &c.out)
	require.Empty(t, c.did(), "a late word of the home changes nothing")
}

// Who delivered nothing says nothing of an origin: all of it goes on, what has left included.
func TestAnOriginWithoutAPositionHandsOnEverything(t *testing.T) {
	c := sender(t)
	require.Equal(t, "move:x:1 move:y:2 move:x:3 move:x:4", c.apply(protocol.RetireShard{Epoch: epoch(9), Base: epoch(1), Known: true}))
}

// When nobody knows what was delivered, what has left has an unknown outcome, and the rest goes on. So it
// is when the positions are those of streams of which this node has not heard.
func TestARetiredShardOfWhichNobodyKnowsWhatWasDelivered(t *testing.T) {
	for _, r := range []protocol.RetireShard{
		{Epoch: epoch(9), Base: epoch(1)},
		{Epoch: epoch(9), Base: epoch(5), Positions: []protocol.Position{{Origin: nodeA, Seq: 3}}, Known: true},
	} {
		c := sender(t)
		require.Equal(t, "reset fail:x:unknown outcome fail:y:unknown outcome fail:x:unknown outcome move:x:4", c.apply(r))
	}
	c := newCell(t, nodeA, cell.Config{}) // A cell that never knew a home.
	require.Equal(t, "lookup", c.tell("x"))
	require.Equal(t, "move:x:1", c.apply(protocol.RetireShard{}))
}

// A cell of the next layout takes what is handed on behind what it has, whatever room there is.
func TestTheNextLayoutAdopts(t *testing.T) {
	c := newCell(t, nodeA, cell.Config{WindowBytes: 1})
	c.apply(protocol.SetRoute{Home: nodeB, Epoch: epoch(3), Base: epoch(1)})
	require.Equal(t, "transmit:z:1", c.tell("z"))
	c.Handoff().Adopt(c.now, []*cell.Message{{Entity: "x", Payload: []byte("1")}, {Entity: "y", Payload: []byte("2")}}, &c.out)
	require.Equal(t, "transmit:x:2 transmit:y:3", c.did())
	var sum cell.Tally
	c.Tally(&sum)
	require.Equal(t, uint64(1), sum.Sent, "what is handed on was counted before")

	here := newCell(t, nodeA, cell.Config{})
	here.apply(protocol.StartHosting{Epoch: epoch(3), Base: epoch(3)})
	here.Handoff().Adopt(here.now, []*cell.Message{{Entity: "x", Payload: []byte("1")}}, &here.out)
	require.Contains(t, here.did(), "start:x")
}

// Messages of others that wait here are dropped, since their origins hand them on; senders that wait
// for room are called; the memory that would have gone along is lost.
func TestWhatWaitsAtARetiredShard(t *testing.T) {
	c := newCell(t, nodeA, cell.Config{WindowBytes: 1})
	c.apply(protocol.SetRoute{Home: nodeB, Epoch: epoch(3), Base: epoch(1)})
	c.tell("x")
	waits := &cell.Message{Entity: "y", Payload: []byte("m")}
	require.Equal(t, cell.WindowFull, c.Accept(c.now, waits, &c.out))
	c.did()
	later := from(nodeC, "x", 1, epoch(7)) // By a map that this node has not heard of.
	require.Equal(t, "lookup", c.deliver(later))
	did := c.apply(protocol.RetireShard{Epoch: epoch(9), Base: epoch(1), Known: true, Lost: []protocol.Snapshot{
		{Entity: "m", Data: []byte("memory")}, {Entity: "n", Loss: protocol.LossTooLarge},
	}})
	require.Equal(t, "move:x:1 room:y drop:old-stream forgotten:m:resharded forgotten:n:too-large", did)
	require.Equal(t, cell.Moved, c.Accept(c.now, waits, &c.out))
	require.Empty(t, c.did())
}
