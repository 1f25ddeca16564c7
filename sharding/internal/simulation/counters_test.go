// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/internal/simulation"
	world "github.com/quorate/quorate/simulation"
	"github.com/quorate/quorate/simulation/simulationtest"
)

// miscounted runs a cluster in which the counters of all processors go wrong all the time,
// while again and again all nodes are cut off for longer than their standing lasts.
func miscounted(seed uint64) (*simulation.Cluster, error) {
	c := simulation.New(simulation.Options{
		World: world.Options{Seed: seed, Scenario: "sharding-miscounted", RatePPM: 10_000},
		Nodes: 5, Every: 4 * time.Millisecond, Patience: 8 * time.Second, RestartAfter: 2 * time.Second,
		Behaviour: simulation.Behaviour{CounterFaults: true},
	})
	for at := 10 * time.Second; at < time.Minute; at += 6 * time.Second {
		c.World.At(at, func() {
			for i := range 5 {
				for j := range 5 {
					c.World.Network().Cut(simulation.Address(i), simulation.Address(j))
				}
			}
			c.World.After(3200*time.Millisecond, func() { c.World.Network().Heal() })
		})
	}
	if err := c.World.Run(60 * time.Second); err != nil {
		return c, err
	}
	return c, c.Finish(150 * time.Second)
}

// Whatever the counters of the processors do, no node takes itself to have standing when its
// clock shows that it has none.
// covers I14.
func TestWrongCountersDoNotProlongStanding(t *testing.T) {
	first, n := simulationtest.Seeds(t, few)
	spared, full := 0, 0
	for seed := first; seed < first+n; seed++ {
		c, err := miscounted(seed)
		simulationtest.RequireRun(t, seed, err)
		spared += c.Ledger.Counts().Spared
		full += c.Ledger.Counts().Readings
	}
	require.NotZero(t, spared)
	require.NotZero(t, full)
	t.Logf("%d seeds: %d readings of clocks, %d spared", n, full, spared)
}
