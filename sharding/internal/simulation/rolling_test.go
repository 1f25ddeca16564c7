// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/simulation"
	world "github.com/quorate/quorate/simulation"
	"github.com/quorate/quorate/simulation/simulationtest"
)

// Changes of a cluster that are part of its operation, under load, and how long messages wait
// for them: first rolling restarts, calm and hurried; then a newcomer, which may host at once
// and gets its share; last a leave with entities that never stop.

// many is a number of shards that is large; with the build tag seeds it is 1000.
const many uint32 = 125 * simulationtest.Times

// rolling returns a cluster of five nodes with the timings of production, over a
// local network. A node that left starts again a second later.
func rolling(seed uint64, shards uint32) *simulation.Cluster {
	return simulation.New(simulation.Options{
		World: world.Options{Seed: seed, CodecEvery: 5, RatePPM: 10_000},
		Nodes: 5, Shards: shards, Entities: 300, Every: 5 * time.Millisecond,
		Handoff: time.Minute, RestartAfter: time.Second,
	})
}

// rest lets time pass until n nodes live and every shard has a home, evenly among them.
func rest(c *simulation.Cluster, n int, limit time.Duration) error {
	return c.Await(limit, func() error {
		if live := len(c.World.Nodes()); live != n {
			return fmt.Errorf("%d nodes live", live)
		}
		return nil
	}, c.Settled, c.Even)
}

// When all nodes are restarted under load, one after the other or two at a time, no message
// fails or waits for half a second: each shard has no home only while it stops and starts,
// also when the coordinator leaves. After each restart the load is even again.
// covers F35, F45, I20, I21.
func TestRollingRestart(t *testing.T) {
	for _, test := range []struct {
		shards   uint32
		together int
	}{{64, 1}, {64, 2}, {many, 1}} {
		t.Run(fmt.Sprintf("%d shards, %d at a time", test.shards, test.together), func(t *testing.T) {
			b := within(t, 1)
			for seed := range b.Seeds {
				c := rolling(seed, test.shards)
				b.Count(c.World)
				require.NoError(t, rest(c, 5, 30*time.Second))
				c.Ledger.Longest()
				for i := 0; i < 5; i += test.together {
					for j := i; j < min(5, i+test.together); j++ {
						c.Leave(j)
					}
					require.NoError(t, c.World.Run(time.Second))
					require.NoError(t, rest(c, 5, 60*time.Second), "seed %d", seed)
				}
				longest := c.Ledger.Longest()
				counts := finish(t, c)
				require.Less(t, longest.For, 500*time.Millisecond, "seed %d: %+v", seed, longest)
				require.Equal(t, counts.Abandoned, counts.Failed, "seed %d: %+v", seed, counts)
				require.Zero(t, counts.Delivered, "seed %d: %+v", seed, counts)
				t.Logf("seed %d: %v until %v, longest wait %+v, %+v", seed, test, c.World.Now(), longest, counts)
			}
		})
	}
}

// A rolling restart that does not wait until the load is even, but goes on as soon as the
// last node is up, fails no message and holds none up either: the shards of the node that
// leaves go to nodes that have just come, which may host from the beginning.
// covers F45, I20, I21.
func TestHurriedRollingRestart(t *testing.T) {
	b := within(t, 1)
	for seed := range b.Seeds {
		c := simulation.New(simulation.Options{
			World: world.Options{Seed: seed, CodecEvery: 5, RatePPM: 10_000},
			Nodes: 5, Shards: 100, Entities: 300, Every: 2 * time.Millisecond,
			Handoff: time.Minute, RestartAfter: 150 * time.Millisecond,
		})
		b.Count(c.World)
		require.NoError(t, rest(c, 5, 30*time.Second))
		c.Ledger.Longest()
		for i := range 5 {
			c.Leave(i)
			old := c.World.Node(simulation.Address(i)).ID()
			_, err := c.World.RunUntil(30*time.Second, func() bool { return c.Up(simulation.Address(i), old) })
			require.NoError(t, err, "seed %d", seed)
		}
		require.NoError(t, rest(c, 5, 60*time.Second), "seed %d", seed)
		longest := c.Ledger.Longest()
		counts := finish(t, c)
		require.Less(t, longest.For, 500*time.Millisecond, "seed %d: %+v", seed, longest)
		require.Equal(t, counts.Abandoned, counts.Failed, "seed %d: %+v", seed, counts)
		t.Logf("seed %d: until %v, longest wait %+v", seed, c.World.Now(), longest)
	}
}

