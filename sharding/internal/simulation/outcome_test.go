// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/internal/simulation"
	world "github.com/quorate/quorate/simulation"
)

// impatient runs a cluster whose askers wait only for a moment, while connections stand still
// and break, links are cut and healed, one node leaves and one crashes.
func impatient(seed uint64) (*simulation.Cluster, error) {
	c := simulation.New(simulation.Options{
		World: world.Options{
			Seed: seed, CodecEvery: 3, RatePPM: 100,
			Network: world.Delivery{Double: 0.01, Late: 0.01, LateMax: time.Second},
		},
		Nodes: 4, Shards: 16, Entities: 40, Every: 8 * time.Millisecond,
		Patience: 700 * time.Millisecond, RestartAfter: 2 * time.Second,
		Behaviour: simulation.Behaviour{
			LaneFull: 0.02, LaneDown: 0.003, LaneStall: 0.003, Passivate: 0.02, Hot: 1, HotRun: 30 * time.Millisecond,
		},
	})
	r := rand.New(rand.NewPCG(seed, 11))
	for round := range 8 {
		c.World.At(time.Duration(12+3*round)*time.Second, func() { sever(c, r) })
	}
	c.World.At(30*time.Second, func() { c.Leave(r.IntN(4)) })
	c.World.At(40*time.Second, func() { c.World.Crash(simulation.Address(r.IntN(4))) })
	if err := c.World.Run(50 * time.Second); err != nil {
		return c, err
	}
	return c, c.Finish(120 * time.Second)
}

// sever cuts a link for about as long as an asker waits.
func sever(c *simulation.Cluster, r *rand.Rand) {
	a, b := simulation.Address(r.IntN(4)), simulation.Address(r.IntN(4))
	if a == b {
		return
	}
	c.World.Network().Cut(a, b)
	c.World.Network().Cut(b, a)
	c.World.After(time.Duration(200+r.IntN(1800))*time.Millisecond, c.World.Network().Heal)
}

// An asker is told what has happened to its message: a message that was not delivered, or has
// expired, is never handled; a message with a reply was handled once; and an outcome is
// unknown only if a lane has had the message. No message begins after its deadline.
// covers I20.
func TestOutcomesAreTrue(t *testing.T) {
	sum, _ := summed(t, 1, impatient)
	for _, some := range []int{sum.Processed, sum.TakenBack, sum.Expired, sum.TimedOut} {
		require.NotZero(t, some, "each outcome occurs: %+v", sum)
	}
}
