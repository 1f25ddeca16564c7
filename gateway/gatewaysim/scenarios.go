// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gatewaysim

import (
	"github.com/quorate/quorate/gateway/internal/simulation"
	world "github.com/quorate/quorate/simulation"
)

// Scenarios returns all scenarios, in a slice of the caller's.
func Scenarios() []world.Scenario {
	return []world.Scenario{{
		Name: "clients", About: "clients that are no members, while nodes and links go wrong", Nodes: simulation.Nodes,
		Run: func(seed uint64, nodes int, set ...func(*world.Options)) (*world.World, error) {
			w, err := simulation.Run(seed, nodes, set...)
			return w.World, err
		},
	}, {
		Name: "clients-leaves", About: "clients that are no members, while nodes leave in order", Nodes: simulation.Nodes,
		Run: func(seed uint64, nodes int, set ...func(*world.Options)) (*world.World, error) {
			w, err := simulation.RunOrderly(seed, nodes, set...)
			return w.World, err
		},
	}}
}
