// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/internal/simulation"
)

// No entity begins a message without the lease of its shard, whatever becomes of the store and of nodes, and once both
// are well again all shards are hosted. covers I1 for kinds with leases.
func TestLeasesUnderFaults(t *testing.T) {
	sum, _ := summed(t, 2, func(seed uint64) (*simulation.Cluster, error) { return simulation.Leases(seed, 5-3*int(seed%2)) })
	require.NotZero(t, sum.Leased)
	require.NotZero(t, sum.LeasesLost)
}

// A node that stood still for longer than its leases last begins nothing by them when it goes on, although nobody has
// told it yet that they are over. covers I1, I14 for kinds with leases.
func TestALeaseEndsWhileItsNodeStandsStill(t *testing.T) {
	sum, _ := summed(t, 1, simulation.StandsStill)
	require.NotZero(t, sum.Leased)
	require.NotZero(t, sum.LeasesLost)
}
