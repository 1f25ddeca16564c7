// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membershipsim

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/simulation"
)

// Events are checked as nodes publish them ([Invariants.observed]), each step of a node by
// itself ([Invariants.Stepped]), and whole states each second ([Invariants.Second]). What
// must hold between a state and the next comes last.

func settled(n *simulation.Node, m, first *protocol.Machine, nodes int) error {
	s := m.State()
	self := s.Member(n.ID())
	switch {
	case self == nil:
		return fmt.Errorf("%v is no member", n.ID())
	case self.Status != gossip.Up:
		return fmt.Errorf("%v is %v", n.ID(), self.Status)
	case len(s.Members()) != nodes:
		return fmt.Errorf("%v has %d members, %d nodes live", n.ID(), len(s.Members()), nodes)
	case !s.Equal(first.State()):
		return fmt.Errorf("%v and %v hold different states", n.ID(), first.Self())
	case !m.Snapshot().Converged:
		_, blockers := s.Convergence(n.ID(), func(gossip.NodeID) bool { return false })
		return fmt.Errorf("%v knows no convergence: %v", n.ID(), blockers)
	case m.Snapshot().Leader != first.Snapshot().Leader || m.Snapshot().Leader.IsZero():
		return fmt.Errorf("%v has the leader %v, %v has %v", n.ID(), m.Snapshot().Leader, first.Self(), first.Snapshot().Leader)
	}
	return nil
}

// Invariants checks, from the outside, what membership promises:
//
//	I4  downing decisions are carried out on the view that they were made for,
//	    and every voter can decide by the strategy of the cluster
//	I6  a status never goes backwards, and a removed node never comes back
//	I7  an incarnation that was downed stays Down or is gone
//	I8  states are well formed
//	I25 the last event published is the state that the machine holds
//	I29 what only a leader assigns is assigned once, see [Invariants.checkAssigned]
//	closure: a state that a node makes of accepted states is accepted by all others
//	shutdown: while a member is ready for a shutdown of the whole cluster, none is on its
//	way to that or beyond leaving: all became ready at once, and exit at once
//	standing: while some host knows a node as removed, and that node was fenced,
//	the removed node hosts nothing, by its own clock. So two sides never host at
//	the same time.
//
// Each step of a node is checked at any size of the cluster: the parts of the state after
// the step that it does not share with the state before. Whole states are checked each
// second, in large clusters by turns.
//
// [Invariants.Watch] adds the checks to a world.
type Invariants struct {
	states   map[gossip.NodeID]*gossip.State
	standing map[gossip.NodeID]machine.Instant
	world    *simulation.World
	fenced   map[gossip.NodeID]gossip.NodeID // The first node by which each node was fenced.
	given    assignments
	ghosts   []*simulation.Node // Fenced nodes that have not ended.

	// Fences counts the nodes that were fenced, and Hosted the seconds, over all nodes,
	// in which a node could host. They show that the rules were exercised.
	Fences, Hosted int

	// MinoritySurvives says that the downing strategy may let a side without a majority
	// survive. When all nodes of such a side have ended, another side that has waited for
	// a decision goes on (docs/downing.md, "A side that is refused, or gets no answer, waits and hosts nothing"), and
	// assigns again what the first one had assigned. By then no
	// node that could host holds the first assignments any more, and no two assignments
	// have the same name.
	MinoritySurvives bool

	// Checked counts the states that were checked.
	Checked int
}

// Watch adds the invariants to a world.
func (c *Invariants) Watch(w *simulation.World) {
	c.states = make(map[gossip.NodeID]*gossip.State)
	c.standing = make(map[gossip.NodeID]machine.Instant)
	c.world = w
	c.fenced = make(map[gossip.NodeID]gossip.NodeID)
	c.given.init()
	w.Check(c)
	w.Observe(func(o simulation.Observation) {
		if err := c.observed(o); err != nil {
			w.Fail(err)
		}
	})
}

// Hosts reports whether a node could host at this moment, by its own clock.
func (c *Invariants) Hosts(n *simulation.Node) bool {
	until, ok := c.standing[n.ID()]
	return ok && n.Alive() && n.Now().Mono <= until
}

