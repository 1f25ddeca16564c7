// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/membership/machine"
	membership "github.com/quorate/quorate/membership/protocol"
	world "github.com/quorate/quorate/membership/simulation"
	"github.com/quorate/quorate/sharding/simulation"
)

// seeds returns which seeds to run: QUORATE_SEED is the only one, or QUORATE_SEEDS
// how many, from QUORATE_FIRST_SEED on.
func seeds(t *testing.T, usual int) (first, n uint64) {
	t.Helper()
	if text := os.Getenv("QUORATE_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 0, 64)
		require.NoError(t, err)
		return seed, 1
	}
	if text := os.Getenv("QUORATE_SEEDS"); text != "" {
		many, err := strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
		if text := os.Getenv("QUORATE_FIRST_SEED"); text != "" {
			first, err = strconv.ParseUint(text, 10, 64)
			require.NoError(t, err)
		}
		return first, many
	}
	return 0, uint64(usual)
}

// leaveFault lets a random node leave.
var leaveFault = world.Fault{Name: "leave", Weight: 3, Inject: func(w *world.World, r *rand.Rand) {
	if nodes := w.Nodes(); len(nodes) > 3 {
		a := nodes[r.IntN(len(nodes))].ID().Address
		w.Log("leave %v", a)
		w.Input(a, membership.Service, membership.Leave{Address: a})
	}
}}

// faults are those of membership but for wall clocks that jump: epochs grow over
// restarts of the whole cluster only if whoever forms the next one has a wall clock
// that is not behind.
func faults() []world.Fault {
	all := slices.DeleteFunc(world.Faults(), func(f world.Fault) bool { return f.Name == "wall" })
	return append(all, leaveFault)
}

// chaos runs a cluster under random faults, then lets it recover.
func chaos(seed uint64) (*simulation.Cluster, error) {
	return suffer(seed, simulation.New(troubled(seed)))
}

// troubled returns the options of a cluster over a network that is not the best, with
// entities that fail and do not stop.
func troubled(seed uint64) simulation.Options {
	return simulation.Options{
		World: world.Options{
			Seed: seed, Scenario: "sharding", CodecEvery: 3, RatePPM: 10_000,
			Network: world.Network{Loss: 0.01, Double: 0.01, Late: 0.01, LateMax: 2 * time.Second},
		},
		Nodes: 5, Shards: 16, Entities: 40, Every: 25 * time.Millisecond, Patience: 8 * time.Second,
		RestartAfter: 2 * time.Second,
		Behaviour: simulation.Behaviour{
			FailStart: 0.02, FailRun: 0.01, SlowStop: 0.02, SlowStopFor: 5 * time.Second,
			LaneFull: 0.02, LaneDown: 0.002, Passivate: 0.05,
		},
	}
}

// suffer lets random faults strike a cluster, and lets it recover.
func suffer(seed uint64, c *simulation.Cluster) (*simulation.Cluster, error) {
	c.World.After(15*time.Second, func() {
		c.World.Chaos(world.Chaos{For: 90 * time.Second, Every: 4 * time.Second, Faults: faults()})
	})
	if err := c.World.Run(120 * time.Second); err != nil {
		return c, err
	}
	if err := c.Finish(150 * time.Second); err != nil {
		text := ""
		for _, n := range c.World.Nodes() {
			text += fmt.Sprintf("\n%s: %s", n.ID(), simulation.Control(n))
		}
		return c, fmt.Errorf("seed %d at %v: %w%s", seed, c.World.Now(), err, text)
	}
	return c, nil
}

// Random faults never make two homes, two coordinators, or a message processed
// twice, out of order, or after its sender was told that it would not be; and
// when they end every shard finds a home and every message an outcome.
// covers F24, F27, F34-F39, I1, I3, I20, I21, I22.
func TestRandomFaults(t *testing.T) {
	first, n := seeds(t, 2*seedsUsual)
	var sum simulation.Counts
	for seed := first; seed < first+n; seed++ {
		c, err := chaos(seed)
		if err != nil {
			t.Fatalf("%v\nreplay: QUORATE_SEED=%d go test -run TestRandomFaults ./simulation", err, seed)
		}
		counts := c.Ledger.Counts()
		sum.Accepted += counts.Accepted
		sum.Processed += counts.Processed
		sum.Failed += counts.Failed
		sum.Unknown += counts.Unknown
		sum.TimedOut += counts.TimedOut
		sum.Delivered += counts.Delivered
		sum.Homes += counts.Homes
		sum.Terms += counts.Terms
	}
	t.Logf("%d seeds: %+v", n, sum)
}

