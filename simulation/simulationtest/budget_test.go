// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulationtest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/simulation"
	"github.com/quorate/quorate/simulation/simulationtest"
)

// seedsWithin returns the seeds of a test with a budget whose worlds handle an event in each second of a minute.
func seedsWithin(t *testing.T, least int, events uint64) (seeds []uint64) {
	b := simulationtest.Within(t, least, events)
	for seed := range b.Seeds {
		w := simulation.New(simulation.Options{Seed: seed})
		b.Count(w)
		require.NoError(t, w.Run(time.Minute))
		seeds = append(seeds, seed)
		require.Equal(t, len(seeds), b.Ran())
	}
	return seeds
}

func TestSeedsLastUntilTheirWorldsHaveHandledTheEvents(t *testing.T) {
	for _, variable := range []string{"QUORATE_SEED", "QUORATE_FIRST_SEED", "QUORATE_SEEDS"} {
		t.Setenv(variable, "")
	}
	const times = simulationtest.Times
	require.Empty(t, seedsWithin(t, 0, 0))
	require.Len(t, seedsWithin(t, 2, 0), 2*times)
	require.Len(t, seedsWithin(t, 1, 60), times)
	require.Len(t, seedsWithin(t, 1, 180), 3*times)
	require.Len(t, seedsWithin(t, 5, 180), 5*times)
	t.Setenv("QUORATE_FIRST_SEED", "7")
	require.Equal(t, []uint64{7, 8}, seedsWithin(t, 1, 120)[:2])
}

func TestTheEnvironmentChoosesTheSeedsOfABudget(t *testing.T) {
	t.Setenv("QUORATE_SEED", "")
	t.Setenv("QUORATE_FIRST_SEED", "3")
	t.Setenv("QUORATE_SEEDS", "2")
	require.Equal(t, []uint64{3, 4}, seedsWithin(t, 5, 600))
	t.Setenv("QUORATE_SEED", "17")
	require.Equal(t, []uint64{17}, seedsWithin(t, 5, 600))
}

func TestASeedWhoseWorldDoesNotCountIsADefectOfTheTest(t *testing.T) {
	t.Setenv("QUORATE_SEED", "")
	t.Setenv("QUORATE_SEEDS", "")
	require.Panics(t, func() {
		simulationtest.Within(t, 1, 100).Seeds(func(uint64) bool { return true })
	})
}
