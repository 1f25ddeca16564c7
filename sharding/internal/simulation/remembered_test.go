// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Whatever happens to the nodes and to the store, an entity whose remembering was acknowledged runs at the home of
// its shard once the faults are over, without a message, and at one node at a time before; one that was
// forgotten does not come back.
// covers F48, I1, I26, I28 for entities that are remembered.
func TestRememberedEntities(t *testing.T) {
	sum, _ := summed(t, 3, remembered)
	require.NotZero(t, sum.Archived.Recalled)
	require.NotZero(t, sum.Archived.Failed)
	require.NotZero(t, sum.Archived.Changes)
	require.NotZero(t, sum.Archived.Given)
	require.NotZero(t, sum.Relaid)
	t.Logf("%+v", sum.Archived)
}
