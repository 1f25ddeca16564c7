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

// miscounted runs a cluster in which the counters of all processors go wrong all the time,
// while again and again all nodes are cut off for longer than their standing lasts.
func miscounted(seed uint64) (*simulation.Cluster, error) {
	c := simulation.New(simulation.Options{
		World: world.Options{Seed: seed, RatePPM: 10_000},
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
	sum, _ := summed(t, 1, miscounted)
	require.NotZero(t, sum.Spared)
	require.NotZero(t, sum.Readings)
}
