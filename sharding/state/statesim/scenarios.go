// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package statesim

import (
	"github.com/quorate/quorate/sharding/state/internal/simulation"
	world "github.com/quorate/quorate/simulation"
)

// Scenarios returns all scenarios, in a slice of the caller's.
func Scenarios() []world.Scenario {
	return []world.Scenario{{
		Name: "sharding-state", About: "owners that are replaced, over a store that goes wrong", Nodes: simulation.Nodes,
		Run: func(seed uint64, nodes int, set ...func(*world.Options)) (*world.World, error) {
			w, err := simulation.Run(seed, nodes, set...)
			return w.World, err
		},
	}}
}
