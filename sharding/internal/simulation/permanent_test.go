// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/internal/simulation"
)

// Entities that are permanent run at the homes of their shards once the faults are over, without
// a message and after failures, and at one node at a time before.
// covers I1, I10 for entities without messages.
func TestPermanentEntitiesRun(t *testing.T) {
	sum, _ := summed(t, 2, func(seed uint64) (*simulation.Cluster, error) { return simulation.Permanent(seed, 5) })
	require.NotZero(t, sum.Homes)
}
