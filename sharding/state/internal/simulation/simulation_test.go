// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/state/internal/simulation"
	"github.com/quorate/quorate/simulation/simulationtest"
)

// Owners freeze, crash and are replaced over a store that goes wrong, and what was acknowledged is
// kept, once and in order.
// covers I37.
func TestOwnersUnderFaults(t *testing.T) {
	b := simulationtest.Within(t, 10, 0)
	var sum simulation.Counts
	for seed := range b.Seeds {
		w, err := simulation.Run(seed, simulation.Nodes)
		simulationtest.RequireRun(t, seed, err)
		c := w.Counts
		sum.Acknowledged += c.Acknowledged
		sum.Fenced += c.Fenced
		sum.Unanswered += c.Unanswered
		sum.Repeated += c.Repeated
		sum.Late += c.Late
		sum.Batched += c.Batched
		sum.Refused += c.Refused
	}
	t.Logf("%d seeds: %+v", b.Ran(), sum)
	if b.Ran() >= 40 { // Fewer seeds need not show all of it.
		for name, count := range map[string]int{
			"fenced": sum.Fenced, "unanswered": sum.Unanswered, "repeated": sum.Repeated, "late": sum.Late, "batched": sum.Batched,
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
