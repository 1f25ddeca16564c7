// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membershipsim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/membership/membershipsim/scenario"
	"github.com/quorate/quorate/simulation"
	"github.com/quorate/quorate/simulation/simulationtest"
)

// seedsUsual is how many seeds a run of the tests tries of each world.
const seedsUsual = 5 * simulationtest.Times

// covers F9, F11, F13, F16, F24, F25, F28, F32, F33, F53, I6, I7, I8, I9, I10, I25, I29.
func TestChaosBreaksNoInvariant(t *testing.T) {
	fences, hosted := 0, 0
	first, n := simulationtest.Seeds(t, seedsUsual)
	for seed := first; seed < first+n; seed++ {
		r, err := scenario.Run(scenario.Options{Scenario: "chaos", Seed: seed, Nodes: 7})
		require.NoError(t, err, "seed %d", seed)
		fences += r.Fences
		hosted += r.Hosted
	}
	require.Positive(t, fences, "nodes were fenced")
	require.Positive(t, hosted, "nodes did host")
	t.Log(fmt.Sprint("fences ", fences, ", node-seconds with standing ", hosted))
}

// Seeds beyond the usual ones that have found something once: a bug, or a
// defect that was planted to see whether the seeds find it.
//
//	132  the voters of before a change of voters do not count
//	219  the leader of a lost side gave a generation of voters that was given again
//	357  the same
//	617  a member that was exiting died with an accusation, and stayed for ever
func TestSeedsThatFoundSomething(t *testing.T) {
	for _, seed := range []uint64{132, 219, 357, 617} {
		_, err := scenario.Run(scenario.Options{Scenario: "chaos", Seed: seed, Nodes: 7})
		require.NoError(t, err)
	}
}

// The same with strategies of which more than half of the calls come to nothing; a
// witness with every other seed.
//
//	9  a node called its strategy for itself while it was asked for a leader before
//
// covers F40, F56, F60, I4, I6, I7, I8, I9, I29, I34.
func TestStrangeStrategiesBreakNoInvariant(t *testing.T) {
	first, n := simulationtest.Seeds(t, 1+seedsUsual/8)
	seeds := []uint64{9}
	for i := range n {
		seeds = append(seeds, first+i)
	}
	for _, seed := range seeds {
		_, err := scenario.Run(scenario.Options{Scenario: "strategies", Seed: seed, Nodes: 7})
		require.NoError(t, err, "seed %d", seed)
	}
}

// The same with the strategies that decide at once and may keep a side without a majority.
//
// covers F9, F10, I2, I4, I6, I7, I8, I9, I29.
func TestStrategiesThatKeepMinoritiesBreakNoInvariant(t *testing.T) {
	first, n := simulationtest.Seeds(t, 2+seedsUsual/8)
	for seed := range n {
		_, err := scenario.Run(scenario.Options{Scenario: "minorities", Seed: first + seed, Nodes: 7})
		require.NoError(t, err, "seed %d", first+seed)
	}
}

// The same with the strategy that asks for a lease, whose store is away, slow and loses answers.
//
// covers F9, F10, F20, F21, I1, I2, I4, I6, I7, I8, I9, I15, I29.
func TestLeasesBreakNoInvariant(t *testing.T) {
	first, n := simulationtest.Seeds(t, 2+seedsUsual/8)
	for seed := range n {
		_, err := scenario.Run(scenario.Options{Scenario: "leases", Seed: first + seed, Nodes: 7})
		require.NoError(t, err, "seed %d", first+seed)
	}
}

// covers I30.
func TestSameSeedSameTrace(t *testing.T) {
	run := func() scenario.Result {
		r, err := scenario.Run(scenario.Options{Scenario: "chaos", Seed: 42, Nodes: 7})
		require.NoError(t, err)
		return r
	}
	first, again := run(), run()
	require.Equal(t, first, again)
}

// covers F8, I9, I10.
func TestHundredNodesJoinAndConverge(t *testing.T) {
	w, _ := cluster(simulation.Options{Seed: 5}, 100)
	passed := requireSettled(t, w, time.Minute)
	t.Log("settled after", passed, w.Stats())
}
