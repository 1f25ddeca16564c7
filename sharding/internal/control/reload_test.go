// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/sharding/internal/control"
)

// reload returns the input that sets the default configuration.
func reload() control.Reload {
	return control.Reload{
		LeastShard: allocation.Default().LeastShard, MaxSimultaneous: 32, MaxSimultaneousPerRegion: 4, RebalanceIdle: 10 * time.Second,
	}
}

// A coordinator follows new bounds at once. Here they permit moves that were forbidden before.
// covers I31.
func TestReloadChangesBoundsOfMoves(t *testing.T) {
	f := newFleet(t)
	nodes := f.cluster(1, wide(400))
	off := reload()
	off.LeastShard.RebalanceAbsoluteLimit = 0
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
	in.LeastShard.RebalanceAbsoluteLimit = 0
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
