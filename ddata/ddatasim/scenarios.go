// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package ddatasim

import (
	"time"

	"github.com/quorate/quorate/ddata/internal/simulation"
)

// Scenario is a named run: a cluster to which something is done, and which then has
// to recover.
type Scenario struct {
	// Name tells the scenario from all others, those of membershipsim/scenario included.
	Name string

	// About says in one line what is done to the cluster.
	About string

	// Nodes is the number of nodes for which the scenario was made. Others are possible,
	// from two nodes on.
	Nodes int

	run func(seed uint64, nodes int) (*simulation.Cluster, error)
}

// Scenarios returns all scenarios, in a slice of the caller's.
func Scenarios() []Scenario {
	known := simulation.Scenarios()
	all := make([]Scenario, 0, len(known))
	for _, s := range known {
		all = append(all, Scenario{Name: s.Name, About: s.About, Nodes: s.Nodes, run: s.Run})
	}
	return all
}

// Run runs the scenario, of [Scenarios], to its end and returns how much virtual time
// has passed in its world. The error is the violation that ended the run before, or
// what kept the cluster from recovering; the time is then that until it was found. A
// machine whose own invariant is broken panics.
func (s Scenario) Run(seed uint64, nodes int) (virtual time.Duration, err error) {
	cluster, err := s.run(seed, nodes)
	return cluster.World.Now(), err
}
