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

// near runs a cluster under random faults, in which few entities are always at work, and get
// most of their messages from senders of their own node.
func near(seed uint64) (*simulation.Cluster, error) {
	opt := simulation.FaultyOptions(seed)
	opt.Near, opt.Every = 0.7, 3*time.Millisecond
	opt.Behaviour.Hot, opt.Behaviour.HotRun = 4, 15*time.Millisecond
	opt.Behaviour.SlowStop = 0 // Else messages wait behind stops, and mailboxes are full.
	return simulation.RunChaos(simulation.New(opt), world.Chaos{For: 20 * time.Second, Every: 4 * time.Second, Faults: simulation.Faults()})
}

// Messages to an entity of the same node go straight into its mailbox, many
// are handled in runs, and entities that keep their workers do not keep others waiting. In all
// this order, deadlines, outcomes and the look at the standing are as ever.
// covers F24, F42, I1, I14, I20.
func TestBusyEntitiesNearTheirSenders(t *testing.T) {
	sum, _ := summed(t, 1, near)
	require.NotZero(t, sum.Joined)
	require.NotZero(t, sum.Followed)
	require.NotZero(t, sum.Replaced)
	require.NotZero(t, sum.Slow)
}

// Entities that keep their workers for long, more of them than a node has processors, do not
// keep messages to others waiting: other workers take the place of those that are kept.
// covers I36.
func TestEntitiesThatKeepTheirWorkersKeepNobodyWaiting(t *testing.T) {
	b := within(t, 1)
	for seed := range b.Seeds {
		c := simulation.New(simulation.Options{
			World: world.Options{Seed: seed, CodecEvery: 3, RatePPM: 10_000},
			Nodes: 3, Shards: 12, Entities: 60, Every: 4 * time.Millisecond, Patience: 3 * time.Second, Mailbox: 8,
			Behaviour: simulation.Behaviour{Hot: 12, HotRun: time.Second},
		})
		b.Count(c.World)
		require.NoError(t, c.World.Run(12*time.Second))
		c.Ledger.Longest()
		require.NoError(t, c.World.Run(8*time.Second))
		longest := c.Ledger.Longest()
		counts := finish(t, c)
		require.Less(t, longest.For, 150*time.Millisecond, "seed %d: %+v", seed, longest)
		require.NotZero(t, counts.Replaced)
		require.NotZero(t, counts.Slow)
		t.Logf("seed %d: longest %v, %d workers replaced others", seed, longest.For, counts.Replaced)
	}
}

// Workers that wait for a processor, because the machine has other work, are not taken for
// workers that entities keep: no others are added beside them, and everything is as ever.
// covers I20, I36.
func TestStarvedWorkersNeedNoOthers(t *testing.T) {
	sum, _ := summed(t, 1, func(seed uint64) (*simulation.Cluster, error) {
		opt := simulation.FaultyOptions(seed)
		opt.Near, opt.Every = 0.7, 3*time.Millisecond
		opt.Behaviour.Run, opt.Behaviour.SlowStop = 100*time.Microsecond, 0
		opt.Behaviour.Starved = 10 * time.Millisecond
		return simulation.RunChaos(simulation.New(opt), world.Chaos{For: 20 * time.Second, Every: 4 * time.Second, Faults: simulation.Faults()})
	})
	require.NotZero(t, sum.Joined)
	require.NotZero(t, sum.Replaced, "starts take long now and then, and keep their workers")
}
