// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/delivery/internal/simulation"
	"github.com/quorate/quorate/simulation/simulationtest"
)

// Messages are delivered through all faults.
func TestDeliveryUnderFaults(t *testing.T) {
	b := simulationtest.Within(t, 8, 0)
	var sum simulation.Counts
	for seed := range b.Seeds {
		w, err := simulation.Run(seed, simulation.Entities)
		simulationtest.RequireRun(t, seed, err)
		c := w.Counts
		sum.Accepted += c.Accepted
		sum.Refused += c.Refused
		sum.Confirmed += c.Confirmed
		sum.Handled += c.Handled
		sum.Again += c.Again
		sum.Frames += c.Frames
		sum.Lost += c.Lost
		sum.Doubled += c.Doubled
		sum.Late += c.Late
		sum.Nonsense += c.Nonsense
		sum.Probes += c.Probes
		sum.Crashes += c.Crashes
		sum.Restarts += c.Restarts
		sum.Stops += c.Stops
		sum.Closures += c.Closures
		sum.Unanswered += c.Unanswered
	}
	t.Logf("%d seeds: %+v", b.Ran(), sum)
	if b.Ran() >= 60 { // Fewer seeds need not show all of it.
		for name, count := range map[string]int{
			"refused": sum.Refused, "handled again": sum.Again, "late": sum.Late, "nonsense": sum.Nonsense, "probes": sum.Probes,
		} {
			require.NotZero(t, count, name)
		}
	}
}

// What was accepted is delivered through all faults of the disks that queues are on.
func TestQueuesInFiles(t *testing.T) {
	b := simulationtest.Within(t, 6, 0)
	var sum simulation.Counts
	for seed := range b.Seeds {
		w, err := simulation.RunFiles(seed, simulation.Entities)
		simulationtest.RequireRun(t, seed, err)
		sum.Accepted += w.Counts.Accepted
		sum.Handled += w.Counts.Handled
		sum.Again += w.Counts.Again
		sum.Failures += w.Counts.Failures
		sum.Power += w.Counts.Power
		sum.Lures += w.Counts.Lures
		sum.Crashes += w.Counts.Crashes
	}
	t.Logf("%d seeds: %+v", b.Ran(), sum)
	if b.Ran() >= 40 { // Fewer seeds need not show all of it.
		require.NotZero(t, sum.Failures)
		require.NotZero(t, sum.Power)
		require.NotZero(t, sum.Lures)
	}
}

// A run with disks is a function of its seed.
func TestARunWithDisksRepeats(t *testing.T) {
	one, err := simulation.RunFiles(3, simulation.Entities)
	require.NoError(t, err)
	two, err := simulation.RunFiles(3, simulation.Entities)
	require.NoError(t, err)
	require.Equal(t, one.Counts, two.Counts)
	require.Equal(t, one.Trace().Hash(), two.Trace().Hash())
}

// A run is a function of its seed.
func TestARunRepeats(t *testing.T) {
	one, err := simulation.Run(3, simulation.Entities)
	require.NoError(t, err)
	two, err := simulation.Run(3, simulation.Entities)
	require.NoError(t, err)
	require.Equal(t, one.Counts, two.Counts)
	require.Equal(t, one.Trace().Hash(), two.Trace().Hash())
}
