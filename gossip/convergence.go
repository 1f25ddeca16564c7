// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"slices"
	"strings"
)

// Blockers is why a state has not converged. The zero Blockers blocks
// nothing.
type Blockers struct {
	NotMember   bool     // Self is not a member of the state.
	Unstamped   bool     // [State.Restamp] is due.
	Unseen      []NodeID // Members that have not seen the state, sorted.
	Unreachable []NodeID // Members that nobody has declared dead or gone yet, sorted.
}

// IsZero reports whether nothing blocks.
func (b Blockers) IsZero() bool {
	return !b.NotMember && !b.Unstamped && len(b.Unseen) == 0 && len(b.Unreachable) == 0
}

// String says in words what blocks, "" if nothing does.
func (b Blockers) String() string {
	var parts []string
	if b.NotMember {
		parts = append(parts, "this node is not a member")
	}
	if b.Unstamped {
		parts = append(parts, "edits of a removed node are not stamped again yet")
	}
	if len(b.Unseen) > 0 {
		parts = append(parts, "not seen by "+joinNodes(b.Unseen))
	}
	if len(b.Unreachable) > 0 {
		parts = append(parts, "unreachable "+joinNodes(b.Unreachable))
	}
	return strings.Join(parts, "; ")
}

// joinNodes lists nodes for people; of many it names the first few.
func joinNodes(nodes []NodeID) string {
	const shown = 10
	var b []byte
	for i, n := range nodes[:min(len(nodes), shown)] {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = n.append(b)
	}
	if len(nodes) > shown {
		b = append(b, ", ..."...)
	}
	return string(b)
}

// Convergence reports whether every member that takes part has seen s, so that a
// decision of the leader rests on what all know:
//
//   - Every member that is unreachable is Down or Exiting. Self, and what observers
//     that are Exiting or Down say, does not count.
//   - Every member that is Up, Preparing, Ready or Leaving has seen s. While there
//     is no such member that came up, every member that is Joining to Leaving must
//     have: so that the first up-number is given once.
//
// Members for which confirmed is true have told self that they have finished
// and are not waited for. A nil confirmed confirms nobody. Zones are labels: a
// state converges whatever they are.
func (s *State) Convergence(self NodeID, confirmed func(NodeID) bool) (bool, Blockers) {
	blockers := s.blockers(self, confirmed, false)
	return blockers.IsZero(), blockers
}

// Converged is [State.Convergence] without the reasons: it ends at the first.
func (s *State) Converged(self NodeID, confirmed func(NodeID) bool) bool {
	blockers := s.blockers(self, confirmed, true)
	return blockers.IsZero()
}

// blockers returns why s has not converged, one reason if that is enough.
func (s *State) blockers(self NodeID, confirmed func(NodeID) bool, one bool) Blockers {
	if s.Member(self) == nil {
		return Blockers{NotMember: true}
	}
	blockers := Blockers{Unstamped: !s.orphans.isZero()}
	excused := func(id NodeID) bool { return confirmed != nil && confirmed(id) }
	first := s.isFirst()
	for i, m := range s.members {
		mustSee := m.Status.leads() || first && m.Status <= Leaving
		if mustSee && !s.seen.has(i) && !excused(m.Node) {
			blockers.Unseen = append(blockers.Unseen, m.Node)
			if one {
				return blockers // The usual one, and cheaper to find than who is unreachable.
			}
		}
	}
	for i := range s.unreachable(isBelieved).all(len(s.members)) {
		m := s.members[i]
		if m.Status != Down && m.Status != Exiting && m.Node != self && !excused(m.Node) {
			blockers.Unreachable = append(blockers.Unreachable, m.Node)
		}
	}
	return blockers
}

// isFirst reports whether there is no member yet that has come up and takes part. A
// member that leaves before it came up does not count: it would end the rule for
// the first members by itself, while others still follow it.
func (s *core) isFirst() bool {
	return !slices.ContainsFunc(s.members, func(m *Member) bool { return m.Status.leads() && m.UpNumber > 0 })
}

// Leader returns who leads, as self sees it: the first member in the order of node
// ids that is Up, Preparing, Ready or Leaving and reachable; if there is none, the
// first of those that are WeaklyUp, then Joining, then Exiting. Self counts as
// reachable. It is zero if self is not a member, or is Down and alone.
//
// Each side of a partition has a leader of its own; only under convergence is
// it the only one.
func (s *core) Leader(self NodeID) NodeID {
	if s.Member(self) == nil {
		return NodeID{}
	}
	var best *Member
	for _, m := range s.members {
		// Mostly one of the first members leads: only of those before it is
		// it asked who reaches them.
		fitter := m.Status.leads() || best == nil || rank(m.Status) < rank(best.Status)
		if m.Status == Down || !fitter || m.Node != self && !s.Reachable(m.Node) {
			continue
		}
		if m.Status.leads() {
			return m.Node
		}
		best = m
	}
	if best == nil {
		return NodeID{}
	}
	return best.Node
}

// rank orders the statuses by how fit for leading a member is while no member
// takes part.
func rank(st Status) int {
	switch st {
	case WeaklyUp:
		return 1
	case Joining:
		return 2
	case Exiting:
		return 3
	default:
		return 0
	}
}

// ByAge returns the members with a role that have been Up, the oldest first.
// The role "" is everybody's. Members that are Leaving, Exiting or Down are
// included.
func (s *core) ByAge(role string) []*Member {
	var old []*Member
	for _, m := range s.members {
		if m.UpNumber > 0 && m.HasRole(role) {
			old = append(old, m)
		}
	}
	slices.SortFunc(old, compareAge)
	return old
}

// Oldest returns the oldest member with a role for which ok is true, nil if
// there is none. Only members that have been Up are asked about; a nil ok
// accepts all.
func (s *core) Oldest(role string, ok func(*Member) bool) *Member {
	var oldest *Member
	for _, m := range s.members {
		if m.UpNumber == 0 || !m.HasRole(role) || oldest != nil && oldest.OlderThan(m) {
			continue
		}
		if ok == nil || ok(m) {
			oldest = m
		}
	}
	return oldest
}