func (c *Invariants) observed(o simulation.Observation) error {
	n := o.Node
	switch e := o.Event.(type) {
	case simulation.Ended:
		delete(c.standing, n.ID())
		delete(c.states, n.ID())
	case machine.Decide:
		return c.decidedOnWhatIs(n, e)
	case component.Standing:
		c.standing[n.ID()] = e.Until
		return c.checkSides()
	case protocol.Refused:
		return c.refused(n, e)
	case component.Fenced:
		if _, known := c.fenced[e.Node]; !known {
			c.fenced[e.Node] = n.ID()
			c.Fences++
			if node := c.world.Node(e.Node.Address); node != nil && node.ID() == e.Node {
				c.ghosts = append(c.ghosts, node)
			}
		}
		return c.checkSides()
	}
	return nil
}

// refused checks closure: a state that a node makes of accepted states is accepted by all,
// so that among honest nodes nothing is malformed.
func (c *Invariants) refused(n *simulation.Node, e protocol.Refused) error {
	if e.Refusal != protocol.RefusedMalformed {
		return nil
	}
	return fmt.Errorf("closure: %v refuses %s of %v as malformed: %s", n.ID(), e.What, e.Peer, e.Reason)
}

// decidedOnWhatIs checks that a downing decision is only carried out while some member is
// unreachable: an answer to a view that has passed must be dropped. It looks at the state
// before the step, since the step may remove the lost members.
func (c *Invariants) decidedOnWhatIs(n *simulation.Node, d machine.Decide) error {
	before := c.states[n.ID()]
	if d.Topic == "downing" && d.Subject == n.ID().String() &&
		(d.Verdict == downing.KeepSide.String() || d.Verdict == downing.DownSide.String()) &&
		before != nil && len(before.Records()) == 0 {
		return fmt.Errorf("I4: %v decides %s while nobody is unreachable: %s", n.ID(), d.Verdict, d.Reason)
	}
	return nil
}

// checkSides looks for a node that hosts although it was fenced, while another node hosts
// that may have taken over from it.
func (c *Invariants) checkSides() error {
	c.ghosts = slices.DeleteFunc(c.ghosts, func(n *simulation.Node) bool { return !n.Alive() })
	for _, n := range c.ghosts {
		successor := c.successorOf(n)
		if successor == nil {
			continue
		}
		return fmt.Errorf("standing: %v is fenced, says %v, and hosts for another %v, while %v hosts",
			n.ID(), c.fenced[n.ID()], c.standing[n.ID()].Sub(n.Now().Mono), successor.ID())
	}
	return nil
}

// successorOf returns a node that hosts and knows the given hosting node as removed; nil
// if there is none, or if the given node does not host.
func (c *Invariants) successorOf(n *simulation.Node) *simulation.Node {
	if !c.Hosts(n) {
		return nil
	}
	for _, other := range c.world.Nodes() {
		if _, removed := MachineOf(other).State().Removed(n.ID()); removed && c.Hosts(other) {
			return other
		}
	}
	return nil
}

// Stepped compares the state of the node with what it was before the step.
func (c *Invariants) Stepped(_ *simulation.World, n *simulation.Node) error {
	m := MachineOf(n)
	if m == nil || !n.Alive() || n.Ending() {
		return nil // A node that ends publishes its end, and no state any more.
	}
	was, is := c.states[n.ID()], m.State()
	if was == is {
		return nil
	}
	c.states[n.ID()] = is
	c.Checked++
	if published := m.Snapshot().State; published != nil && !published.Equal(is) {
		return fmt.Errorf("I25: %v holds another state than it published\nholds:     %s\npublished: %s",
			n.ID(), is.Describe(), published.Describe())
	}
	if was != nil {
		if err := forwards(n.ID(), was, is); err != nil {
			return err
		}
	}
	if err := wellFormed(n.ID(), was, is); err != nil {
		return err
	}
	if err := c.canDecide(n, was, is); err != nil {
		return err
	}
	if err := caused(n.ID(), was, is); err != nil {
		return err
	}
	return c.checkAssigned(n.ID(), was, is, m.Snapshot().Converged)
}

// maxWhole is how many whole states are checked in a second. In larger clusters the nodes
// take turns.
const maxWhole = 50

// Second looks at all nodes.
func (c *Invariants) Second(w *simulation.World) error {
	nodes := w.Nodes()
	turns := (len(nodes) + maxWhole - 1) / maxWhole
	second := int(w.Now() / time.Second)
	for i, n := range nodes {
		if c.Hosts(n) {
			c.Hosted++
		}
		if s := c.states[n.ID()]; s != nil && i%turns == second%turns {
			if err := wellFormed(n.ID(), nil, s); err != nil {
				return err
			}
		}
	}
	return c.checkSides()
}

