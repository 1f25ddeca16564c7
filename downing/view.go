// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package downing

import (
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
)

// View is what one node knows when it asks a provider. It is immutable by
// contract: whoever makes it does not modify it afterwards.
type View struct {
	// Self is the node that asks. Equal views of one side differ in nothing
	// else that a pure provider may look at.
	Self gossip.NodeID
	// Members are all members, sorted by node id, also those that are down.
	// Roles, zone, status and up-number (the age) are in them.
	Members []*gossip.Member
	// Unreachable are the complaints: who cannot reach whom. Complaints of
	// members that are down, and about such, count for nothing.
	Unreachable []gossip.Record
	// Seen are the members that have seen the present state, of which these
	// complaints are a part; sorted.
	Seen []gossip.NodeID
	// Base are the sets of voters, in each of which a side must win. Voters
	// that are no members any more, or down, are votes that nobody has. The
	// caller takes those out whose removal all others know.
	Base gossip.Base
	// Stable is for how long nothing in the view has changed. It differs from
	// node to node, so no pure provider lets it decide who survives.
	Stable time.Duration
	// Unstable is the time since the first complaint that has led to no
	// decision yet; like Stable, it differs from node to node.
	Unstable time.Duration
}

// NewView returns the view that self has of the state, with the sets of voters
// that count for self at the moment ([gossip.Voters.Base]). The caller adds the
// durations. The view shares the members with the state.
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

// Validate returns nil if the view is well formed, else a [*ContractError]:
// members are sorted, each once, and the node that asks is one of them and not
// down.
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

// CanBeDowned reports whether a decision may name the member: everybody may be
// downed but those that are down already, or exiting. An exiting member has
// handed its work over and is removed whether it answers or not.
func CanBeDowned(m *gossip.Member) bool {
	return m.Status >= gossip.Joining && m.Status <= gossip.Leaving
}

// votes reports whether the member's vote counts if it is among the voters.
// Members that are not up yet, exiting or down do not vote.
func votes(m *gossip.Member) bool {
	return m.Status >= gossip.Up && m.Status <= gossip.Leaving
}

// Side is the set of members that belong together in a view.
type Side struct {
	view *View
	// on holds, for each member of the view, whether it is on the side.
	on []bool
	// links are the pairs of members on the side of which one complains about
	// the other, as indices into the view's members, each pair once, lower
	// index first, sorted.
	links [][2]int
}

// Side returns the side that the view is of. A member is on it unless it is
// down, or someone who is not down complains about it and it has not seen the
// present state, or someone says that it will never answer again.
//
// What has been seen is the state of which the complaints are a part, so having
// seen it proves a connection that is younger than the complaint. A complaint
// by a member that is itself lost still counts: it may have been the only one
// who watched.
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
	s.links = s.innerLinks(complaints)
	return s
}

// indexOf returns the index of a member, or -1.
func (v *View) indexOf(id gossip.NodeID) int { return (&finder{view: v}).index(id) }

// finder finds members by their ids, soonest the one behind that which it found last,
// and that one again: ids that come from a state come in order.
type finder struct {
	view *View
	next int // Behind the one that was found last.
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

// complaint is a complaint that counts, by the indices of the members.
type complaint struct {
	observer, subject int
	terminated        bool // The subject will never answer again.
}

// complaints returns the complaints that count: of a member about another, neither of
// whom is down.
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

// innerLinks returns the complaints between members of the side.
func (s *Side) innerLinks(complaints []complaint) [][2]int {
	var links [][2]int
	for _, c := range complaints {
		if s.stays(c.observer) && s.stays(c.subject) {
			links = append(links, [2]int{min(c.observer, c.subject), max(c.observer, c.subject)})
		}
	}
	slices.SortFunc(links, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	return slices.Compact(links)
}

// stays reports whether a member is on the side and is going to remain.
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

// IndirectlyConnected returns the members on the side that cannot reach another
// member of the side directly, or cannot be reached by it; sorted.
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
