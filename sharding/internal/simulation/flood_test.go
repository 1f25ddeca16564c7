// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/internal/simulation"
	world "github.com/quorate/quorate/simulation"
)

// flooded returns the options of a cluster in which three entities are sent more messages
// than they can handle.
func flooded(seed uint64) simulation.Options {
	return simulation.Options{
		World: world.Options{Seed: seed, CodecEvery: 3, RatePPM: 10_000},
		Nodes: 5, Shards: 16, Entities: 60, Every: 3 * time.Millisecond, Patience: 3 * time.Second,
		Mailbox: 8, Window: 2 << 10, RestartAfter: 2 * time.Second,
		Behaviour: simulation.Behaviour{Hot: 3, HotRun: 60 * time.Millisecond},
	}
}

// Clients that flood an entity wait until there is room or their patience ends. Every
// accepted message is handled once and in order, and mailboxes are bounded. Messages to other
// entities do not wait for long, although they share shards, windows and lanes with the flood.
// covers F42, I20, I36.
func TestFloodsWait(t *testing.T) {
	b := within(t, 1)
	for seed := range b.Seeds {
		c := simulation.New(flooded(seed))
		b.Count(c.World)
		require.NoError(t, c.World.Run(12*time.Second))
		c.Ledger.Longest()
		require.NoError(t, c.World.Run(15*time.Second))
		longest := c.Ledger.Longest()
		counts := finish(t, c)
		require.Less(t, longest.For, 300*time.Millisecond, "seed %d: %+v", seed, longest)
		require.Equal(t, counts.Expired+counts.TakenBack, counts.Failed, "seed %d %+v", seed, counts)
		require.Zero(t, counts.Delivered, "seed %d %+v", seed, counts)
		silent := counts.Accepted - counts.Processed - counts.Refused - counts.Failed
		require.GreaterOrEqual(t, silent, 0, "seed %d %+v", seed, counts)
		require.LessOrEqual(t, silent, counts.TimedOut, "seed %d %+v", seed, counts)
		require.Greater(t, counts.Waited, 1000, "seed %d %+v", seed, counts)
		require.Greater(t, counts.Refused, 300, "seed %d: patience ends %+v", seed, counts)
		t.Logf("seed %d: longest %v, %+v", seed, longest.For, counts)
	}
}

// floodedUnderFaults runs a flooded cluster with broken lanes, lost messages and random faults.
func floodedUnderFaults(seed uint64) (*simulation.Cluster, error) {
	opt := flooded(seed)
	opt.World.Network = world.Delivery{Loss: 0.01, Double: 0.01, Late: 0.02, LateMax: time.Second}
	opt.Behaviour.LaneFull, opt.Behaviour.LaneDown, opt.Behaviour.Passivate = 0.01, 0.001, 0.02
	opt.Behaviour.FailStart, opt.Behaviour.FailRun = 0.01, 0.01
	opt.Every = 8 * time.Millisecond
	return simulation.RunChaos(simulation.New(opt), world.Chaos{For: 40 * time.Second, Every: 5 * time.Second, Faults: simulation.Faults()})
}

// Under floods with broken lanes, lost messages, leaves, crashes and moves, words about the
// flow are lost like all others. In the end no sender waits for room that there is.
// covers F39, F42, I20, I21, I36.
func TestFloodsUnderFaults(t *testing.T) {
	sum, _ := summed(t, 1, floodedUnderFaults)
	require.NotZero(t, sum.Waited)
}
