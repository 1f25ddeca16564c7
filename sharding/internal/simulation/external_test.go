// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/simulation"
	world "github.com/quorate/quorate/simulation"
)

// A program says again and again where shards should live, also at nodes that are not there, while
// nodes leave, crash and come back and the coordinator changes. In the end each shard lives where
// was said last, if that node is there.
// covers F34, F35, F37, I1, I20, I21.
func TestShardsFollowTheirLocations(t *testing.T) {
	const shards, nodes = 48, 5
	b := within(t, 1)
	for seed := range b.Seeds {
		table := new(allocation.LocationTable)
		external, err := allocation.NewExternal(allocation.Default().LeastShard, table)
		require.NoError(t, err)
		strategy := &heard{Strategy: external}
		c := simulation.Asking(seed, nodes, "strategies-external", world.Calls{Max: 50 * time.Millisecond}, strategy)
		b.Count(c.World)
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

// replica is the map of locations as one node holds it: what was said comes late, and what was said last counts.
type replica struct {
	table allocation.LocationTable
	said  map[allocation.Shard]int // Which of what was said it holds.
}

// Each node has a map of its own, which hears of what programs say up to five seconds late and in any order, while
// coordinators change and nodes go. No coordinator chooses a region that is not there; in the end each shard lives
// where was said last, if that node is there, and nothing moves any more. covers F34, F35, F37, I1, I20, I21.
func TestShardsFollowLocationsThatNodesHearLate(t *testing.T) {
	const shards, nodes = 48, 5
	b := within(t, 1)
	for seed := range b.Seeds {
		truth, replicas, asked := new(allocation.LocationTable), map[string]*replica{}, map[string]*heard{}
		for i := range nodes {
			r := &replica{said: map[allocation.Shard]int{}}
			external, err := allocation.NewExternal(allocation.Default().LeastShard, &r.table)
			require.NoError(t, err)
			at := simulation.Address(i).String()
			replicas[at], asked[at] = r, &heard{Strategy: external}
		}
		c := simulation.Asking(seed, nodes, "", world.Calls{Max: 50 * time.Millisecond}, asked[simulation.Address(0).String()])
		b.Count(c.World)
		last, moves := asked[simulation.Address(0).String()], 0
		c.World.Strategies().Answer(control.AllocationCall, func(n *world.Node, request any) (any, error) {
			last = asked[n.ID().Address.String()]
			if q, ok := request.(allocation.AllocateRequest); ok {
				answer, err := last.Allocate(context.Background(), q)
				for _, p := range answer.Placements {
					requireThere(t, q.Regions, p.Region)
				}
				return answer, err
			}
			q := request.(allocation.RebalanceRequest)
			answer, err := last.Rebalance(context.Background(), q)
			for _, m := range answer.Moves {
				requireThere(t, q.Regions, m.To)
			}
			moves += len(answer.Moves)
			return answer, err
		})
		r := rand.New(rand.NewPCG(seed, 14))
		for said := range 150 {
			at, shard := time.Duration(said)*460*time.Millisecond, allocation.Shard(r.IntN(shards))
			address := simulation.Address(r.IntN(nodes + 1)).String()
			c.World.At(at, func() { truth.Put(simulation.KindName, shard, address) })
			for i := range nodes {
				of := replicas[simulation.Address(i).String()]
				c.World.At(at+time.Duration(r.IntN(5000))*time.Millisecond, func() {
					if of.said[shard] <= said {
						of.said[shard] = said
						of.table.Put(simulation.KindName, shard, address)
					}
				})
			}
		}
		c.Change()
		require.NoError(t, c.World.Run(75*time.Second), "seed %d", seed)
		c.Quiet()
		lives := func() error { return livesWhereSaid(c, truth) }
		require.NoError(t, c.Await(120*time.Second, c.Settled, c.Drained, lives, func() error { return last.rests() }), "seed %d", seed)
		moves = 0
		require.NoError(t, c.World.Run(30*time.Second), "seed %d", seed)
		require.Zero(t, moves, "seed %d: nothing moves any more", seed)
		require.NoError(t, lives(), "seed %d", seed)
	}
}

// requireThere fails the test if an answer names a region that it was not asked about.
func requireThere(t *testing.T, regions []allocation.RegionState, chosen allocation.Region) {
	t.Helper()
	for _, r := range regions {
		if r.ID == chosen {
			return
		}
	}
	require.Fail(t, "a region that is not there", "%s", chosen)
}

// livesWhereSaid returns an error if a shard does not live where was said, although that node is there.
func livesWhereSaid(c *simulation.Cluster, truth *allocation.LocationTable) error {
	there := map[string]bool{}
	for _, n := range c.World.Nodes() {
		there[n.ID().Address.String()] = true
	}
	for _, h := range simulation.Control(c.World.Nodes()[0]).Inspect(simulation.KindName).Homes {
		at := truth.Location(simulation.KindName, allocation.Shard(h.Shard))
		if there[at] && at != h.Node.Address.String() {
			return fmt.Errorf("shard %d lives on %v, not on %s", h.Shard, h.Node, at)
		}
	}
	return nil
}
