// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/transport"
)

// The backlog keeps frames up to a bound for each node, and hands them out once.
func TestTheBacklogIsBounded(t *testing.T) {
	var b backlog
	one := gossip.NodeID{UID: 1}
	half := []byte(strings.Repeat("x", maxBacklogBytes/2))
	require.Zero(t, b.add(one, half, half))
	require.Equal(t, 2, b.add(one, []byte("y"), []byte("z")))
	require.Zero(t, b.add(gossip.NodeID{UID: 2}, half))
	require.Len(t, b.take(one), 2)
	require.Empty(t, b.take(one))
	require.Len(t, b.take(gossip.NodeID{UID: 2}), 1)
	require.Empty(t, b.nodes)
}

// What a lane has no room for goes when it has, as far as it takes it, and the rest the next time. Each time room is
// asked for. What has no place meanwhile is counted.
func TestWhatWaitsForALane(t *testing.T) {
	a := newAnswerer(t, protocol.VersionReplies)
	a.lane.err = transport.ErrFull
	a.reply(1, 2, 3)
	require.Equal(t, 3, a.waited)
	a.lane.err, a.lane.room = nil, 1
	a.node.Flush(node(2))
	require.Equal(t, [][]uint64{{1}}, a.frames())
	require.Equal(t, 4, a.waited)
	a.lane.err = nil
	a.node.Flush(node(2))
	require.Equal(t, [][]uint64{{2}, {3}}, a.frames())
	a.node.Flush(node(2))
	require.Empty(t, a.frames())
	require.Equal(t, 4, a.waited)

	a.lane.err = transport.ErrFull
	for range 2 {
		require.NoError(t, a.peer.reply(&protocol.Reply{Kind: "a", Correlation: 4, Payload: make([]byte, maxBacklogBytes/2+1)}))
	}
	require.Equal(t, 1, a.lost)
}
