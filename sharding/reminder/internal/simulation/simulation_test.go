// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/reminder/internal/simulation"
	"github.com/quorate/quorate/simulation/simulationtest"
)

// Buckets of reminders move, freeze and crash over a store that goes wrong, and every reminder that was
// acknowledged fires: not before its time, not after it was canceled, and none is forgotten.
func TestRemindersUnderFaults(t *testing.T) {
	first, n := simulationtest.Seeds(t, 40)
	var sum simulation.Counts
	for seed := first; seed < first+n; seed++ {
		w, err := simulation.Run(seed, simulation.Nodes)
		simulationtest.RequireRun(t, seed, err)
		c := w.Counts
		sum.Set += c.Set
		sum.Canceled += c.Canceled
		sum.Repeated += c.Repeated
		sum.Fired += c.Fired
		sum.Handled += c.Handled
		sum.Doubled += c.Doubled
		sum.Unacknowledged += c.Unacknowledged
		sum.Stale += c.Stale
		sum.Fenced += c.Fenced
		sum.Closed += c.Closed
		sum.Missed += c.Missed
		sum.Late += c.Late
		sum.Refused += c.Refused
	}
	t.Logf("%d seeds: %+v", n, sum)
	if n >= 40 { // Fewer seeds need not show all of it.
		for name, count := range map[string]int{
			"set": sum.Set, "canceled": sum.Canceled, "repeated": sum.Repeated, "handled": sum.Handled, "doubled": sum.Doubled,
			"stale": sum.Stale, "fenced": sum.Fenced, "closed": sum.Closed, "missed": sum.Missed, "late": sum.Late, "refused": sum.Refused,
		} {
			require.NotZero(t, count, name)
		}
	}
}

// A run is a function of its seed.
func TestARunRepeats(t *testing.T) {
	one, err := simulation.Run(3, simulation.Nodes)
	require.NoError(t, err)
	two, err := simulation.Run(3, simulation.Nodes)
	require.NoError(t, err)
	require.Equal(t, one.Counts, two.Counts)
	require.Equal(t, one.Trace().Hash(), two.Trace().Hash())
}
