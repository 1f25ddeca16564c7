// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/internal/simulation"
)

// Under random faults an instance is restored from the memory of the latest instance before it, as
// that had it in the end, and from no other; nobody is restored twice; and no memory is left in
// anybody's hands.
// covers I1, I21.
func TestHandoffsUnderFaults(t *testing.T) {
	sum, _ := summed(t, 2, func(seed uint64) (*simulation.Cluster, error) { return simulation.Handoffs(seed, 5) })
	require.NotZero(t, sum.Memories.Given)
	require.NotZero(t, sum.Memories.Restored)
	require.NotZero(t, sum.Memories.Lost)
}

// In a world where nothing is wrong the memory of every entity comes along in every planned move:
// one that evens out the load, one by an operator, and those of nodes that leave or are drained.
// covers I21.
func TestOrderlyMovesKeepTheMemory(t *testing.T) {
	sum, seeds := summed(t, 1, func(seed uint64) (*simulation.Cluster, error) { return simulation.Orderly(seed, 5) })
	require.Greater(t, sum.Memories.Restored, 10*seeds)
}
