// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/internal/simulation"
)

// While the number of shards in use changes under random faults, nothing runs under two revisions at one
// time, and once the faults are over one number counts everywhere, of which each shard runs.
// covers I1, I3 for kinds that are rescaled.
func TestRescalesUnderFaults(t *testing.T) {
	sum, seeds := summed(t, 3, func(seed uint64) (*simulation.Cluster, error) { return simulation.Rescales(seed, 5) })
	require.Greater(t, sum.Revisions, 2*seeds)
}
