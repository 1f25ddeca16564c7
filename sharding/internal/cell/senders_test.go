// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// A message comes from its origin, or from a member that passes it on for a member.
// covers I35.
func TestWhoseMessageAMemberMayBring(t *testing.T) {
	members := func(n gossip.NodeID) bool { return n == nodeA || n == nodeB }
	for _, c := range []struct {
		origin gossip.NodeID
		hops   uint8
		want   cell.Fault
	}{
		{nodeB, 0, cell.FaultNone},
		{nodeB, 1, cell.FaultNone}, // The message came back to its origin, which has passed it on again.
		{nodeA, 0, cell.FaultOrigin},
		{nodeA, 1, cell.FaultNone},
		{nodeC, 0, cell.FaultOrigin},
		{nodeC, 1, cell.FaultOrigin},
	} {
		require.Equal(t, c.want, cell.OriginFault(nodeB, c.origin, c.hops, members), "%v", c)
	}
}

// Only the home in the cell's map may acknowledge, ask for messages, and hold senders back.
// Such frames from an earlier home come too late, and count as no fault.
func TestTheHomeAloneIsBelieved(t *testing.T) {
	c := newCell(t, nodeA, cell.Config{})
	c.apply(protocol.SetRoute{Home: nodeB, Epoch: epoch(1), Base: epoch(1)})
	c.tell("x")
	ack, need := protocol.Ack{Base: epoch(1), Seq: 1}, protocol.Nack{Base: epoch(1), Seq: 1}
	hold := protocol.Flow{Entity: "x", Epoch: epoch(1), State: protocol.FlowHold}
	c.Acked(c.now, nodeC, ack, &c.out)
	require.Equal(t, "forged:home", c.did())
	c.Needed(c.now, nodeC, need, &c.out)
	require.Equal(t, "forged:home", c.did())
	c.Flowed(c.now, nodeC, hold, &c.out)
	require.Equal(t, "forged:home", c.did())
	c.Acked(c.now, nodeC, protocol.Ack{Base: epoch(2), Seq: 1}, &c.out)
	require.Empty(t, c.did(), "an acknowledgement of another stream means nothing, whoever sent it")
	require.Equal(t, "transmit:x:1", c.apply(protocol.SetRoute{Home: nodeC, Epoch: epoch(2), Base: epoch(1)}))
	c.Acked(c.now, nodeB, ack, &c.out)
	c.Flowed(c.now, nodeB, hold, &c.out)
	require.Empty(t, c.did(), "the home before comes too late")
	c.Acked(c.now, nodeC, ack, &c.out)
	require.Equal(t, "acked:x:1", c.did())
}

// A message can have gone to the home that the cell knew when it accepted the message, and
// to later homes, and not to earlier ones. When the streams have begun anew, it cannot have
// gone to any home before that.
func TestWhereAMessageWent(t *testing.T) {
	c := newCell(t, nodeA, cell.Config{})
	first := c.Homes()
	c.apply(protocol.SetRoute{Home: nodeB, Epoch: epoch(1), Base: epoch(1)})
	second := c.Homes()
	require.True(t, c.Went(nodeB, first))
	require.False(t, c.Went(nodeC, first))
	c.apply(protocol.SetRoute{Home: nodeC, Epoch: epoch(2), Base: epoch(1)})
	third := c.Homes()
	require.True(t, c.Went(nodeB, second))
	require.True(t, c.Went(nodeC, second))
	require.False(t, c.Went(nodeB, third))
	c.apply(protocol.SetRoute{Home: nodeC, Epoch: epoch(3), Base: epoch(1)})
	require.Equal(t, third, c.Homes(), "another epoch is not another home")
	c.apply(protocol.SetRoute{Home: nodeA, Epoch: epoch(4), Base: epoch(4)})
	require.False(t, c.Went(nodeB, first))
	require.False(t, c.Went(nodeC, first))
}

// A message of the cell's own node that comes back is dropped: the window has everything
// that the node has sent, and is delivered when the node becomes the home.
func TestAMessageOfOnesOwnComesBack(t *testing.T) {
	c := newCell(t, nodeA, cell.Config{})
	c.apply(protocol.SetRoute{Home: nodeB, Epoch: epoch(1), Base: epoch(1)})
	c.tell("x")
	require.Equal(t, "drop:duplicate", c.deliver(from(nodeA, "x", 1, epoch(1))))
	require.Equal(t, "start:x", c.apply(protocol.StartHosting{Epoch: epoch(2), Base: epoch(1)}))
	require.Equal(t, "drop:duplicate", c.deliver(from(nodeA, "x", 2, epoch(1))), "it was never sent")
	require.Equal(t, "run:x", c.started("x", true))
}
