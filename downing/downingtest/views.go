// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package downingtest

import (
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
)

// Views for tests: of a clean split, random ones that no cluster would bring about,
// and random splits with the views of all sides. Members are numbered, and a lower
// number is a lower id and an older member.

// newRand returns a source of randomness determined by the seed.
func newRand(seed uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, 0xd0e5))
}

// Node returns the id of node n in the views of this package; a lower n gives a lower
// id.
func Node(n int) gossip.NodeID {
	return gossip.NodeID{
		Address: gossip.Address{Host: "10.0." + strconv.Itoa(n/200) + "." + strconv.Itoa(10+n%200), Port: 7946},
		UID:     gossip.UID(0x1000 + n),
	}
}

// Members returns n members that are up, node 0 the oldest.
func Members(n int) []*gossip.Member {
	members := make([]*gossip.Member, n)
	for i := range members {
		members[i] = &gossip.Member{Node: Node(i), Status: gossip.Up, UpNumber: gossip.UpNumber(i + 1)}
	}
	sortMembers(members)
	return members
}

func sortMembers(members []*gossip.Member) {
	slices.SortFunc(members, func(a, b *gossip.Member) int { return a.Node.Compare(b.Node) })
}

// IDs returns the ids of the members.
func IDs(members []*gossip.Member) []gossip.NodeID {
	ids := make([]gossip.NodeID, len(members))
	for i, m := range members {
		ids[i] = m.Node
	}
	return ids
}

// SplitView returns the view of the members on one side of a clean partition: each of
// them, unless it is down, complains about every member on other sides, and all of
// them have seen the state. Self is the lowest member that is not down.
func SplitView(members []*gossip.Member, onSide func(gossip.NodeID) bool, base gossip.Base) downing.View {
	v := downing.View{Members: members, Base: base}
	here, there := 0, 0
	for _, m := range members {
		if onSide(m.Node) {
			here++
		} else {
			there++
		}
	}
	if here > 0 {
		v.Seen, v.Unreachable = make([]gossip.NodeID, 0, here), slices.Grow(v.Unreachable, here*there)
	}
	for _, m := range members {
		if !onSide(m.Node) || m.Status == gossip.Down {
			continue
		}
		if v.Self.IsZero() {
			v.Self = m.Node
		}
		v.Seen = append(v.Seen, m.Node)
		for _, o := range members {
			if !onSide(o.Node) {
				v.Unreachable = append(v.Unreachable, Complaint(m.Node, o.Node))
			}
		}
	}
	return v
}

// Complaint returns a record that the observer cannot reach the subject.
func Complaint(observer, subject gossip.NodeID) gossip.Record {
	return gossip.Record{Observer: observer, Subject: subject, Status: gossip.Unreachable, Version: 1}
}

// Survives reports whether the decision leaves a member on the view's side that is not
// exiting.
func Survives(v downing.View, d downing.Decision) bool {
	if d.Verdict == downing.DownSide || d.Verdict == downing.DownAll {
		return false
	}
	for _, m := range v.Side().Members() {
		if downing.CanBeDowned(m) && !slices.Contains(d.Down, m.Node) {
			return true
		}
	}
	return false
}

// RandomView draws a well-formed view of up to 9 members in all states, with
// complaints, a seen set and up to two sets of voters drawn without regard to
// each other, so that views occur that no cluster would bring about.
func RandomView(rnd *rand.Rand) downing.View {
	members := randomMembers(rnd)
	v := downing.View{Members: members, Base: randomBase(rnd, len(members))}
	for _, m := range members {
		if m.Status != gossip.Down && (v.Self.IsZero() || rnd.IntN(3) == 0) {
			v.Self = m.Node
		}
	}
	for _, m := range members {
		if m.Node == v.Self || rnd.IntN(3) > 0 {
			v.Seen = append(v.Seen, m.Node)
		}
	}
	for range rnd.IntN(2 * len(members)) {
		r := Complaint(members[rnd.IntN(len(members))].Node, members[rnd.IntN(len(members))].Node)
		if rnd.IntN(10) == 0 {
			r.Status = gossip.Terminated
		}
		v.Unreachable = append(v.Unreachable, r)
	}
	return v
}

// RandomSplit draws a cluster that has fallen into 2 or 3 sides, and returns the view
// of each side that has a member which can ask. Some links within the sides are broken
// too. While a change of the voters is under way, each side may count by the new
// voters alone or also by the old.
func RandomSplit(rnd *rand.Rand) []downing.View {
	members := randomMembers(rnd)
	base := randomBase(rnd, len(members))
	count := 2 + rnd.IntN(2)
	home := make(map[gossip.NodeID]int)
	for _, m := range members {
		home[m.Node] = rnd.IntN(count)
	}
	var views []downing.View
	for side := range count {
		known := base[:1+rnd.IntN(len(base))]
		v := SplitView(members, func(id gossip.NodeID) bool { return home[id] == side }, known)
		if v.Self.IsZero() {
			continue
		}
		for range rnd.IntN(3) {
			a, b := v.Seen[rnd.IntN(len(v.Seen))], v.Seen[rnd.IntN(len(v.Seen))]
			v.Unreachable = append(v.Unreachable, Complaint(a, b))
		}
		views = append(views, v)
	}
	return views
}

// randomMembers draws 1 to 9 members, at least one not down, most of them up.
func randomMembers(rnd *rand.Rand) []*gossip.Member {
	members := Members(1 + rnd.IntN(9))
	for i, m := range members {
		if i > 0 && rnd.IntN(3) == 0 {
			m.Status = gossip.Joining + gossip.Status(rnd.IntN(int(gossip.Down)))
		}
	}
	return members
}

// randomBase draws one or two sets of voters, each with one voter or more, of which
// some may no longer be members.
func randomBase(rnd *rand.Rand, members int) gossip.Base {
	base := make(gossip.Base, 1+rnd.IntN(2))
	for i := range base {
		for n := range members + 1 {
			if rnd.IntN(4) > 0 {
				base[i] = append(base[i], Node(n))
			}
		}
		if len(base[i]) == 0 {
			base[i] = []gossip.NodeID{Node(0)}
		}
	}
	return base
}
