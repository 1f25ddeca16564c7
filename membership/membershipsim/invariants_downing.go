// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membershipsim

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/simulation"
)

// caused checks that every member that is down in a state has a cause, by whom and why:
// the member reports it when it learns of its end.
func caused(self gossip.NodeID, was, is *gossip.State) error {
	if was != nil && shared(was.Members(), is.Members()) {
		return nil
	}
	for _, m := range is.Members() {
		if m.Status == gossip.Down && (m.Downed.By.IsZero() || m.Downed.Why == "") {
			return fmt.Errorf("at %v nobody says why %v is down: %q", self, m.Node, m.Downed)
		}
	}
	return nil
}

// canDecide checks that every node that is up can decide by the downing strategy of the cluster: when a node learns of
// a strategy, every live voter that it knows has it (docs/downing.md, "The cluster changes when all members have
// loaded the new strategy and none is missing."). One that exits has handed over what it hosted.
func (c *Invariants) canDecide(n *simulation.Node, was, is *gossip.State) error {
	r := is.Downing()
	if was != nil && was.Downing() == r && shared(was.Members(), is.Members()) || r.Gen == 0 {
		return nil
	}
	if self := is.Member(n.ID()); self == nil {
		return nil
	}
	for _, m := range is.Members() {
		if m.Status < gossip.Up || m.Status >= gossip.Exiting {
			continue
		}
		voter := c.world.Node(m.Node.Address)
		if voter == nil || voter.ID() != m.Node {
			continue
		}
		if !slices.Contains(MachineOf(voter).Strategies(), r.DowningStrategy) {
			return fmt.Errorf("I4: at %v the downing strategy is %s %s, generation %d, which %v, that is %v, has not loaded",
				n.ID(), r.Name, r.Version, r.Gen, m.Node, m.Status)
		}
	}
	return nil
}
