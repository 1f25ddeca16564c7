// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"testing"

	"github.com/quorate/quorate/simulation/simulationtest"
)

// Nodes of three releases host entities together, through faults of all sorts: nothing that holds for one release is
// broken.
func TestNodesOfThreeReleasesAreOneCluster(t *testing.T) {
	b := simulationtest.Within(t, 2, 60_000)
	for seed := range b.Seeds {
		for len(drawReleases(seed, addresses(chaosNodes)).control) == 0 {
			seed += 1 << 32
		}
		c, err := Chaos(seed, chaosNodes)
		simulationtest.RequireRun(t, seed, err)
		b.Count(c.World)
	}
}