// forwards checks I6 and I7.
func forwards(self gossip.NodeID, was, is *gossip.State) error {
	if was.Cluster() != is.Cluster() && !was.Cluster().IsZero() {
		return fmt.Errorf("I32: %v was in cluster %v and is in %v", self, was.Cluster(), is.Cluster())
	}
	if shared(was.Members(), is.Members()) {
		return nil
	}
	i := 0
	old := was.Members()
	for _, m := range is.Members() {
		for i < len(old) && old[i] != m && old[i].Node.Compare(m.Node) < 0 {
			i++
		}
		if i < len(old) && old[i] == m {
			continue
		}
		if i < len(old) && old[i].Node == m.Node {
			if m.Status < old[i].Status {
				return fmt.Errorf("I6: at %v, %v was %v and is %v", self, m.Node, old[i].Status, m.Status)
			}
			if m.UpNumber < old[i].UpNumber {
				return fmt.Errorf("I29: at %v, %v had up-number %d and has %d", self, m.Node, old[i].UpNumber, m.UpNumber)
			}
			continue
		}
		if _, removed := was.Removed(m.Node); removed {
			return fmt.Errorf("I6: at %v, %v was removed and is %v", self, m.Node, m.Status)
		}
	}
	return forgotten(self, was, is)
}

// forgotten checks the other half of I6: a node that is no member any more was removed.
func forgotten(self gossip.NodeID, was, is *gossip.State) error {
	members, i := is.Members(), 0
	for _, m := range was.Members() {
		for i < len(members) && members[i] != m && members[i].Node.Compare(m.Node) < 0 {
			i++
		}
		if i < len(members) && (members[i] == m || members[i].Node == m.Node) {
			continue
		}
		if _, removed := is.Removed(m.Node); !removed {
			return fmt.Errorf("I6: at %v, %v was %v and is forgotten without a tombstone", self, m.Node, m.Status)
		}
	}
	return nil
}

// shared reports whether two lists of members are the same memory.
func shared(a, b []*gossip.Member) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// wellFormed checks I8 for the parts of is that it does not share with was, a state that
// was checked; for all of it if was is nil.
func wellFormed(self gossip.NodeID, was, is *gossip.State) error {
	same := was != nil && shared(was.Members(), is.Members())
	if !same {
		if err := wellFormedMembers(self, is); err != nil {
			return err
		}
	}
	if was == nil {
		for _, id := range is.SeenBy() {
			if is.Member(id) == nil {
				return fmt.Errorf("I8: at %v, seen by %v, which is no member", self, id)
			}
		}
	}
	if !same || !is.SharesRows(was) {
		for _, r := range is.Records() {
			if is.Member(r.Observer) == nil || is.Member(r.Subject) == nil {
				return fmt.Errorf("I8: at %v, a row of %v about %v", self, r.Observer, r.Subject)
			}
		}
	}
	members, i := is.Members(), 0
	for id := range is.Clock().All() {
		for i < len(members) && members[i].Node != id {
			i++
		}
		if i == len(members) {
			return fmt.Errorf("I8: at %v, a clock entry of %v, which is no member, or out of order", self, id)
		}
	}
	return nil
}

func wellFormedMembers(self gossip.NodeID, s *gossip.State) error {
	members, shutdown := s.Members(), s.Shutdown()
	for i, m := range members {
		if shutdown == gossip.Ready && (m.Status < gossip.Ready || m.Status == gossip.Exiting) {
			return fmt.Errorf("shutdown: at %v, %v is %v while others are ready", self, m.Node, m.Status)
		}
		if i > 0 && members[i-1].Node.Compare(m.Node) >= 0 {
			return fmt.Errorf("I8: at %v, members are not sorted", self)
		}
		if m.UpNumber == 0 && m.Status.IsUp() {
			return fmt.Errorf("I8: at %v, %v is %v without an up-number", self, m.Node, m.Status)
		}
		if m.UpNumber > s.LastUpNumber() {
			return fmt.Errorf("I8: at %v, %v has up-number %d, the last one is %d", self, m.Node, m.UpNumber, s.LastUpNumber())
		}
	}
	return nil
}

var _ simulation.Checker = (*Invariants)(nil)
