// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster/locations/internal/simulation"
	"github.com/quorate/quorate/simulation/simulationtest"
)

// Shards come to live where operators have said, through all faults.
func TestShardsFollowTheMapUnderFaults(t *testing.T) {
	const usual = 4
	first, n := simulationtest.Seeds(t, usual)
	var sum simulation.Counts
	for seed := first; seed < first+n; seed++ {
		w, err := simulation.Run(seed, simulation.Nodes)
		simulationtest.RequireRun(t, seed, err)
		sum.Add(w.Counts)
	}
	t.Logf("%d seeds: %+v", n, sum)
	if n < usual {
		return // Fewer seeds need not show all of it.
	}
	for name, count := range map[string]int{
		"confirmed": sum.Confirmed, "unconfirmed": sum.Unconfirmed, "left out": sum.Left, "cleared": sum.Cleared, "moved": sum.Moves,
	} {
		require.NotZero(t, count, name)
	}
}

// A run is a function of its seed.
func TestARunRepeats(t *testing.T) {
	one, err := simulation.Run(3, simulation.Nodes)
	simulationtest.RequireRun(t, 3, err)
	two, err := simulation.Run(3, simulation.Nodes)
	simulationtest.RequireRun(t, 3, err)
	require.Equal(t, one.Counts, two.Counts)
	require.Equal(t, one.Trace().Hash(), two.Trace().Hash())
}
