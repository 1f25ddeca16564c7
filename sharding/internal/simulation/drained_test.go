// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/internal/simulation"
)

// Nodes that are drained host nothing once the faults are over, unless all are, and whatever
// happens meanwhile no message is lost by that.
// covers I1, I20 for nodes that are drained.
func TestDrainedNodes(t *testing.T) {
	sum, _ := summed(t, 3, func(seed uint64) (*simulation.Cluster, error) { return simulation.Drains(seed, 5) })
	require.NotZero(t, sum.Homes)
}
