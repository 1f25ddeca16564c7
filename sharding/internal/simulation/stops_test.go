// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/simulation"
	world "github.com/quorate/quorate/simulation"
)

// thawed runs a cluster of slow entities, which passivate themselves after half of
// their messages. Nodes freeze for so long that other nodes take over their shards.
func thawed(seed uint64) (*simulation.Cluster, error) {
	c := simulation.New(simulation.Options{
		World: world.Options{Seed: seed, CodecEvery: 3, RatePPM: 10_000},
		Nodes: 5, Shards: 16, Entities: 40, Every: 30 * time.Millisecond, Patience: 8 * time.Second, RestartAfter: 2 * time.Second,
		// With a SlowStop above zero the world does not passivate idle entities, so that nodes
		// have idle instances to stop.
		Behaviour: simulation.Behaviour{Run: 400 * time.Millisecond, Passivate: 0.5, SlowStop: 0.001, SlowStopFor: time.Second},
	})
	r := rand.New(rand.NewPCG(seed, 11))
	for round := range 3 {
		c.World.At(time.Duration(15+25*round)*time.Second, func() {
			if nodes := c.World.Nodes(); len(nodes) > 0 {
				c.World.Freeze(nodes[r.IntN(len(nodes))].ID().Address, 14*time.Second)
			}
			c.World.After(18*time.Second, func() { c.Leave(r.IntN(5)) })
		})
	}
	if err := c.World.Run(90 * time.Second); err != nil {
		return c, err
	}
	return c, c.Finish(150 * time.Second)
}

// When the reason of a stop says that no successor of the instance runs, there is none. That
// holds also on a node that thaws after other nodes have taken over, and that stops an
// instance before it has heard of that.
// covers F24, I1.
func TestStopsKnowOfSuccessors(t *testing.T) {
	sum, n := summed(t, 4, thawed)
	if n == 1 {
		return // A single seed need not show every reason.
	}
	for _, why := range []cell.StopReason{cell.StopPassivated, cell.StopMoved, cell.StopLeaving, cell.StopLost} {
		require.NotZero(t, sum.Stops[why], why.String())
	}
}