// A newcomer has standing, and so may host, within 200 ms of being up. It does not wait for
// the next round of heartbeats to reach members that did not know it in the first round.
func TestNewcomerMayHostAtOnce(t *testing.T) {
	b := within(t, 1)
	for seed := range b.Seeds {
		c := simulation.New(simulation.Options{
			World: world.Options{Seed: seed, RatePPM: 10_000}, Nodes: 4, Shards: 20,
		})
		b.Count(c.World)
		require.NoError(t, rest(c, 4, 30*time.Second))
		c.Start(4)
		_, err := c.World.RunUntil(10*time.Second, func() bool { return c.Up(simulation.Address(4), gossip.NodeID{}) })
		require.NoError(t, err)
		took, err := c.World.RunUntil(10*time.Second, func() bool {
			return strings.HasPrefix(simulation.Control(c.World.Node(simulation.Address(4))).String(), "suspended false")
		})
		require.NoError(t, err)
		require.LessOrEqual(t, took, 200*time.Millisecond, "seed %d", seed)
	}
}

// A node that joins under load gets its share of the shards at once, by no more moves than
// needed. No message waits for long, and none fails.
// covers F37, I20, I21.
func TestJoinUnderLoad(t *testing.T) {
	b := within(t, 1)
	for seed := range b.Seeds {
		c := simulation.New(simulation.Options{
			World: world.Options{Seed: seed, CodecEvery: 5, RatePPM: 10_000},
			Nodes: 2, Shards: 200, Entities: 300, Every: 2 * time.Millisecond, Handoff: time.Minute,
		})
		b.Count(c.World)
		require.NoError(t, rest(c, 2, 30*time.Second))
		c.Ledger.Longest()
		c.Start(2)
		require.NoError(t, rest(c, 3, 10*time.Second))
		longest := c.Ledger.Longest()
		counts := finish(t, c)
		require.Less(t, longest.For, 300*time.Millisecond, "seed %d: %+v", seed, longest)
		require.Zero(t, counts.Failed, "seed %d: %+v", seed, counts)
		moved := counts.Moves[control.OutcomeMoved]
		require.True(t, moved == 66 || moved == 67, "seed %d: %d moves, no more than it takes", seed, moved)
		require.Len(t, counts.Moves, 1)
	}
}

// With on-stuck set to abandon, a node leaves in time although some of its entities never
// stop: their shards go on without them.
// covers F39, I20, I21.
func TestStuckEntitiesAreLeftBehind(t *testing.T) {
	behind := 0
	b := within(t, 1)
	for seed := range b.Seeds {
		c := simulation.New(simulation.Options{
			World: world.Options{Seed: seed, CodecEvery: 3, RatePPM: 10_000}, Nodes: 4,
			Handoff: 2 * time.Second, OnStuck: control.OnStuckAbandon, StopLimit: 3 * time.Second,
			Behaviour: simulation.Behaviour{SlowStop: 0.1, SlowStopFor: 10 * time.Minute},
		})
		b.Count(c.World)
		c.World.At(15*time.Second, func() { c.Leave(2) })
		require.NoError(t, c.World.Run(30*time.Second))
		require.Len(t, c.World.Nodes(), 3)
		behind += finish(t, c).LeftBehind
	}
	require.NotZero(t, behind)
}
