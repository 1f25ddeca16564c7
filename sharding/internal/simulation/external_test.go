// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/sharding/internal/simulation"
	world "github.com/quorate/quorate/simulation"
	"github.com/quorate/quorate/simulation/simulationtest"
)

// A program says again and again where shards should live, also at nodes that are not there, while
// nodes leave, crash and come back and the coordinator changes. In the end each shard lives where
// was said last, if that node is there.
// covers F34, F35, F37, I1, I20, I21.
func TestShardsFollowTheirLocations(t *testing.T) {
	const shards, nodes = 48, 5
	first, n := simulationtest.Seeds(t, few)
	for seed := first; seed < first+n; seed++ {
		table := new(allocation.LocationTable)
		external, err := allocation.NewExternal(allocation.Default().LeastShard, table)
		require.NoError(t, err)
		strategy := &heard{Strategy: external}
		c := simulation.Asking(seed, nodes, "strategies-external", world.Calls{Max: 50 * time.Millisecond}, strategy)
		r := rand.New(rand.NewPCG(seed, 13))
		for range 150 {
			c.World.At(time.Duration(r.IntN(70_000))*time.Millisecond, func() {
				table.Put(simulation.KindName, allocation.Shard(r.IntN(shards)), simulation.Address(r.IntN(nodes+1)).String())
			})
		}
		c.Change()
		require.NoError(t, c.World.Run(75*time.Second), "seed %d", seed)
		c.Quiet()
		lives := func() error {
			there := map[string]bool{}
			for _, n := range c.World.Nodes() {
				there[n.ID().Address.String()] = true
			}
			for _, h := range simulation.Control(c.World.Nodes()[0]).Inspect(simulation.KindName).Homes {
				at := table.Location(simulation.KindName, allocation.Shard(h.Shard))
				if there[at] && at != h.Node.Address.String() {
					return fmt.Errorf("shard %d lives on %v, not on %s: %s", h.Shard, h.Node, at, strategy.last.Reason)
				}
			}
			return nil
		}
		require.NoError(t, c.Await(120*time.Second, c.Settled, c.Drained, lives, strategy.rests), "seed %d", seed)
	}
}
