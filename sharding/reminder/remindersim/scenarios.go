// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package remindersim

import (
	"github.com/quorate/quorate/sharding/reminder/internal/simulation"
	world "github.com/quorate/quorate/simulation"
)

// Scenarios returns all scenarios, in a slice of the caller's.
func Scenarios() []world.Scenario {
	return []world.Scenario{{
		Name: "sharding-reminders", About: "reminders that move and fail, over a store that fails", Nodes: simulation.Nodes,
		Run: func(seed uint64, nodes int, set ...func(*world.Options)) (*world.World, error) {
			w, err := simulation.Run(seed, nodes, set...)
			return w.World, err
		},
	}}
}
