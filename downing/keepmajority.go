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

// Keep-majority. DecideNow compares the votes of the side, then has part choose which
// ends of broken links within the side go; brokenLinks counts votes and broken links
// meanwhile. Below are the questions about votes, which other strategies and Check
// share.

// KeepMajorityName is the name of [KeepMajority] in a configuration.
const KeepMajorityName = "keep-majority"

// KeepMajority keeps the side that holds a majority of the voters in every set of the
// base, and downs all other members. It has no state; the zero value is ready for use.
//
//  1. No member is lost and all links of the side work: None.
//  2. The side has no majority: DownSide. Members that are joining or weakly up
//     go with it.
//  3. Otherwise the side is kept, and lost members are downed. Of each broken link
//     within the side one end is downed as well, one end after the other: members
//     that do not vote before voters, then the member with more broken links to
//     those still there, then the younger; each only if some remaining member
//     still reaches a majority of the voters.
//  4. A link of which neither end can be spared is kept for now. When the downed
//     members are no longer voters, a majority is smaller, and the link is decided
//     on again. If there is no member to down until then: None.
//  5. If no member of the side reaches a majority by itself: DownSide, since no
//     member could lead or work.
type KeepMajority struct{}

var _ Immediate = KeepMajority{}

// Class says that the provider is pure and majority-only.
func (KeepMajority) Class() Class { return Class{Pure: true, MajorityOnly: true} }

// Decide is [KeepMajority.DecideNow]; it never blocks.
func (k KeepMajority) Decide(_ context.Context, v View) (Decision, error) { return k.DecideNow(v) }

// DecideNow decides for the view; the error is that of [View.Validate]. With n
// members, r complaints and k members that have a broken link it takes O((n + r) log
// (n + r) + k (k + r + n)), except for sides where many members reach exactly half of
// the voters, for each of which the rule of the lowest id must be evaluated.
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

// part removes one end of each broken link from keep where it can be spared, and
// returns the number of remaining broken links. It returns false, and leaves keep
// unchanged, if no member of the side reaches a majority. It looks only one step ahead
// for the fewest members to remove, since looking at all steps would take exponential
// time, but it does the same on every node.
func (s *Side) part(keep []bool) (left int, ok bool) {
	if len(s.links) == 0 {
		return 0, true // Every member reaches the whole side, which is a majority.
	}
	l := newBrokenLinks(s, keep)
	if !l.someoneWins() {
		return 0, false
	}
	var ends []int // Members that have a broken link and are not known to be needed.
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
		// A member that cannot be spared now cannot be later, when there are fewer.
		ends = slices.DeleteFunc(ends, func(i int) bool { return i == worst || l.broken[i] == 0 })
	}
	for _, pair := range s.links {
		if keep[pair[0]] && keep[pair[1]] {
			left++
		}
	}
	return left, true
}

// brokenLinks counts the broken links and votes of a side while members are removed
// from the kept ones. Members are given by their index in the view.
type brokenLinks struct {
	view   *View
	keep   []bool
	of     [][]int // The members to which each member has a broken link.
	broken []int   // How many of those are kept.
	sets   []votersOfSet
}

// votersOfSet is one set of voters of the base.
type votersOfSet struct {
	size   int
	counts []bool // Whether the vote of each member counts in this set.
	kept   int    // How many votes the kept members have.
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

// change adjusts the counts when a member is kept (by 1) or dropped (by -1).
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

// someoneWins reports whether some kept member that is up or leaving wins with the
// kept members that it reaches. Without such a member none could prove a majority, to
// work or to take the downed members out of the voters.
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

// reachesTooFew reports whether a member reaches fewer than half of a set of voters,
// so that it cannot win.
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

// wins reports whether the members in set win in every set of voters of the base.
func (v *View) wins(set []bool) bool {
	return v.Base.Wins(v.votersIn(set))
}

// votersIn returns a function that reports whether a voter is in the set and its vote
// counts. The function is fastest when it is called for voters in their order.
func (v *View) votersIn(set []bool) func(gossip.NodeID) bool {
	at := finder{view: v}
	return func(id gossip.NodeID) bool {
		i := at.index(id)
		return i >= 0 && set[i] && votes(v.Members[i])
	}
}

// downable returns the sorted ids of the members that can be downed and for whose
// index choose returns true.
func (v *View) downable(choose func(i int) bool) []gossip.NodeID {
	var ids []gossip.NodeID
	for i, m := range v.Members {
		if CanBeDowned(m) && choose(i) {
			ids = append(ids, m.Node)
		}
	}
	return ids
}

// downSide returns the decision to give up the side.
func (v *View) downSide(s *Side, reason string) Decision {
	return Decision{Verdict: DownSide, Down: v.downable(func(i int) bool { return s.on[i] }), Reason: reason}
}

// hasVoters reports whether a set of the base has a voter.
func hasVoters(b gossip.Base) bool {
	return slices.ContainsFunc(b, func(voters []gossip.NodeID) bool { return len(voters) > 0 })
}

// tally describes how many votes the set has in each set of voters and, for exactly
// half, whether the lowest node id is among them.
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
