// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/internal/simulation"
)

// Nodes that may have few entities stop those that have nothing to do and no others, as soon as there
// are any, by every policy; and whatever happens meanwhile no message is lost by that.
// covers F49, I1, I20 for entities that make room.
func TestLimitedEntities(t *testing.T) {
	sum, _ := summed(t, 2, func(seed uint64) (*simulation.Cluster, error) { return simulation.Limited(seed, 5) })
	require.NotZero(t, sum.Evicted)
	require.NotZero(t, sum.Over, "busy entities are more than the limit at times")
}
