// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/sharding/internal/simulation"
	world "github.com/quorate/quorate/simulation"
)

// The time that simulated entities take for their messages comes to the strategy as a load that is
// near the truth, over a network that is not the best; and under a load that is random from moment
// to moment, shards come to rest, with a few that are much busier than the others among them.
// covers I20, I21.
func TestLoadsAreMeasured(t *testing.T) {
	b := within(t, 1)
	for seed := range b.Seeds {
		cfg := allocation.Default()
		cfg.Strategy = allocation.LoadAwareName
		aware, err := allocation.New(cfg)
		require.NoError(t, err)
		strategy := &heard{Strategy: aware}
		c := simulation.New(simulation.Options{
			World: world.Options{
				Seed: seed, CodecEvery: 3, RatePPM: 10_000,
				Calls:   world.Calls{Max: 50 * time.Millisecond},
				Network: world.Delivery{Loss: 0.005, Late: 0.01, LateMax: 300 * time.Millisecond},
			},
			Nodes: 4, Shards: 48, Every: 4 * time.Millisecond, Strategy: "strange",
			Behaviour: simulation.Behaviour{Hot: 2, HotRun: 8 * time.Millisecond},
		})
		b.Count(c.World)
		c.Ask(strategy)
		require.NoError(t, c.World.Run(2*time.Minute), "seed %d", seed)
		// Half of all messages go to two entities, which take 4.4 ms on average for each; the
		// others take 2.1 ms, of two processors on each of four nodes.
		loads := 0.0
		for _, r := range strategy.asked.Regions {
			loads += r.Load
		}
		require.InDelta(t, 250*(4.4+2.1)/2/1000/2, loads, 0.12, "seed %d", seed)
		before := c.Ledger.Counts().Homes
		require.NoError(t, c.World.Run(90*time.Second), "seed %d", seed)
		require.Equal(t, before, c.Ledger.Counts().Homes, "seed %d: noise moves shards: %s", seed, strategy.last.Reason)
		require.NoError(t, strategy.rests(), "seed %d", seed)
		require.NoError(t, c.World.Conclude(), "seed %d", seed)
	}
}
