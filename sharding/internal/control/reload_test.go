// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/control"
)

// reload returns the input that sets the default configuration.
func reload() control.Reload {
	return control.Reload{
		Allocation: allocation.Default(), MaxSimultaneous: 32, MaxSimultaneousPerRegion: 4, RebalanceIdle: 10 * time.Second,
	}
}

// A coordinator follows new bounds at once. Here they permit moves that were forbidden before.
// covers I31.
func TestReloadChangesBoundsOfMoves(t *testing.T) {
	f := newFleet(t)
	nodes := f.cluster(1, wide(400))
	off := reload()
	off.Allocation.LeastShard.RebalanceAbsoluteLimit = 0
	nodes[0].step(off)
	f.start(2, wide(400))
	f.run(30 * time.Second)
	require.Len(t, nodes[0].hosts(), 400, "rebalancing is off")

	on := reload()
	on.MaxSimultaneous, on.MaxSimultaneousPerRegion = 7, 30
	nodes[0].step(on)
	most := 0
	for range 3000 {
		f.run(time.Millisecond)
		most = max(most, nodes[0].Inspect("k").Moving)
	}
	require.Equal(t, 7, most)
	require.Len(t, nodes[0].hosts(), 200)
	f.settled(400, nodes[0], f.nodes[member(2)])
}

// A node that is not the coordinator keeps the new settings, and follows them when it becomes
// the coordinator.
func TestReloadIsKeptForLater(t *testing.T) {
	f := newFleet(t)
	nodes := f.cluster(2, wide(100))
	in := reload()
	in.Allocation.LeastShard.RebalanceAbsoluteLimit = 0
	nodes[1].step(in)
	f.run(time.Second)
	f.remove(nodes[0])
	f.fence(nodes[0])
	f.run(10 * time.Second)
	require.Len(t, nodes[1].hosts(), 100)
	f.start(3, wide(100))
	f.run(30 * time.Second)
	require.Len(t, nodes[1].hosts(), 100, "the new coordinator does not rebalance")
}

// Another strategy is asked from the next question on. The question that the one before has in hand
// is answered by it and counts, and what it failed to do is not held against its successor.
func TestReloadChangesTheStrategy(t *testing.T) {
	f := newFleet(t)
	n := f.start(1, asked())
	f.run(4 * time.Second)
	require.Len(t, n.calls, 1)
	in := reload()
	in.Strategy = "yours"
	n.step(in)
	f.run(time.Second)
	require.Len(t, n.calls, 1, "one question at a time")
	n.step(machine.Called{ID: n.calls[0].ID, Result: to(n.calls[0].Request.(allocation.AllocateRequest), n)})
	f.run(time.Second)
	f.settled(6, n)
	require.Contains(t, n.decided("allocation")[0], "mine: because")

	f.evens = func(c machine.Call) (any, error) { // It moves one shard, once.
		from, to := c.Request.(allocation.RebalanceRequest).Regions[0], c.Request.(allocation.RebalanceRequest).Regions[1]
		if len(from.Shards) < 6 {
			return allocation.RebalanceResult{Reason: "as it should be"}, nil
		}
		return allocation.RebalanceResult{Moves: []allocation.Move{{Shard: from.Shards[0], From: from.ID, To: to.ID}}}, nil
	}
	other := f.start(2, asked())
	f.run(20 * time.Second)
	require.NotEmpty(t, n.rounds)
	require.Contains(t, n.decided("rebalance")[0], "yours")
	require.Len(t, n.hosts(), 5)

	n.mute = true
	before := len(n.rounds)
	for len(n.rounds) == before { // Until a question is in hand.
		f.run(time.Second)
	}
	in.Strategy = ""
	n.step(in)
	f.run(4 * time.Second)
	require.Len(t, n.hosts(), 5, "one question at a time")
	f.run(30 * time.Second)
	require.Len(t, n.rounds, before+1, "the built-in strategy needs no question")
	require.Len(t, n.hosts(), 3, "it evens out the load")
	f.settled(6, n, other)
}
