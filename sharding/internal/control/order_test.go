// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// told has an operator ask a node that a shard move, and returns the answer.
func told(t *testing.T, f *fleet, n *peer, s protocol.ShardID, to gossip.NodeID) string {
	t.Helper()
	id := uint64(len(published[control.MoveAnswered](n)) + 1)
	n.step(control.Move{Kind: "k", Shard: s, To: to, ID: id})
	f.run(3 * time.Second)
	answers := published[control.MoveAnswered](n)
	require.Len(t, answers, int(id), "each command is answered once")
	last := answers[id-1]
	require.Equal(t, id, last.ID)
	require.Equal(t, s, last.Shard)
	return last.Refusal
}

// home returns where a shard lives.
func home(n *peer, s protocol.ShardID) gossip.NodeID { return n.Inspect("k").Homes[s].Node }

// Whoever is asked, the coordinator moves the shard, and the streams go on.
func TestAShardMovesByOrder(t *testing.T) {
	f := newFleet(t)
	nodes := f.cluster(3, six())
	for i, asked := range nodes {
		s := protocol.ShardID(i)
		before := asked.Inspect("k").Homes[s]
		to := nodes[(i+1)%3].id
		require.NotEqual(t, to, before.Node)
		require.Empty(t, told(t, f, asked, s, to))
		f.settled(6, nodes...)
		require.Equal(t, to, home(asked, s))
		require.Equal(t, before.Base, asked.Inspect("k").Homes[s].Base)
		require.Equal(t, "it lives there", told(t, f, asked, s, to))
	}
	moves := nodes[0].Moves("k")
	require.Equal(t, "an operator has asked for it", moves[len(moves)-1].Reason)
	require.Contains(t, nodes[0].decided("handoff"), "k: shard 2: moves to "+nodes[0].id.String()+": an operator has asked for it")
}

// What cannot be done is refused in words, and changes nothing.
func TestOrdersThatAreRefused(t *testing.T) {
	f := newFleet(t)
	nodes := f.cluster(3, six())
	before := nodes[0].Inspect("k").Homes
	require.Equal(t, "the kind has 6 shards", told(t, f, nodes[1], 6, nodes[0].id))
	require.Contains(t, told(t, f, nodes[1], 0, member(77)), "that node can be given no shard")
	drained(nodes[2], true)
	f.run(2 * time.Second)
	require.Contains(t, told(t, f, nodes[1], 0, nodes[2].id), "that node can be given no shard")
	drained(nodes[2], false)
	f.run(time.Minute)
	f.settled(6, nodes...)
	require.Len(t, nodes[0].Inspect("k").Homes, len(before))

	f.stops = func(protocol.ShardID) time.Duration { return -1 }
	to := nodes[0].id
	if home(nodes[0], 3) == to {
		to = nodes[1].id
	}
	require.Equal(t, "it is on its way, or has no home", func() string { told(t, f, nodes[1], 3, to); return told(t, f, nodes[1], 3, to) }())

	nodes[1].step(control.Move{Kind: "unknown", To: to, ID: 9})
	answers := published[control.MoveAnswered](nodes[1])
	require.Equal(t, control.MoveAnswered{Kind: "unknown", ID: 9, Refusal: "this node knows nothing of the kind yet"}, answers[len(answers)-1])
}

// A kind that lives at one node as a whole is not torn apart.
func TestAKindAtOneNodeMovesByNoOrder(t *testing.T) {
	f := newFleet(t)
	kind := six()
	kind.OnOldest = true
	nodes := f.cluster(2, kind)
	require.Equal(t, "the kind lives at one node as a whole", told(t, f, nodes[1], 0, nodes[1].id))
}

// Without an answer of the coordinator's node the command ends all the same.
func TestAnOrderWithoutAnAnswer(t *testing.T) {
	f := newFleet(t)
	nodes := f.cluster(2, six())
	f.drop = func(_, _ gossip.NodeID, m control.Message) bool {
		_, ordered := m.(control.MoveShard)
		return ordered
	}
	require.Contains(t, told(t, f, nodes[1], 0, nodes[1].id), "did not answer within 2s")
}
