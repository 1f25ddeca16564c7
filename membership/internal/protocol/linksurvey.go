// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"

	"github.com/quorate/quorate/gossip"
)

// linkSurvey is the part of a [survey] about broken links between members that have all seen the
// state.
//
// While links are broken nothing converges, so that no member becomes up or leaves. One
// thing must go on all the same: the removal of members that are down, and of their
// votes. The strategy keeps links that a majority needs only because the votes of the
// lost members still count, and decides about these links again when they do not.
type linkSurvey struct {
	// seen says that every member that takes part has seen the state. This proves, as
	// convergence does, that all know the last change of the voters.
	seen bool

	// hub is the member that removes the members that are down, if there are any.
	hub gossip.NodeID
}

// surveyLinks looks at the links of a state after its convergence was determined.
func (s *surveyBuilder) surveyLinks() {
	s.surveyed.links = linkSurvey{seen: s.surveyed.converged}
	if s.surveyed.converged || len(s.state.Unreachable()) == 0 {
		return
	}
	_, blockers := s.state.Convergence(s.self, s.isExcused)
	if blockers.NotMember || blockers.Unstamped || len(blockers.Unseen) > 0 {
		return
	}
	s.surveyed.links = linkSurvey{seen: true, hub: hubOf(s.state)}
}

// hubOf returns the member that removes the members that are down from a state with
// broken links that all have seen: the first one that itself reaches a winning set of the
// voters. There is none if no member does, or if the leader sees convergence.
//
// The hub follows from the state alone, not from the node that asks. So of two edits by
// hubs one is made in knowledge of the other, as under convergence: a node that acts on a
// state has seen what was done on the state before, and on one state only one node acts.
// The leader alone sees convergence in its own way: it does not look at whether others
// reach it. And it does not wait for a leaving member whose confirmation it has and the
// others have not: so there is no hub while a leaving member cannot be reached.
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

// shrink removes the members that are down while links between the others are broken.
func (l *leader) shrink() {
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
	l.carryOut(p)
}
