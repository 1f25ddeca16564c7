// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/sharding/internal/simulation"
	world "github.com/quorate/quorate/simulation"
)

// A node that joins gets its part slowly, over a network that is not the best, whether the others
// stay, one of them leaves, or the coordinator crashes meanwhile: never more than the part that its
// age allows, never less than it had while the others stay, and all of it in the end.
// covers F34, F35, F37, I20, I21.
func TestNewcomersStartSlowly(t *testing.T) {
	const shards, slow = 120, 40 * time.Second
	b := within(t, 3)
	for seed := range b.Seeds {
		c := simulation.New(simulation.Options{
			World: world.Options{
				Seed: seed, CodecEvery: 3, RatePPM: 10_000,
				Network: world.Delivery{Loss: 0.005, Late: 0.01, LateMax: 300 * time.Millisecond},
			},
			Nodes: 4, Shards: shards, SlowStart: slow, Every: 25 * time.Millisecond,
		})
		b.Count(c.World)
		require.NoError(t, rest(c, 4, 30*time.Second))
		require.NoError(t, c.World.Run(slow))
		c.Start(4)
		_, err := c.World.RunUntil(20*time.Second, func() bool { return c.Up(simulation.Address(4), gossip.NodeID{}) })
		require.NoError(t, err, "seed %d", seed)
		others, has, live := 4, 0, 5
		for age := time.Second; age < slow; age += time.Second {
			if age == 8*time.Second && seed%3 > 0 {
				others = 3
				crash := seed%3 == 1
				if !crash {
					live = 4 // What crashes comes back, and starts slowly too.
				}
				c.EndCoordinator(crash)
			}
			require.NoError(t, c.World.Run(time.Second), "seed %d", seed)
			hosts := simulation.Control(c.World.Node(simulation.Address(4))).Inspect(simulation.KindName).Hosting
			part := 0.1 + 0.9*float64(age+time.Second)/float64(slow) // It may have come before it was up, and clocks differ.
			require.LessOrEqual(t, float64(hosts), shards*part/(float64(others)+part)+2, "seed %d: at the age of %v", seed, age)
			if others == 4 {
				require.GreaterOrEqual(t, hosts, has, "seed %d: at the age of %v", seed, age)
				has = hosts
			}
		}
		require.NoError(t, rest(c, live, 60*time.Second), "seed %d", seed)
		require.NoError(t, c.World.Run(slow), "seed %d", seed)
		require.NoError(t, c.Even(), "seed %d: its part has risen beyond the others'", seed)
		require.NoError(t, c.Finish(60*time.Second), "seed %d", seed)
	}
}
