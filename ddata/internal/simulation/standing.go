// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
	world "github.com/quorate/quorate/simulation"
)

// standings are what members have of the membership beside the list of members: up to when their nodes may host. A
// member that is to be removed is not told any more, and removed when its standing has ended by any clock.
type standings struct {
	until  map[gossip.NodeID]machine.Instant // By the clock of the node.
	doomed map[gossip.NodeID]bool
}

const (
	standingLasts = 4 * time.Second
	standingOver  = 5 * time.Second // After which time it has ended, however slow a clock is.
)

func newStandings() standings {
	return standings{until: map[gossip.NodeID]machine.Instant{}, doomed: map[gossip.NodeID]bool{}}
}

// renew tells every member that it may host for a while, and does so again.
func (s *standings) renew(c *Cluster) {
	for _, at := range c.World.Nodes() {
		if n := at.ID(); c.members[n] != nil && !s.doomed[n] && !at.Frozen() {
			s.until[n] = at.Now().Mono.Add(standingLasts)
			at.Input(rosterService, component.Standing{Until: s.until[n]})
		}
	}
	c.World.After(time.Second, func() { s.renew(c) })
}

// decides reports an error if a generation is first known to a node that may not host: nobody else has decided it.
func (s *standings) decides(c *Cluster, n *world.Node) error {
	r := c.nodes[n.ID()].machine.Register(0)
	if r == nil || r.Gen == 1 || c.chosen[chosenAt{r.Lineage, r.Gen}] != nil || n.Now().Mono <= s.until[n.ID()] {
		return nil
	}
	return fmt.Errorf("D10: generation %d was decided at %s, which may not host", r.Gen, n.ID())
}
