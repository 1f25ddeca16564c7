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
	b := simulationtest.Within(t, 6, 0)
	var sum simulation.Counts
	for seed := range b.Seeds {
		w, err := simulation.Run(seed, simulation.Nodes)
		simulationtest.RequireRun(t, seed, err)
		sum.Add(w.Counts)
	}
	t.Logf("%d seeds: %+v", b.Ran(), sum)
	if b.Ran() < 20 {
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

// While nodes leave in order and come back, no request of a client fails.
func TestNodesLeaveWithoutAFailedRequest(t *testing.T) {
	b := simulationtest.Within(t, 6, 0)
	var sum simulation.Counts
	for seed := range b.Seeds {
		w, err := simulation.RunOrderly(seed, 2+int(seed%2))
		simulationtest.RequireRun(t, seed, err)
		sum.Add(w.Counts)
	}
	t.Logf("%d seeds: %+v", b.Ran(), sum)
	if b.Ran() >= 20 { // Fewer seeds need not show all of it.
		require.NotZero(t, sum.Leaves)
		require.NotZero(t, sum.Again, "given to a second node")
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
