// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package deliverysim

import (
	"github.com/quorate/quorate/sharding/delivery/internal/simulation"
	world "github.com/quorate/quorate/simulation"
)

// Scenarios returns all scenarios, in a slice of the caller's.
func Scenarios() []world.Scenario {
	return []world.Scenario{
		{
			Name: "sharding-delivery", About: "producers and entities begin anew, the network goes wrong", Nodes: simulation.Entities,
			Run: func(seed uint64, nodes int, set ...func(*world.Options)) (*world.World, error) {
				w, err := simulation.Run(seed, nodes, set...)
				return w.World, err
			},
		},
		{
			Name: "sharding-outbox", About: "producers with queues in files, on disks that fail", Nodes: simulation.Entities,
			Run: func(seed uint64, nodes int, set ...func(*world.Options)) (*world.World, error) {
				w, err := simulation.RunFiles(seed, nodes, set...)
				return w.World, err
			},
		},
	}
}
