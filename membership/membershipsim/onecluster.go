// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membershipsim

import (
	"fmt"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/simulation"
)

// OneCluster checks that of the clusters of one name at most one has standing. All nodes
// of a world have the same list of seed nodes, and so are meant to be one cluster:
// whatever happens, no two nodes of different clusters may host at the same time, by
// their own clocks. Nor may a node host under a birth below one that was hosted under
// before: a store that fences by epoch would refuse the cluster that lives.
//
// [OneCluster.Watch] adds the check to a world.
type OneCluster struct {
	// BirthsMayFall says that births are not checked, as no node has a disk (docs/operations.md, "births, and with
	// them epochs, depend on the wall clocks.").
	BirthsMayFall bool

	// Excused reports whether so many records were lost that nothing is promised any
	// more: then hosts of different clusters are not compared (docs/operations.md, "That is safe while a majority of the
	// voters still has its directories."). Nil means never.
	Excused func() bool

	// Looks counts how often hosts were compared.
	Looks int

	world    *simulation.World
	standing map[gossip.NodeID]machine.Instant
	highest  int64
}

// Watch adds the check to a world.
func (c *OneCluster) Watch(w *simulation.World) {
	c.world, c.standing = w, make(map[gossip.NodeID]machine.Instant)
	w.Check(c)
	w.Observe(func(o simulation.Observation) {
		switch e := o.Event.(type) {
		case simulation.Ended:
			delete(c.standing, o.Node.ID())
		case component.Standing:
			c.standing[o.Node.ID()] = e.Until
			w.Fail(c.look())
		}
	})
}

// Stepped does nothing: standing changes with an event, and ends with time.
func (*OneCluster) Stepped(*simulation.World, *simulation.Node) error { return nil }

// Second looks at all nodes.
func (c *OneCluster) Second(*simulation.World) error { return c.look() }

// look compares all nodes that host.
func (c *OneCluster) look() error {
	if c.Excused != nil && c.Excused() {
		return nil
	}
	c.Looks++
	var first *simulation.Node
	for _, n := range c.world.Nodes() {
		if until, ok := c.standing[n.ID()]; !ok || n.Now().Mono > until {
			continue
		}
		cluster := MachineOf(n).State().Cluster()
		if cluster.IsZero() {
			continue
		}
		if first == nil {
			first = n
		} else if other := MachineOf(first).State().Cluster(); other != cluster {
			return fmt.Errorf("one cluster: %v hosts in cluster %v while %v hosts in cluster %v", first.ID(), other, n.ID(), cluster)
		}
		born := birthOf(n)
		if born < c.highest && !c.BirthsMayFall {
			return fmt.Errorf("births: %v hosts under birth %d, after somebody has hosted under %d: epochs went back", n.ID(), born, c.highest)
		}
		c.highest = max(c.highest, born)
	}
	return nil
}

// birthOf returns the birth that the epochs of a node begin with.
func birthOf(n *simulation.Node) int64 { return MachineOf(n).State().EpochBorn() }

var _ simulation.Checker = (*OneCluster)(nil)
