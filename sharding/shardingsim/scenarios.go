// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package shardingsim

import (
	"github.com/quorate/quorate/sharding/internal/simulation"
	world "github.com/quorate/quorate/simulation"
)

// Scenarios returns all scenarios, in a slice of the caller's.
func Scenarios() []world.Scenario {
	known := simulation.Scenarios()
	all := make([]world.Scenario, 0, len(known))
	for _, s := range known {
		all = append(all, world.Scenario{Name: s.Name, About: s.About, Nodes: s.Nodes, Run: func(seed uint64, nodes int, set ...func(*world.Options)) (*world.World, error) {
			cluster, err := s.Run(seed, nodes, set...)
			return cluster.World, err
		}})
	}
	return all
}
