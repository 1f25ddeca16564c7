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

// OneCluster checks that of the clusters of a name at most one has standing: all
// nodes of a world have one list of seed nodes, so that they are meant to be one
// cluster, and whatever happens no two nodes of different ones may host at the same
// time, by their own clocks. Nor may somebody host under a birth below one that was
// hosted under before: whoever fences by epoch would refuse the one that lives.
//
// It is added by [OneCluster.Watch].
type OneCluster struct {
	// BirthsMayFall says that births are not checked: a majority of the disks may
	// have been lost, or nobody has one.
	BirthsMayFall bool

	// Excused says whether so much was forgotten that nothing is promised any more: who
	// hosts in which cluster is not checked then. Nil: it never is.
	Excused func() bool

	// Looks counts how often those who host were compared.
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

// Stepped does nothing: standing moves with an event, and ends with time.
func (*OneCluster) Stepped(*simulation.World, *simulation.Node) error { return nil }

// Second looks at all nodes.
func (c *OneCluster) Second(*simulation.World) error { return c.look() }

// look compares all who host.
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
