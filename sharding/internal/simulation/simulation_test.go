// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/membership/membershipsim"
	"github.com/quorate/quorate/sharding/internal/simulation"
	world "github.com/quorate/quorate/simulation"
)

// Clusters with one sort of trouble each: first none, then nodes that leave, one, several at
// once over a slow network, and the coordinator in the middle of moves; then entities that
// stop too late, a crash, and a node that thaws after its removal.

func finish(t *testing.T, c *simulation.Cluster) simulation.Counts {
	t.Helper()
	err := c.Finish(30 * time.Second)
	if err != nil {
		for _, n := range c.World.Nodes() {
			t.Logf("%s\n%s", n.ID(), simulation.Control(n))
		}
	}
	require.NoError(t, err)
	return c.Ledger.Counts()
}

// A cluster without faults processes every message that it has not refused, exactly once and
// in order.
// covers I20, I22.
func TestCalmClusterProcessesEverything(t *testing.T) {
	c := simulation.New(simulation.Options{
		World:     world.Options{Seed: 1, CodecEvery: 1, RatePPM: 10_000},
		Behaviour: simulation.Behaviour{LaneFull: 0.02, Passivate: 0.1},
	})
	require.NoError(t, c.World.Run(30*time.Second))
	counts := finish(t, c)
	require.Equal(t, counts.Accepted, counts.Processed+counts.Refused)
	require.Greater(t, counts.Processed, 2000)
	t.Logf("%+v", counts)
}

// When nodes leave, the coordinator among them, no message is lost or processed twice, and
// no outcome is unknown.
// covers F34, F35, I1, I3, I20, I21.
func TestLeavingLosesNothing(t *testing.T) {
	b := within(t, 1)
	for seed := range b.Seeds {
		c := simulation.New(simulation.Options{
			World: world.Options{Seed: seed, CodecEvery: 3, RatePPM: 10_000}, Nodes: 6,
			Behaviour: simulation.Behaviour{LaneFull: 0.02, Passivate: 0.05},
		})
		b.Count(c.World)
		c.World.At(20*time.Second, func() { c.Leave(0) })
		c.World.At(21*time.Second, func() { c.Leave(3) })
		c.World.At(40*time.Second, func() { c.Leave(1) })
		require.NoError(t, c.World.Run(60*time.Second))
		require.Len(t, c.World.Nodes(), 3)
		counts := finish(t, c)
		require.Equal(t, counts.Abandoned, counts.Failed, "%+v", counts)
		require.Zero(t, counts.Delivered, "%+v", counts)
	}
}

// When several nodes leave at about the same time, over a network that delays and reorders
// their messages, no message is lost either: no node is gone before other nodes have taken
// over its shards, and a node that is given shards while it leaves hands them on.
// covers F35, F37, I20.
func TestSeveralLeaveOverASlowNetwork(t *testing.T) {
	b := within(t, 1)
	for seed := range b.Seeds {
		c := simulation.New(simulation.Options{
			World: world.Options{
				Seed: seed, CodecEvery: 3, RatePPM: 10_000,
				Network: world.Delivery{Late: 0.2, LateMax: 300 * time.Millisecond},
			},
			Nodes: 7, Behaviour: simulation.Behaviour{LaneFull: 0.02, Passivate: 0.05},
		})
		b.Count(c.World)
		c.World.At(20*time.Second, func() { c.Leave(1) })
		c.World.At(20*time.Second+time.Duration(seed%8)*60*time.Millisecond, func() {
			c.Leave(2)
			c.Leave(3)
		})
		require.NoError(t, c.World.Run(40*time.Second))
		require.Len(t, c.World.Nodes(), 4)
		counts := finish(t, c)
		require.Equal(t, counts.Abandoned, counts.Failed, "seed %d %+v", seed, counts)
		require.Zero(t, counts.Delivered, "seed %d %+v", seed, counts)
	}
}

