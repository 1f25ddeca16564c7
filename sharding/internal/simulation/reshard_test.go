// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/internal/control"
)

// The number of shards changes while random faults strike: no entity lives in a shard of both layouts,
// its epochs grow from one to the other, no message is lost, doubled or overtaken, and the change
// comes to its end when the faults are over.
// covers I1, I20, I21, I22 for changes of the number of shards.
func TestReshards(t *testing.T) {
	sum, _ := summed(t, 1, reshards)
	require.NotZero(t, sum.Relaid)
	require.NotZero(t, sum.Handed)
	require.NotZero(t, sum.Moves[control.OutcomeRetired])
}

// So it does while nodes come and go in order, configured for any number that the kind has had: and then
// no sender is left without the outcome of its message, unless its own node ends.
// covers I1, I20, I21, I22 for changes of the number of shards.
func TestRelayouts(t *testing.T) {
	sum, _ := summed(t, 1, relayouts)
	require.NotZero(t, sum.Handed)
	require.NotZero(t, sum.Moves[control.OutcomeRetired])
}
