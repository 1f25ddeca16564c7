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
// O((n + r) log (n + r) + k (k + r + n)), but for sides on which many who reach just
// half of the voters have to be asked whether the lowest is among them.
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
	if len(s.links) == 0 {
		return 0, true // Everybody reaches the majority that all of the side are.
	}
	l := newBrokenLinks(s, keep)
	if !l.someoneWins() {
		return 0, false
	}
	var ends []int // Who has a broken link and is not known to be needed.
	for i := range keep {
		if l.broken[i] > 0 {
			ends = append(ends, i)
		}
	}
	for len(ends) > 0 {
		worst := slices.MinFunc(ends, func(a, b int) int {
			return cmp.Or(cmp.Compare(l.rank(b), l.rank(a)), cmp.Compare(l.broken[b], l.broken[a]), s.byAge(b, a))
		})
		l.drop(worst)
		if !l.someoneWins() {
			l.restore(worst)
		}
		// Who cannot be spared now cannot later, when there are fewer.
		ends = slices.DeleteFunc(ends, func(i int) bool { return i == worst || l.broken[i] == 0 })
	}
	for _, pair := range s.links {
		if keep[pair[0]] && keep[pair[1]] {
			left++
		}
	}
	return left, true
}

// brokenLinks are the broken links of a side, while members are taken out of those who
// are kept. Members are named by their index in the view.
type brokenLinks struct {
	view   *View
	keep   []bool
	of     [][]int // To whom each member has a broken link.
	broken []int   // How many of these are kept.
	sets   []votersOfSet
}

// votersOfSet is one set of voters of the base.
type votersOfSet struct {
	size   int
	counts []bool // Whether the vote of each member counts in this set.
	kept   int    // How many votes those have who are kept.
	cut    []int  // How many of these votes each member does not reach.
}

func newBrokenLinks(s *Side, keep []bool) *brokenLinks {
	n := len(keep)
	l := &brokenLinks{view: s.view, keep: keep, of: make([][]int, n), broken: make([]int, n)}
	for _, pair := range s.links {
		l.of[pair[0]] = append(l.of[pair[0]], pair[1])
		l.of[pair[1]] = append(l.of[pair[1]], pair[0])
	}
	for _, voters := range s.view.Base {
		set, at := votersOfSet{size: len(voters), counts: make([]bool, n), cut: make([]int, n)}, finder{view: s.view}
		for _, id := range voters {
			if i := at.index(id); i >= 0 {
				set.counts[i] = votes(s.view.Members[i])
			}
		}
		l.sets = append(l.sets, set)
	}
	for i, kept := range keep {
		if kept {
			l.change(i, 1)
		}
	}
	return l
}

func (l *brokenLinks) drop(i int) {
	l.keep[i] = false
	l.change(i, -1)
}

func (l *brokenLinks) restore(i int) {
	l.keep[i] = true
	l.change(i, 1)
}

// change counts what follows from that a member is kept, or is not any more.
func (l *brokenLinks) change(i, by int) {
	for _, j := range l.of[i] {
		l.broken[j] += by
	}
	for n := range l.sets {
		if set := &l.sets[n]; set.counts[i] {
			set.kept += by
			for _, j := range l.of[i] {
				set.cut[j] += by
			}
		}
	}
}

// someoneWins reports whether a member that is kept and takes part wins with those who
// are kept and whom it reaches. Without one nobody could prove a majority, to work or to
// take those out of the voters who are down.
func (l *brokenLinks) someoneWins() bool {
	for i, kept := range l.keep {
		if !kept || !votes(l.view.Members[i]) || l.reachesTooFew(i) {
			continue
		}
		reached := slices.Clone(l.keep)
		for _, j := range l.of[i] {
			reached[j] = false
		}
		if l.view.wins(reached) {
			return true
		}
	}
	return false
}

// reachesTooFew reports that a member reaches fewer than half of a set of voters, with
// which nobody wins.
func (l *brokenLinks) reachesTooFew(i int) bool {
	return slices.ContainsFunc(l.sets, func(s votersOfSet) bool { return 2*(s.kept-s.cut[i]) < s.size })
}

// rank is 0 for members whose vote counts and 1 for others.
func (l *brokenLinks) rank(i int) int {
	if slices.ContainsFunc(l.sets, func(s votersOfSet) bool { return s.counts[i] }) {
		return 0
	}
	return 1
}

// byAge compares two members, the older first.
func (s *Side) byAge(a, b int) int {
	if s.view.Members[a].OlderThan(s.view.Members[b]) {
		return -1
	}
	return 1
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
