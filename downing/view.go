// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package downing

import (
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
)

// What a provider is given, and the side that it computes. A view is made from a
// state, and validated by every provider. [View.Side] takes the complaints that count,
// decides which members are on the side, and collects the broken links within it.

// View is the knowledge of one node when it asks a provider. It is immutable by
// contract: its maker does not modify it afterwards.
type View struct {
	// Self is the node that asks. It may differ between equal views of one side, so a
	// pure provider does not look at it.
	Self gossip.NodeID
	// Members are all members, sorted by node id, including those that are down. Each
	// has its roles, zone, status and up-number (the age).
	Members []*gossip.Member
	// Unreachable are the complaints: which member cannot reach which. Complaints by
	// or about members that are down count for nothing.
	Unreachable []gossip.Record
	// Seen are the members that have seen the present state, with these complaints in
	// it; sorted.
	Seen []gossip.NodeID
	// Base are the sets of voters. A side must win in each of them. A voter that is
	// down, or no longer a member, is a vote that no side has. The caller leaves out
	// voters whose removal is known to all others.
	Base gossip.Base
	// Stable is how long the view has not changed. It differs from node to node, so no
	// pure provider lets it decide which side survives.
	Stable time.Duration
	// Unstable is the time since the first complaint that has not led to a decision
	// yet, without that for which the node stood still; like Stable, it differs from node
	// to node.
	Unstable time.Duration
}

// NewView returns the view that self has of the state, with the sets of voters that
// count for self at present ([gossip.Voters.Base]). The caller sets the durations. The
// view shares the members with the state.
func NewView(state *gossip.State, self gossip.NodeID, base gossip.Base) View {
	return View{
		Self:        self,
		Members:     state.Members(),
		Unreachable: state.Records(),
		Seen:        state.SeenBy(),
		Base:        base,
	}
}

// Member returns the member with the id, nil if there is none.
func (v *View) Member(id gossip.NodeID) *gossip.Member {
	if i := v.indexOf(id); i >= 0 {
		return v.Members[i]
	}
	return nil
}

// Validate returns nil if the view is well formed, otherwise a [*ContractError]:
// members must be sorted, each once, and Self must be a member that is not down.
func (v *View) Validate() error {
	for i, m := range v.Members {
		if m == nil {
			return broken(gossip.NodeID{}, "member %d of the view is nil", i)
		}
		if i > 0 && v.Members[i-1].Node.Compare(m.Node) >= 0 {
			return broken(m.Node, "is out of order among the members")
		}
	}
	switch self := v.Member(v.Self); {
	case self == nil:
		return broken(v.Self, "asks, but is no member")
	case self.Status == gossip.Down:
		return broken(v.Self, "asks, but is down itself")
	}
	return nil
}

// CanBeDowned reports whether a decision may name the member: every member may be
// downed unless it is down already, or exiting. An exiting member has handed its work
// over and is removed whether it answers or not.
func CanBeDowned(m *gossip.Member) bool {
	return m.Status >= gossip.Joining && m.Status <= gossip.Leaving
}

// votes reports whether the member takes part in decisions: members that are not up yet,
// exiting or down do not.
func votes(m *gossip.Member) bool {
	return m.Status >= gossip.Up && m.Status <= gossip.Leaving
}

// Votes reports whether the vote of a voter of [View.Base] counts, for the side on which the
// voter is: it is a member that is up or leaving, or one that is exiting and has seen the state
// of the view. The votes of all others are votes that no side has.
//
// A provider that counts votes itself counts by this method: two sides that count by different
// rules may both win, and so may a side that counts by one rule and leaves the decision to
// [KeepMajority], which counts by this one.
func (v *View) Votes(voter gossip.NodeID) bool {
	m := v.Member(voter)
	if m == nil || m.Status != gossip.Exiting {
		return m != nil && votes(m)
	}
	_, seen := slices.BinarySearchFunc(v.Seen, voter, gossip.NodeID.Compare)
	return seen
}

// counted returns what [View.Votes] says of each member of the view, by index.
//
// An exiting member is a voter of before the edit that took it out,
// by which others may still count. Nobody waits for it, and nobody asks whether it answers,
// so that nothing but its having seen the view shows on which side it is.
func (v *View) counted() []bool {
	counted, at := make([]bool, len(v.Members)), finder{view: v}
	for i, m := range v.Members {
		counted[i] = votes(m)
	}
	for _, id := range v.Seen {
		if i := at.index(id); i >= 0 && v.Members[i].Status == gossip.Exiting {
			counted[i] = true
		}
	}
	return counted
}

// Side is the set of members of a view that belong together.
type Side struct {
	view *View
	// on says for each member of the view, by index, whether it is on the side.
	on []bool
	// links are the pairs of members on the side of which one complains about the
	// other, as indices into the view's members, lower index first; sorted, each pair
	// once.
	links [][2]int
}