// moves runs a cluster in which nodes leave, and the coordinator leaves or dies
// while their shards move, over a network that delays and loses commands.
func moves(seed uint64) (*simulation.Cluster, error) {
	const nodes = 7
	c := simulation.New(simulation.Options{
		World: world.Options{
			Seed: seed, Scenario: "sharding-moves", CodecEvery: 3, RatePPM: 10_000,
			Network: world.Network{Loss: 0.1, Late: 0.2, LateMax: time.Second, Double: 0.02},
		},
		Nodes: nodes, Shards: 32, Every: 30 * time.Millisecond, Patience: 8 * time.Second, RestartAfter: 3 * time.Second,
		Behaviour: simulation.Behaviour{SlowStop: 0.05, SlowStopFor: 4 * time.Second},
	})
	r := rand.New(rand.NewPCG(seed, 5))
	for round := range 5 {
		c.World.At(time.Duration(20+20*round)*time.Second, func() {
			c.Leave(r.IntN(nodes))
			c.World.After(time.Duration(r.IntN(400))*time.Millisecond, func() { c.EndCoordinator(r.IntN(2) == 0) })
		})
	}
	if err := c.World.Run(125 * time.Second); err != nil {
		return c, err
	}
	return c, c.Finish(120 * time.Second)
}

// A coordinator that leaves or dies while shards move leaves no trace but
// outcomes that are not known: its late commands are not obeyed.
// covers F34, F35, F37, F38, I1, I3, I20, I21, I22.
func TestMoves(t *testing.T) {
	first, n := seeds(t, seedsUsual)
	for seed := first; seed < first+n; seed++ {
		if _, err := moves(seed); err != nil {
			t.Fatalf("%v\nreplay: QUORATE_SEED=%d go test -run TestMoves ./simulation", err, seed)
		}
	}
}

// lateCommands runs a cluster whose coordinator leaves again and again, over a
// network on which a command may arrive long after it was sent.
func lateCommands(seed uint64) (*simulation.Cluster, error) {
	const nodes = 6
	c := simulation.New(simulation.Options{
		World: world.Options{
			Seed: seed, Scenario: "sharding-late", CodecEvery: 3, RatePPM: 10_000,
			Network: world.Network{Loss: 0.3, Late: 0.3, LateMax: 8 * time.Second},
		},
		Nodes: nodes, Shards: 64, Every: 50 * time.Millisecond, Patience: 8 * time.Second, RestartAfter: 2 * time.Second,
	})
	r := rand.New(rand.NewPCG(seed, 6))
	for round := range 5 {
		c.World.At(time.Duration(20+15*round)*time.Second, func() {
			c.Leave(r.IntN(nodes))
			c.World.After(time.Duration(r.IntN(1000))*time.Millisecond, func() { c.EndCoordinator(false) })
		})
	}
	if err := c.World.Run(95 * time.Second); err != nil {
		return c, err
	}
	c.World.SetNetwork(world.Network{})
	return c, c.Finish(150 * time.Second)
}

// What a coordinator told homes before it stopped does no harm when it comes late.
// covers F35, I1, I3, I20, I22.
func TestLateCommands(t *testing.T) {
	first, n := seeds(t, few)
	for seed := first; seed < first+n; seed++ {
		if _, err := lateCommands(seed); err != nil {
			t.Fatalf("%v\nreplay: QUORATE_SEED=%d go test -run TestLateCommands ./simulation", err, seed)
		}
	}
}

// The same seed gives the same run, to the byte.
// covers I30.
func TestRunIsAFunctionOfItsSeed(t *testing.T) {
	first, err := chaos(3)
	require.NoError(t, err)
	again, err := chaos(3)
	require.NoError(t, err)
	require.Equal(t, first.World.Trace().Hash(), again.World.Trace().Hash())
	require.Equal(t, first.Ledger.Counts(), again.Ledger.Counts())
}

var _ machine.Machine = (*simulation.Cells)(nil)
