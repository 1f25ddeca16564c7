// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"

	"github.com/quorate/quorate/gossip"
)

// linkage is what follows from the links that are broken between members that all
// have seen the state.
//
// While there are such links nothing converges, so that nobody becomes up or leaves.
// One thing has to go on all the same: to remove those who are down, and to take them
// out of the voters. The strategy keeps links that a majority needs only because the
// votes of the lost still count, and decides about them again when they do not.
type linkage struct {
	// seen says that every member that takes part has seen the state. It proves, as
	// convergence does, that all know the last change of the voters.
	seen bool

	// hub is the member that removes those who are down, if anybody has to.
	hub gossip.NodeID
}

// surveyLinks looks at the links of a state of which it was found whether it has
// converged.
func (s *surveyor) surveyLinks() {
	s.surveyed.links = linkage{seen: s.surveyed.converged}
	if s.surveyed.converged || len(s.state.Unreachable()) == 0 {
		return
	}
	_, blockers := s.state.Convergence(s.self, s.isExcused)
	if blockers.NotMember || blockers.Unstamped || len(blockers.Unseen) > 0 {
		return
	}
	s.surveyed.links = linkage{seen: true, hub: hubOf(s.state)}
}

// hubOf returns the member that removes those who are down from a state with broken
// links which all have seen: the first that reaches a winning set of the voters
// itself; none if there is none, or if the member that leads sees convergence.
//
// It follows from the state alone, not from who asks. So of two edits by such members
// one is made in knowledge of the other, as under convergence: whoever acts on a state
// has seen what was done on the one before, and on one state only one acts. One member
// has a view of its own of convergence: it does not look at whether others reach it. And
// the leader does not wait for a leaving member that has confirmed to it, of which the
// others do not know: so none acts while one that leaves cannot be reached.
func hubOf(s *gossip.State) gossip.NodeID {
	taking := func(n gossip.NodeID) bool {
		member := s.Member(n)
		return member != nil && member.Status >= gossip.Up && member.Status <= gossip.Leaving
	}
	members := slices.DeleteFunc(slices.Clone(s.Members()), func(m *gossip.Member) bool { return !taking(m.Node) })
	cut := slices.DeleteFunc(s.Unreachable(), func(n gossip.NodeID) bool { return !taking(n) })
	leaving := func(n gossip.NodeID) bool { return s.Member(n).Status == gossip.Leaving }
	if len(cut) == 0 || len(cut) == 1 && cut[0] == members[0].Node || slices.ContainsFunc(cut, leaving) {
		return gossip.NodeID{}
	}
	for _, member := range members {
		reaches := func(n gossip.NodeID) bool {
			return n == member.Node || taking(n) && s.ReachableFrom(member.Node, n) && s.ReachableFrom(n, member.Node)
		}
		if gossip.Wins(s.Config().Voters, reaches) {
			return member.Node
		}
	}
	return gossip.NodeID{}
}

// shrink removes those who are down while links between the others are broken.
func (l *leading) shrink() {
	if l.surveyed.links.hub != l.self {
		return
	}
	var p leaderPlan
	for _, member := range l.state.Members() {
		if member.Status == gossip.Down {
			p.remove = append(p.remove, member)
		}
	}
	if len(p.remove) == 0 {
		return
	}
	p.voters = l.votersAfter(p)
	l.perform(p)
}
