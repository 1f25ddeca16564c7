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

// standings are up to when the nodes of members may host, of which membership tells them. A member that is to be
// removed is not told any more, and is removed when its standing has ended by any clock.
type standings struct {
	until  map[gossip.NodeID]machine.Instant // By the clock of the node.
	doomed map[gossip.NodeID]bool            // The members that are to be removed.
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
			at.Input(membershipService, component.Standing{Until: s.until[n]})
		}
	}
	c.World.After(time.Second, func() { s.renew(c) })
}

// decides returns an error if the first node that knows a generation may not host: that node has decided it.
func (s *standings) decides(c *Cluster, n *world.Node) error {
	r := c.nodes[n.ID()].machine.Register(0)
	if r == nil || r.Gen == 1 || c.registers[generationID{r.Lineage, r.Gen}] != nil || n.Now().Mono <= s.until[n.ID()] {
		return nil
	}
	return fmt.Errorf("D10: generation %d was decided at %s, which may not host", r.Gen, n.ID())
}
