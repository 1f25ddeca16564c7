// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/internal/simulation"
)

// Parts of batches that name their stream by a number are delivered as those that spell it out:
// once and in order, whatever becomes of the batch that has defined the number, and of the
// session. What names a number that its host does not know comes again.
// covers I1, I20, I21.
func TestStreamsByNumber(t *testing.T) {
	sum, _ := summed(t, 1, func(seed uint64) (*simulation.Cluster, error) { return simulation.Named(seed, 4) })
	require.NotZero(t, sum.Unnamed)
}
