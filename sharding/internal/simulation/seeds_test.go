// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/simulation"
	"github.com/quorate/quorate/simulation/simulationtest"
)

// chaos, moves and lateCommands run the scenarios of these names with their usual numbers of
// nodes.
func chaos(seed uint64) (*simulation.Cluster, error) { return usual(seed, "sharding-chaos") }

func moves(seed uint64) (*simulation.Cluster, error) { return usual(seed, "sharding-moves") }

func lateCommands(seed uint64) (*simulation.Cluster, error) { return usual(seed, "sharding-late") }

func remembered(seed uint64) (*simulation.Cluster, error) { return usual(seed, "sharding-remembered") }

func reshards(seed uint64) (*simulation.Cluster, error) { return usual(seed, "sharding-reshard") }

func relayouts(seed uint64) (*simulation.Cluster, error) { return usual(seed, "sharding-relayout") }

func shutdowns(seed uint64) (*simulation.Cluster, error) { return usual(seed, "sharding-shutdowns") }

func usual(seed uint64, name string) (*simulation.Cluster, error) {
	for _, s := range simulation.Scenarios() {
		if s.Name == name {
			return s.Run(seed, s.Nodes)
		}
	}
	panic("no scenario has the name " + name)
}

// within returns the budget of a test that needs so many seeds at least: what one world with faults handles.
func within(t *testing.T, least int) *simulationtest.Budget {
	return simulationtest.Within(t, least, 40_000)
}

// summed runs a world with each seed, so many of them at least, requires that nothing
// is violated, and returns the sum of what the ledgers counted and the number of seeds.
func summed(t *testing.T, least int, run func(seed uint64) (*simulation.Cluster, error)) (sum simulation.Counts, seeds int) {
	t.Helper()
	b := within(t, least)
	for seed := range b.Seeds {
		c, err := run(seed)
		simulationtest.RequireRun(t, seed, err)
		b.Count(c.World)
		sum.Add(c.Ledger.Counts())
	}
	t.Logf("%d seeds: %+v", b.Ran(), sum)
	return sum, b.Ran()
}

// Under random faults a shard never has two homes, a kind never has two coordinators, and no
// message is processed twice, out of order, or after its sender was told that it would not
// be. When the faults have ended, every shard gets a home and every message an outcome.
// covers F24, F27, F34-F39, I1, I3, I20, I21, I22.
func TestRandomFaults(t *testing.T) {
	sum, _ := summed(t, 4, chaos)
	require.NotZero(t, sum.Batches)
	require.NotZero(t, sum.Gathered)
}

// A coordinator that leaves or dies while shards move does no harm but unknown outcomes: its
// late commands are not obeyed.
// covers F34, F35, F37, F38, I1, I3, I20, I21, I22.
func TestMoves(t *testing.T) {
	summed(t, 2, moves)
}

// While the whole cluster is being stopped nothing moves; started again, it goes on as under any other faults.
func TestTheWholeClusterIsStopped(t *testing.T) { summed(t, 1, shutdowns) }

// Commands of a coordinator that reach the homes after it has stopped do no harm.
// covers F35, I1, I3, I20, I22.
func TestLateCommands(t *testing.T) {
	summed(t, 1, lateCommands)
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

// A seed of the world of late commands that once found a fault:
//
//	1795324171624  the only voter left while a newcomer joined, and later founded the cluster
//	               a second time, beside the newcomer
func TestLateCommandsThatFoundSomething(t *testing.T) {
	_, err := simulation.LateCommands(1795324171624, 2)
	require.NoError(t, err)
}

// Seeds of the world of moves that once found a fault:
//
//	1795325153271  after a late registration a region counted as suspended, and a shard that
//	               moved to it went back to its earlier home
//	1795325153239  messages waited in the lane to an earlier home when the next home died,
//	               and the ledger held that they could not leave any more
func TestMovesThatFoundSomething(t *testing.T) {
	_, err := simulation.Moves(1795325153271, 5)
	require.NoError(t, err)
	_, err = simulation.Moves(1795325153239, 8)
	require.NoError(t, err)
}

// A seed of the world in which the number of shards changes that once found a fault:
//
//	1056  a region passed over homes in a layout of which it had not heard, since a new coordinator
//	      told it of homes before it told of layouts, and was never told of them again
func TestReshardsThatFoundSomething(t *testing.T) {
	_, err := simulation.Reshards(1056, 5)
	require.NoError(t, err)
}

// A seed of the world in which nodes come and go while the number of shards changes that once found a fault:
//
//	1795933768327  two nodes asked for votes to found the cluster at once, neither got enough, and clients
//	               had sent for longer than they wait before there was a cluster
func TestRelayoutsThatFoundSomething(t *testing.T) {
	_, err := simulation.Relayouts(1795933768327, 6)
	require.NoError(t, err)
}
