// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/simulation/simulationtest"
)

// Replicas of two releases are one group, through faults of all sorts: nothing that holds for one release is broken.
// One seed in three has them.
func TestReplicasOfTwoReleasesAreOneGroup(t *testing.T) {
	mixed := 0
	for seed := range uint64(300) {
		if drawReleases(seed, 8) != nil {
			mixed++
		}
	}
	require.InDelta(t, 100, mixed, 25)
	var sent uint64
	b := simulationtest.Within(t, 3, 15_000)
	for seed := range b.Seeds {
		nodes := 3 + int(seed%4)
		for drawReleases(seed, 2*nodes) == nil {
			seed += 1 << 32
		}
		c, err := Chaos(seed, nodes)
		simulationtest.RequireRun(t, seed, err)
		b.Count(c.World)
		sent += c.World.Stats().Codec
	}
	require.NotZero(t, sent, "no message went between two releases")
}
