// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"slices"
	"time"
)

// Terms are the facts of a node, besides its state, against which it checks news from
// other nodes.
type Terms struct {
	// Now is the node's wall time.
	Now time.Time

	// Base are the sets of voters that count for the node at present. Empty: any
	// voters are accepted, as by a joining node, which knows none.
	Base Base

	// Votes reports whether a member votes, by its status and its roles. Nil: every
	// member that takes part votes.
	Votes func(*Member) bool

	// Loaded reports whether the node has loaded a downing strategy. Nil: any strategy
	// is accepted, as by a node that is not up or leaves, which no leader asks for its
	// strategies.
	Loaded func(StrategyID) bool
}

func (t Terms) votes(m *Member) bool {
	if t.Votes != nil {
		return t.Votes(m)
	}
	return m.Status.leads() && m.UpNumber > 0
}

// acceptMembers checks up-numbers, which a delta may hold without the last one given,
// and that each member that is gone has left a tombstone. A tombstone from before
// PrunedBefore, which no honest node makes, would remove the member and be forgotten
// at once; a node that did not get it would bring the member back.
func (s *core) acceptMembers(m *core) error {
	if sameSlice(s.members, m.members) {
		return nil
	}
	for _, member := range m.members {
		if member.UpNumber > m.lastUp.value {
			return invalid(FaultUpNumber, member.Node, "up-number %d above the last one, %d", member.UpNumber, m.lastUp.value)
		}
	}
	for _, member := range s.members {
		if !m.knew(member.Node) {
			return invalid(FaultTime, member.Node, "removed without a trace, before %d", int64(m.pruned.value))
		}
	}
	return nil
}

// acceptVoters checks voters that s did not have: a change of the voters keeps every
// voter that still votes and stays. Which members vote follows from m, the result: a
// voter that was downed or leaves according to the same news need not be kept.
//
// It is enough to keep the voters of one set of the base. While the last change is not
// known to have converged, another change that was made without knowing it, from the
// set before, may be the one that lasts.
func (s *core) acceptVoters(m *core, t Terms) error {
	is, was := m.config.orZero(), s.config.orZero()
	if is.Gen == 0 || len(t.Base) == 0 || m.config.compare(s.config) == 0 {
		return nil
	}
	for _, set := range is.sets() {
		for _, v := range set.voters {
			if !m.knew(v) && !was.names(v) {
				return invalid(FaultVoters, v, "a voter of generation %d whom nobody knows", is.Gen)
			}
		}
	}
	if s.lastUp.value == 0 {
		return nil // The first voters of a cluster become up in several edits.
	}
	for i, voters := range [][]NodeID{is.Voters, is.Previous} {
		kept := func(set []NodeID) bool { return m.keeps(voters, set, t) }
		same := i > 0 && len(voters) == 0 // The previous voters are the same.
		if !same && !slices.ContainsFunc(t.Base, kept) {
			return invalid(FaultVoters, NodeID{}, "generation %d has %d voters, not all of those who vote and stay", is.Gen, len(voters))
		}
	}
	return nil
}

// knew reports whether a node is or was a member.
func (s *core) knew(id NodeID) bool {
	_, removed := findTombstone(s.tombs, id)
	return removed || s.Member(id) != nil
}

// names reports whether a node is among the present or the previous voters of c.
func (c *Voters) names(id NodeID) bool {
	for _, set := range c.sets() {
		if _, ok := slices.BinarySearchFunc(set.voters, id, NodeID.Compare); ok {
			return true
		}
	}
	return false
}

// keeps reports whether voters hold every node of set that still votes. Every node and
// not a majority: when some of them leave, all of the others are still voters, while a
// majority need not be.
func (s *core) keeps(voters, set []NodeID, t Terms) bool {
	return !slices.ContainsFunc(set, func(v NodeID) bool {
		_, kept := slices.BinarySearchFunc(voters, v, NodeID.Compare)
		if kept {
			return false
		}
		member := s.Member(v)
		return member != nil && t.votes(member)
	})
}

// acceptDowning checks a downing strategy that s did not have. It checks what this
// node has loaded, not the members' records of it: a member may withdraw a strategy at
// the moment in which the leader chooses it, and keeps it loaded nevertheless.
func (s *core) acceptDowning(m *core, t Terms) error {
	r := m.downing.orZero()
	if t.Loaded == nil || r.Gen == 0 || r.DowningStrategy == s.downing.orZero().DowningStrategy || t.Loaded(r.ID()) {
		return nil
	}
	return invalid(FaultStrategy, NodeID{}, "the downing strategy %q of generation %d is not loaded here", r.Name, r.Gen)
}
