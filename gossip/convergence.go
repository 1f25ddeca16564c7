// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"slices"
	"strings"
)

// Decisions that need agreement: whether every member has seen a state, and what
// blocks that; which member leads; and which member is the oldest.

// Shutdown returns how far a shutdown of the whole cluster is: Ready when a member is ready
// for it, else Preparing when a member prepares for it, and StatusNone otherwise, also when
// the last member that was ready has begun to leave.
func (s *core) Shutdown() Status {
	furthest := StatusNone
	for _, m := range s.members {
		if (m.Status == Preparing || m.Status == Ready) && m.Status > furthest {
			furthest = m.Status
		}
	}
	return furthest
}

// EndsTogether reports whether the members have begun to leave all together, as they were ready for a
// shutdown of the whole cluster: what one of them hosts is not to be taken over by another, which is about to
// leave too. It is false again when the last one has begun.
func (s *core) EndsTogether() bool {
	return s.Shutdown() == Ready && slices.ContainsFunc(s.members, func(m *Member) bool { return m.Status == Leaving || m.Status == Exiting })
}

// Blockers are the reasons for which a state has not converged. The zero Blockers has
// none.
type Blockers struct {
	NotMember   bool     // Self is not a member of the state.
	Unstamped   bool     // [State.Restamp] is due.
	Unseen      []NodeID // Members that must see the state and have not, sorted.
	Unreachable []NodeID // Members that are unreachable and neither Down nor Exiting, sorted.
}

// IsZero reports whether there is no blocker.
func (b Blockers) IsZero() bool {
	return !b.NotMember && !b.Unstamped && len(b.Unseen) == 0 && len(b.Unreachable) == 0
}

// String returns the blockers in words, "" if there is none.
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

// joinNodes lists nodes for people, at most the first ten.
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
// decision of the leader rests on what all of them know:
//
//   - Every member that is unreachable is Down or Exiting. Rows about self, and rows of
//     observers that are Exiting or Down, do not count.
//   - Every member that is Up, Preparing, Ready or Leaving has seen s. While no such member
//     with an up-number exists, every member that is Joining to Leaving must have seen it,
//     so that the first up-number is given once.
//
// Members for which confirmed returns true have told self that they have finished, and
// are not waited for, except those that lead before self where both are reachable: such a
// member may lead on its side of a cut, and what it decided there is known here only once
// it has seen s. A nil confirmed returns true for none. Zones are labels and do not matter.
func (s *State) Convergence(self NodeID, confirmed func(NodeID) bool) (bool, Blockers) {
	blockers := s.blockers(self, confirmed, false)
	return blockers.IsZero(), blockers
}

// Converged is [State.Convergence] without the reasons, and cheaper: it ends at the
// first blocker.
func (s *State) Converged(self NodeID, confirmed func(NodeID) bool) bool {
	blockers := s.blockers(self, confirmed, true)
	return blockers.IsZero()
}

// blockers returns the reasons for which s has not converged, or only the first if one
// is set.
func (s *State) blockers(self NodeID, confirmed func(NodeID) bool, one bool) Blockers {
	if s.Member(self) == nil {
		return Blockers{NotMember: true}
	}
	blockers := Blockers{Unstamped: !s.orphans.isZero()}
	me := s.Member(self)
	excused := func(m *Member) bool { return confirmed != nil && !m.leadsBefore(me) && confirmed(m.Node) }
	first := s.isFirst()
	for i, m := range s.members {
		mustSee := m.Status.leads() || first && m.Status <= Leaving
		if mustSee && !s.seen.has(i) && !excused(m) {
			blockers.Unseen = append(blockers.Unseen, m.Node)
			if one {
				return blockers // The usual blocker, and cheaper to find than unreachable members.
			}
		}
	}
	for i := range s.unreachable(isBelieved).all(len(s.members)) {
		m := s.members[i]
		if m.Status != Down && m.Status != Exiting && m.Node != self && !excused(m) {
			blockers.Unreachable = append(blockers.Unreachable, m.Node)
		}
	}
	return blockers
}

// isFirst reports whether no member that takes part has an up-number yet. A member
// that leaves before it came up does not count: otherwise it would end the rule for
// the first members by itself, while others still follow the rule.
func (s *core) isFirst() bool {
	return !slices.ContainsFunc(s.members, func(m *Member) bool { return m.Status.leads() && m.UpNumber > 0 })
}

// Leader returns the leader as self sees it: the first reachable member, in the order
// of node ids, that is Up, Preparing, Ready or Leaving; if there is none, the first
// that is WeaklyUp, then Joining, then Exiting. Self counts as reachable. The result
// is zero if self is not a member, or is Down and alone.
//
// Each side of a partition has a leader of its own; only under convergence there is a
// single one.
func (s *core) Leader(self NodeID) NodeID {
	if s.Member(self) == nil {
		return NodeID{}
	}
	var best *Member
	for _, m := range s.members {
		// Mostly one of the first members leads, so that reachability is computed
		// only for the members before it.
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

// leadsBefore reports whether m, not o, is the leader of the two where both are reachable.
func (m *Member) leadsBefore(o *Member) bool {
	if m.Status.leads() != o.Status.leads() {
		return m.Status.leads()
	}
	if rank(m.Status) != rank(o.Status) {
		return rank(m.Status) < rank(o.Status)
	}
	return m.Node.Compare(o.Node) < 0
}

// rank orders the statuses by how fit a member with that status is to lead while no
// member takes part.
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

// ByAge returns the members with a role that have been Up, the oldest first. Every
// member has the role "". Members that are Leaving, Exiting or Down are included.
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

// Oldest returns the oldest member with a role for which ok returns true, or nil. It
// calls ok only for members that have been Up; a nil ok accepts all of them.
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
