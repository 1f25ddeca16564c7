// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	world "github.com/quorate/quorate/membership/simulation"
	"github.com/quorate/quorate/sharding/simulation"
)

func finish(t *testing.T, c *simulation.Cluster, limit time.Duration) simulation.Counts {
	t.Helper()
	err := c.Finish(limit)
	if err != nil {
		for _, n := range c.World.Nodes() {
			t.Logf("%s\n%s", n.ID(), simulation.Control(n))
		}
	}
	require.NoError(t, err)
	return c.Ledger.Counts()
}

// A calm cluster processes every message exactly once, in order.
// covers I20, I22
func TestCalmClusterProcessesEverything(t *testing.T) {
	c := simulation.New(simulation.Options{
		World:     world.Options{Seed: 1, CodecEvery: 1, RatePPM: 10_000},
		Behaviour: simulation.Behaviour{LaneFull: 0.02, Passivate: 0.1},
	})
	require.NoError(t, c.World.Run(30*time.Second))
	counts := finish(t, c, 30*time.Second)
	require.Equal(t, counts.Accepted, counts.Processed+counts.Refused)
	require.Greater(t, counts.Processed, 2000)
	t.Logf("%+v", counts)
}
