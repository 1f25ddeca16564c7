// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package deliverysim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/internal/deliverysim"
	"github.com/quorate/quorate/simulation/simulationtest"
)

// Messages are delivered through all faults.
func TestDeliveryUnderFaults(t *testing.T) {
	first, n := simulationtest.Seeds(t, 60)
	var sum deliverysim.Counts
	for seed := first; seed < first+n; seed++ {
		w, err := deliverysim.Run(seed, deliverysim.Entities)
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
	t.Logf("%d seeds: %+v", n, sum)
	if n >= 60 { // Fewer seeds need not show all of it.
		for name, count := range map[string]int{
			"refused": sum.Refused, "handled again": sum.Again, "late": sum.Late, "nonsense": sum.Nonsense, "probes": sum.Probes,
		} {
			require.NotZero(t, count, name)
		}
	}
}

// A run is a function of its seed.
func TestARunRepeats(t *testing.T) {
	one, err := deliverysim.Run(3, deliverysim.Entities)
	require.NoError(t, err)
	two, err := deliverysim.Run(3, deliverysim.Entities)
	require.NoError(t, err)
	require.Equal(t, one.Counts, two.Counts)
	require.Equal(t, one.Trace().Hash(), two.Trace().Hash())
}