// Side returns the side to which the view belongs. A member is on it unless it is
// down, or a member that is not down complains about it and it has not seen the
// present state, or a member says that it will never answer again.
//
// The state that was seen has the complaints in it, so having seen it proves a
// connection that is younger than the complaint. A complaint by a member that is
// itself lost still counts: that member may have been the only one that monitored the
// other.
func (v *View) Side() *Side {
	s := &Side{view: v, on: make([]bool, len(v.Members))}
	seen, at := make([]bool, len(v.Members)), finder{view: v}
	for _, id := range v.Seen {
		if i := at.index(id); i >= 0 {
			seen[i] = true
		}
	}
	for i, m := range v.Members {
		s.on[i] = m.Status != gossip.Down
	}
	complaints := v.complaints()
	for _, c := range complaints {
		if c.terminated || !seen[c.subject] {
			s.on[c.subject] = false
		}
	}
	s.links = s.brokenLinks(complaints)
	return s
}

// Commanded returns the members that an operator has commanded to be downed, sorted: a member
// that is not down says of each that it will never answer again. A provider that may let a side
// without a majority survive is asked about them, since such a member may live, never hear of
// the command, and ask as well. [View.Side] leaves them out; they are not down yet.
func (v *View) Commanded() []*gossip.Member {
	commanded := make([]bool, len(v.Members))
	for _, c := range v.complaints() {
		commanded[c.subject] = commanded[c.subject] || c.terminated
	}
	var members []*gossip.Member
	for i, m := range v.Members {
		if commanded[i] {
			members = append(members, m)
		}
	}
	return members
}

// indexOf returns the index of a member, or -1.
func (v *View) indexOf(id gossip.NodeID) int { return (&finder{view: v}).index(id) }

// finder finds members by their ids. It tries the member behind the last result, and
// the last result again, before it searches: ids that come from a state are sorted.
type finder struct {
	view *View
	next int // Index behind the last result.
}

// index returns the index of a member, or -1.
func (f *finder) index(id gossip.NodeID) int {
	members := f.view.Members
	if f.next < len(members) && members[f.next].Node == id {
		f.next++
		return f.next - 1
	}
	if f.next > 0 && members[f.next-1].Node == id {
		return f.next - 1
	}
	i, ok := slices.BinarySearchFunc(members, id, func(m *gossip.Member, id gossip.NodeID) int {
		return m.Node.Compare(id)
	})
	if !ok {
		return -1
	}
	f.next = i + 1
	return i
}

// complaint is a complaint that counts, with members as indices.
type complaint struct {
	observer, subject int
	terminated        bool // The subject is to be counted on no more.
}

// complaints returns the complaints that count: of a member about another, neither of
// which is down.
func (v *View) complaints() []complaint {
	list := make([]complaint, 0, len(v.Unreachable))
	observers, subjects := finder{view: v}, finder{view: v}
	for i := range v.Unreachable {
		r := &v.Unreachable[i]
		observer, subject := observers.index(r.Observer), subjects.index(r.Subject)
		if observer < 0 || subject < 0 || observer == subject ||
			v.Members[observer].Status == gossip.Down || v.Members[subject].Status == gossip.Down {
			continue
		}
		list = append(list, complaint{observer, subject, r.Status == gossip.Terminated})
	}
	return list
}

// brokenLinks returns the pairs of members that stay on the side of which one complains about the other,
// each once and in order.
func (s *Side) brokenLinks(complaints []complaint) [][2]int {
	n := len(s.on)
	var pairs []int // Each the first member times n, and the second.
	for _, c := range complaints {
		if s.stays(c.observer) && s.stays(c.subject) {
			pairs = append(pairs, min(c.observer, c.subject)*n+max(c.observer, c.subject))
		}
	}
	slices.Sort(pairs)
	pairs = slices.Compact(pairs)
	links := make([][2]int, len(pairs))
	for i, pair := range pairs {
		links[i] = [2]int{pair / n, pair % n}
	}
	return links
}

// stays reports whether a member is on the side and not exiting.
func (s *Side) stays(i int) bool { return s.on[i] && s.view.Members[i].Status != gossip.Exiting }

// Has reports whether the member with the id is on the side.
func (s *Side) Has(id gossip.NodeID) bool {
	i := s.view.indexOf(id)
	return i >= 0 && s.on[i]
}

// Members returns the members on the side, sorted.
func (s *Side) Members() []*gossip.Member {
	var members []*gossip.Member
	for i, m := range s.view.Members {
		if s.on[i] {
			members = append(members, m)
		}
	}
	return members
}

// Lost returns the members that are not on the side and can be downed, sorted.
func (s *Side) Lost() []*gossip.Member {
	var members []*gossip.Member
	for i, m := range s.view.Members {
		if !s.on[i] && CanBeDowned(m) {
			members = append(members, m)
		}
	}
	return members
}

// IndirectlyConnected returns the members on the side that have a broken link to
// another member of the side; sorted.
func (s *Side) IndirectlyConnected() []*gossip.Member {
	indirect := make([]bool, len(s.on))
	for _, l := range s.links {
		indirect[l[0]], indirect[l[1]] = true, true
	}
	var members []*gossip.Member
	for i, m := range s.view.Members {
		if indirect[i] {
			members = append(members, m)
		}
	}
	return members
}
