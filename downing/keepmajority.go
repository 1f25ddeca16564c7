// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package downing

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/gossip"
)

// KeepMajorityName is the name of [KeepMajority] in a configuration.
const KeepMajorityName = "keep-majority"

// KeepMajority keeps those who hold a majority of the voters in every set of
// the base, and downs everybody else. It has no state; the zero value is ready
// for use.
//
//  1. Nobody is lost and all links of the side work: None.
//  2. The side has no majority: DownSide. Members that are joining or weakly up
//     go with it.
//  3. Otherwise the side is kept, and those who are lost are downed. Of each
//     broken link within the side one end is downed as well: one after the other,
//     who does not vote before who does, then who has more broken links to those
//     who are still there, then the younger, each if somebody of the rest still
//     reaches a majority of the voters there.
//  4. A link of which neither end can be spared yet is kept. When those who were
//     downed are voters no more, fewer are a majority, and the link is decided
//     about again. If there is nobody to down until then: None.
//  5. If nobody on the side reaches a majority himself: DownSide, since nobody
//     could lead or work.
type KeepMajority struct{}

var _ Immediate = KeepMajority{}

// Class says that the provider is pure and majority-only.
func (KeepMajority) Class() Class { return Class{Pure: true, MajorityOnly: true} }

// Decide is [KeepMajority.DecideNow]; it never blocks.
func (k KeepMajority) Decide(_ context.Context, v View) (Decision, error) { return k.DecideNow(v) }

// DecideNow decides for the view; the error is that of [View.Validate]. With n
// members, r complaints and k members that have a broken link it takes
// O((n + r) log (n + r) + k (k + r + n)).
func (k KeepMajority) DecideNow(v View) (Decision, error) {
	if err := v.Validate(); err != nil {
		return Decision{}, err
	}
	side := v.Side()
	lost := len(side.Lost())
	if lost == 0 && len(side.links) == 0 {
		return Decision{Reason: "keep-majority: everybody is reachable"}, nil
	}
	if !hasVoters(v.Base) {
		return Decision{Reason: "keep-majority: there are no voters yet, so no side can win"}, nil
	}
	keep := slices.Clone(side.on)
	if !v.wins(keep) {
		return v.downSide(side, "keep-majority: this side has no majority: "+v.tally(keep)), nil
	}
	left, ok := side.part(keep)
	if !ok {
		return v.downSide(side, "keep-majority: too many links within this side are broken: it has "+v.tally(keep)+", but nobody on it reaches a majority"), nil
	}
	down := v.downable(func(i int) bool { return !keep[i] })
	reason := "keep-majority: this side has " + v.tally(keep)
	if left > 0 {
		reason += fmt.Sprintf(", and no majority without either end of %d broken links, which are kept until those who are down do not count any more", left)
	}
	if len(down) == 0 {
		return Decision{Reason: reason}, nil
	}
	reason += fmt.Sprintf("; downed are %d lost and %d indirectly connected", lost, len(down)-lost)
	return Decision{Verdict: KeepSide, Down: down, Reason: reason}, nil
}

// part takes one end of each broken link out of keep where it can be spared, and
// returns the number of the links that are left. It is false, and keep as it was, if
// nobody on the side reaches a majority. It looks for the fewest who can go only one
// step ahead, since all steps would take exponential time, but it does the same on
// every node.
func (s *Side) part(keep []bool) (left int, ok bool) {
	l := brokenLinks{side: s, of: make([][]int, len(keep))}
	for _, pair := range s.links {
		l.of[pair[0]] = append(l.of[pair[0]], pair[1])
		l.of[pair[1]] = append(l.of[pair[1]], pair[0])
	}
	if !l.someoneWins(keep) {
		return 0, false
	}
	var ends []int // Who has a broken link and is not known to be needed.
	for i := range keep {
		if len(l.of[i]) > 0 {
			ends = append(ends, i)
		}
	}
	for {
		ends = slices.DeleteFunc(ends, func(i int) bool { return l.count(i, keep) == 0 })
		if len(ends) == 0 {
			break
		}
		worst := slices.MinFunc(ends, func(a, b int) int {
			return cmp.Or(cmp.Compare(s.rank(b), s.rank(a)), cmp.Compare(l.count(b, keep), l.count(a, keep)), s.byAge(b, a))
		})
		// Who cannot be spared now cannot later, when there are fewer.
		ends = slices.DeleteFunc(ends, func(i int) bool { return i == worst })
		keep[worst] = false
		keep[worst] = !l.someoneWins(keep)
	}
	for _, pair := range s.links {
		if keep[pair[0]] && keep[pair[1]] {
			left++
		}
	}
	return left, true
}

