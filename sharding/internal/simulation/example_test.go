// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"fmt"

	"github.com/quorate/quorate/sharding/internal/simulation"
)

// A cluster of three nodes between which shards move, in virtual time: the run is a
// function of its seed, and the ledger of the cluster finds what must not happen.
func ExampleMoves() {
	cluster, err := simulation.Moves(1, 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(cluster.World.Nodes()), "nodes")
	// Output: 3 nodes
}
