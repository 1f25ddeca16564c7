// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package shardingsim

import (
	"github.com/quorate/quorate/allocation"
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

// Strategy runs a cluster whose coordinators ask an allocation strategy, such as a plugin, for
// homes and moves while nodes leave, crash and come back, the coordinator's node among them. Every
// shard has a home within a bounded time, and the messages are checked as in every scenario; that
// the load is even in the end is not demanded. The strategy is called by the goroutine of the run,
// one call at a time, and takes no virtual time. The error is the violation.
func Strategy(seed uint64, nodes int, s allocation.Strategy) (*world.World, error) {
	c, err := simulation.Changing(seed, nodes, s)
	return c.World, err
}

// Hosted returns the numbers of the shards that a node hosts at present, as its own cells say,
// in their order. It is empty in the scenarios that have no cells.
func Hosted(n *world.Node) []uint32 { return simulation.Hosted(n) }
