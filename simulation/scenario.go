// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

// Scenario is a named run for programs to choose: a cluster to which something is done, and
// which then has to recover. Components give lists of theirs.
type Scenario struct {
	// Name tells the scenario from those of all components.
	Name string

	// About says in one line what is done to the cluster.
	About string

	// Nodes is the number of nodes for which the scenario was made. Others are possible,
	// from two nodes on.
	Nodes int

	// Run runs the scenario to its end and returns its world, which does nothing more; equal
	// arguments give equal runs. The functions in set change the options of the world before
	// it begins: where its trace goes, for example. The error is the violation that ended the
	// run early, or what kept the cluster from recovering. A machine whose own invariant is
	// broken panics.
	Run func(seed uint64, nodes int, set ...func(*Options)) (*World, error)
}
