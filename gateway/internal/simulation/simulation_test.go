// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	clientv1 "github.com/quorate/quorate/client/proto/quorate/client/v1"
	"github.com/quorate/quorate/gateway/internal/simulation"
	"github.com/quorate/quorate/simulation/simulationtest"
)

// Clients that are no members ask and tell through all faults.
func TestClientsUnderFaults(t *testing.T) {
	first, n := simulationtest.Seeds(t, 20)
	var sum simulation.Counts
	for seed := first; seed < first+n; seed++ {
		w, err := simulation.Run(seed, simulation.Nodes)
		simulationtest.RequireRun(t, seed, err)
		sum.Add(w.Counts)
	}
	t.Logf("%d seeds: %+v", n, sum)
	if n < 20 {
		return // Fewer seeds need not show all of it.
	}
	for name, count := range map[string]int{
		"handled": sum.Handled, "given to a second node": sum.Again, "overloaded": sum.Overloaded, "unanswered": sum.Unanswered,
		"waited": sum.Waited, "cut": sum.Cut, "canceled": sum.Cancels, "closed": sum.Closes,
	} {
		require.NotZero(t, count, name)
	}
	for code := clientv1.Code_CODE_OK; code <= clientv1.Code_CODE_UNKNOWN_KIND; code++ {
		if code != clientv1.Code_CODE_INVALID { // No request of this world is.
			require.NotZero(t, sum.Ended[code], code)
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
