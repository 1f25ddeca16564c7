// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membershipsim

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/simulation"
)

// assignments is what leaders have assigned, over all states that any node ever held.
type assignments struct {
	numbers map[numberKey]gossip.NodeID // The node that has an up-number.
	configs map[numberKey]gossip.Voters
	downing map[numberKey]gossip.DowningRegister

	// named are the voters by the full name of their generation, which no two leaders
	// assign, whichever side survives.
	named map[generationKey]gossip.Voters

	// settled are the up-numbers that a node knew to be held by all members that take
	// part.
	settled map[gossip.NodeID]gossip.UpNumber
}

// numberKey is an up-number, or the counter of a generation, of one cluster.
type numberKey struct {
	cluster gossip.ClusterID
	count   uint64
}

// generationKey is the full name of a generation of one cluster.
type generationKey struct {
	cluster    gossip.ClusterID
	generation gossip.Generation
}

func (g *assignments) init() {
	g.numbers, g.configs = make(map[numberKey]gossip.NodeID), make(map[numberKey]gossip.Voters)
	g.downing = make(map[numberKey]gossip.DowningRegister)
	g.named, g.settled = make(map[generationKey]gossip.Voters), make(map[gossip.NodeID]gossip.UpNumber)
}

// checkAssigned checks I29 for the parts of a state that the state before lacks: up-numbers, and
// generations of the voters and of the downing strategy, are assigned once over all
// states that any node ever holds, even if it is the only one; and an up-number that all
// members were known to hold never changes.
//
// A leader may die at the moment of its edit, so that one node alone has what the leader
// assigned. The next leader has removed it, and a removal outbids what the removed node
// can have assigned. Where a minority may survive, two sides may each remove the other,
// and outbid the same: then the numbers may meet, the full names may not.
func (c *Invariants) checkAssigned(self gossip.NodeID, was, is *gossip.State, converged bool) error {
	if was == nil {
		was = gossip.New(is.Cluster())
	}
	if err := c.checkUpNumbers(self, was, is, converged); err != nil {
		return err
	}
	config := is.Config()
	if config.Gen > 0 && !sameConfig(config, was.Config()) {
		if err := c.checkVoters(self, is.Cluster(), config); err != nil {
			return err
		}
	}
	register := is.Downing()
	if register.Gen == 0 || register == was.Downing() {
		return nil
	}
	key := numberKey{is.Cluster(), register.Gen}
	if known, ok := c.given.downing[key]; ok && known != register && c.held(func(s *gossip.State) bool { return s.Downing() == known }) {
		return fmt.Errorf("I29: at %v, the downing strategy of generation %d is %+v, elsewhere %+v", self, key.count, register, known)
	}
	c.given.downing[key] = register
	return nil
}

func (c *Invariants) checkUpNumbers(self gossip.NodeID, was, is *gossip.State, converged bool) error {
	if shared(was.Members(), is.Members()) && !converged {
		return nil
	}
	for _, m := range is.Members() {
		if m.UpNumber == 0 {
			continue
		}
		key := numberKey{is.Cluster(), uint64(m.UpNumber)}
		if other, ok := c.given.numbers[key]; ok && other != m.Node && c.held(func(s *gossip.State) bool {
			holder := s.Member(other)
			return holder != nil && holder.UpNumber == m.UpNumber
		}) {
			return fmt.Errorf("I29: at %v, up-number %d of %v was given to %v", self, m.UpNumber, m.Node, other)
		}
		c.given.numbers[key] = m.Node
		if !converged {
			continue
		}
		if known, ok := c.given.settled[m.Node]; ok && known != m.UpNumber {
			return fmt.Errorf("I29: at %v, %v has up-number %d, all knew it by %d", self, m.Node, m.UpNumber, known)
		}
		c.given.settled[m.Node] = m.UpNumber
	}
	return nil
}

func (c *Invariants) checkVoters(self gossip.NodeID, cluster gossip.ClusterID, config gossip.Voters) error {
	name := generationKey{cluster, config.Generation()}
	if known, ok := c.given.named[name]; ok && !sameConfig(known, config) {
		return fmt.Errorf("I29: at %v, voters %v are %v, elsewhere %v", self, name.generation, config, known)
	}
	c.given.named[name] = config
	key := numberKey{cluster, config.Gen}
	if known, ok := c.given.configs[key]; ok && !sameConfig(known, config) && c.held(func(s *gossip.State) bool {
		return s.Cluster() == cluster && sameConfig(s.Config(), known)
	}) {
		return fmt.Errorf("I29: at %v, voters of generation %d are %v, elsewhere %v", self, config.Gen, config, known)
	}
	c.given.configs[key] = config
	return nil
}

func sameConfig(a, b gossip.Voters) bool {
	return a.Generation() == b.Generation() && slices.Equal(a.Voters, b.Voters) && slices.Equal(a.Previous, b.Previous)
}

// held reports whether an assignment still counts: always where only majorities survive,
// otherwise while a live node holds it that could host.
func (c *Invariants) held(holds func(*gossip.State) bool) bool {
	return !c.MinoritySurvives || slices.ContainsFunc(c.world.Nodes(), func(n *simulation.Node) bool {
		return c.Hosts(n) && holds(MachineOf(n).State())
	})
}
