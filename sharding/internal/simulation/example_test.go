// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"fmt"

	"github.com/quorate/quorate/sharding/internal/simulation"
)

// A cluster of three nodes runs in virtual time while shards move between them. The run is a
// function of its seed, and the ledger of the cluster returns an error for every violation.
func ExampleMoves() {
	cluster, err := simulation.Moves(1, 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(cluster.World.Nodes()), "nodes")
	// Output: 3 nodes
}