// A coordinator that leaves in the middle of moves lets them end, so that no outcome is
// unknown, even if another node leaves at the same time.
// covers F35, F37, I20.
func TestCoordinatorLeavesInTheMiddleOfMoves(t *testing.T) {
	b := within(t, 1)
	for seed := range b.Seeds {
		c := simulation.New(simulation.Options{
			World: world.Options{Seed: seed, CodecEvery: 3, RatePPM: 10_000},
			Nodes: 6, Shards: 200, Handoff: time.Minute, Every: 3 * time.Millisecond,
		})
		b.Count(c.World)
		require.NoError(t, rest(c, 6, 30*time.Second))
		c.Leave(5)
		c.World.After(time.Duration(1+seed%7)*8*time.Millisecond, func() { c.EndCoordinator(false) })
		require.NoError(t, rest(c, 4, 30*time.Second))
		counts := finish(t, c)
		require.Equal(t, counts.Abandoned, counts.Failed, "seed %d %+v", seed, counts)
		require.Zero(t, counts.Delivered, "seed %d %+v", seed, counts)
	}
}

// When entities stop too late, the stop of their shard is taken back in time, and the shard
// moves later. No message is lost.
// covers F39, I20, I21.
func TestStopsEndInTime(t *testing.T) {
	b := within(t, 1)
	for seed := range b.Seeds {
		c := simulation.New(simulation.Options{
			World: world.Options{Seed: seed, CodecEvery: 3, RatePPM: 10_000}, Nodes: 5,
			Handoff: 2 * time.Second, StopLimit: 3 * time.Second,
			Behaviour: simulation.Behaviour{SlowStop: 0.1, SlowStopFor: 6 * time.Second},
		})
		b.Count(c.World)
		c.World.At(15*time.Second, func() { c.Leave(2) })
		require.NoError(t, c.World.Run(40*time.Second))
		require.Len(t, c.World.Nodes(), 4)
		counts := finish(t, c)
		require.Equal(t, counts.Abandoned, counts.Failed, "%+v", counts)
	}
}

// After the node of the coordinator has crashed, every shard has a home again within ten
// seconds.
// covers F34, F38, I1, I3, I20.
func TestCrashOfTheCoordinator(t *testing.T) {
	b := within(t, 1)
	for seed := range b.Seeds {
		c := simulation.New(simulation.Options{World: world.Options{Seed: seed, CodecEvery: 3, RatePPM: 10_000}, Nodes: 5})
		b.Count(c.World)
		c.World.At(20*time.Second, func() { c.World.Crash(simulation.Address(0)) })
		require.NoError(t, c.World.Run(20*time.Second))
		passed, err := c.World.RunUntil(20*time.Second, func() bool { return c.Settled() == nil })
		require.NoError(t, err)
		require.Less(t, passed, 10*time.Second, "every shard has a home again")
		counts := finish(t, c)
		t.Logf("re-homed after %v: %+v", passed, counts)
	}
}

// A node that thaws soon after it was removed begins no message, and ends as soon as the
// others tell it that it was removed. The asks that its clients had sent before may still
// reach the rightful homes: these process them once and in order, as late messages of an
// origin that they know by its incarnation.
// covers F24, F25, I1, I7, I14, I20, I21.
func TestANodeThatThawsRightAfterItsRemoval(t *testing.T) {
	b := within(t, 1)
	for seed := range b.Seeds {
		c := simulation.New(simulation.Options{
			World: world.Options{Seed: seed, CodecEvery: 3, RatePPM: 10_000}, Nodes: 5, Shards: 60, Every: 5 * time.Millisecond,
		})
		b.Count(c.World)
		require.NoError(t, rest(c, 5, 30*time.Second))
		frozen := c.World.Node(simulation.Address(2)).ID()
		c.World.Freeze(frozen.Address, time.Hour)
		removed := func() bool {
			state := membershipsim.MachineOf(c.World.Node(simulation.Address(0))).State()
			_, gone := state.Removed(frozen)
			return gone
		}
		_, err := c.World.RunUntil(20*time.Second, removed)
		require.NoError(t, err)
		require.True(t, removed())
		require.NoError(t, c.World.Run(time.Duration(seed*3%8)*450*time.Millisecond))
		c.World.Thaw(frozen.Address)
		took, err := c.World.RunUntil(5*time.Second, func() bool { return c.World.Node(frozen.Address) == nil })
		require.NoError(t, err)
		require.Less(t, took, time.Second, "seed %d: it ends as soon as it is told", seed)
		counts := finish(t, c)
		t.Logf("seed %d: ended %v after the thaw: %+v", seed, took, counts)
	}
}