// brokenLinks holds, for each member of a view by its index, those to whom it has a
// broken link.
type brokenLinks struct {
	side *Side
	of   [][]int
}

// count returns the number of the broken links of a member to members of a set.
func (l brokenLinks) count(i int, set []bool) int {
	n := 0
	for _, j := range l.of[i] {
		if set[j] {
			n++
		}
	}
	return n
}

// someoneWins reports whether a member of the set that takes part wins with those
// of the set that it reaches. Without one nobody could prove a majority, to work or
// to take those out of the voters who are down.
func (l brokenLinks) someoneWins(set []bool) bool {
	for i, in := range set {
		if !in || !votes(l.side.view.Members[i]) {
			continue
		}
		if l.count(i, set) == 0 {
			return l.side.view.wins(set) // Nobody reaches more.
		}
		reached := slices.Clone(set)
		for _, j := range l.of[i] {
			reached[j] = false
		}
		if l.side.view.wins(reached) {
			return true
		}
	}
	return false
}

// rank is 0 for members whose vote counts and 1 for others.
func (s *Side) rank(i int) int {
	m := s.view.Members[i]
	if votes(m) && slices.ContainsFunc(s.view.Base, func(voters []gossip.NodeID) bool { return slices.Contains(voters, m.Node) }) {
		return 0
	}
	return 1
}

// byAge compares two members, the older first.
func (s *Side) byAge(a, b int) int {
	switch m, o := s.view.Members[a], s.view.Members[b]; {
	case m.OlderThan(o):
		return -1
	case o.OlderThan(m):
		return 1
	default:
		return 0
	}
}

// wins reports whether the members for which set holds true win in every set of
// the base.
func (v *View) wins(set []bool) bool {
	return v.Base.Wins(v.votersIn(set))
}

// votersIn returns what reports whether a voter is in the set and its vote counts. It
// is fastest for voters in their order.
func (v *View) votersIn(set []bool) func(gossip.NodeID) bool {
	at := finder{view: v}
	return func(id gossip.NodeID) bool {
		i := at.index(id)
		return i >= 0 && set[i] && votes(v.Members[i])
	}
}

// downable returns the ids of the members that can be downed and for which
// choose, which is given their index, returns true; sorted.
func (v *View) downable(choose func(i int) bool) []gossip.NodeID {
	var ids []gossip.NodeID
	for i, m := range v.Members {
		if CanBeDowned(m) && choose(i) {
			ids = append(ids, m.Node)
		}
	}
	return ids
}

// downSide gives the side up.
func (v *View) downSide(s *Side, reason string) Decision {
	return Decision{Verdict: DownSide, Down: v.downable(func(i int) bool { return s.on[i] }), Reason: reason}
}

// hasVoters reports whether a set of the base has a voter.
func hasVoters(b gossip.Base) bool {
	return slices.ContainsFunc(b, func(voters []gossip.NodeID) bool { return len(voters) > 0 })
}

// tally tells how many votes the set has in each set of voters, and what the
// rule of the lowest node id made of exactly half.
func (v *View) tally(set []bool) string {
	var parts []string
	in := v.votersIn(set)
	for n, voters := range v.Base {
		if len(voters) == 0 {
			continue
		}
		count := 0
		for _, id := range voters {
			if in(id) {
				count++
			}
		}
		part := fmt.Sprintf("%d of %d voters", count, len(voters))
		if n > 0 {
			part = fmt.Sprintf("%d of %d voters of before the change under way", count, len(voters))
		}
		if 2*count == len(voters) {
			lowest := slices.MinFunc(voters, gossip.NodeID.Compare)
			with := "without"
			if in(lowest) {
				with = "with"
			}
			part += ", exactly half, " + with + " the lowest, " + lowest.String()
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "; and ")
}
