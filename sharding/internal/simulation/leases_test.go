// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/internal/simulation"
)

// No entity starts without the lease of its shard, whatever becomes of the store and of nodes, and once both are well again
// all shards are hosted.
// covers I1 for kinds with leases.
func TestLeasesUnderFaults(t *testing.T) {
	sum, _ := summed(t, few, func(seed uint64) (*simulation.Cluster, error) { return simulation.Leases(seed, 5) })
	require.NotZero(t, sum.Leased)
	require.NotZero(t, sum.LeasesLost)
}
