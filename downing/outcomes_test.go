// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package downing_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/downing/downingtest"
	"github.com/quorate/quorate/gossip"
)

// Every split of small clusters, for every strategy: never two sides survive, and how
// often no side does is known. First clusters in which all know all, then clusters in
// which one side knows of an edit of the leader and the other does not, then sides that
// fall apart while some of their members have not heard of a decision.

// states are the states of up to 8 members as one side knows them: 0 for a number that is
// no member.
type states [8]gossip.Status

// view is what a side knows when it is asked.
type view struct {
	side   set
	states states
}

// asker asks a strategy about sides, each question once.
type asker struct {
	t     testing.TB
	by    downing.Immediate
	known map[view]downing.Decision
}

func newAsker(t testing.TB, by downing.Immediate) *asker {
	t.Helper()
	return &asker{t: t, by: by, known: map[view]downing.Decision{}}
}

// decide returns the decision of a side. A side on which nobody can ask, or that lacks
// nobody, is not asked.
func (a *asker) decide(of view) downing.Decision {
	d, ok := a.known[of]
	if ok {
		return d
	}
	all := slices.Index(of.states[:], 0) // No more than 6 are used.
	var members []*gossip.Member
	var voters []gossip.NodeID
	for i, m := range withCore(downingtest.Members(all)) {
		if m.Status = of.states[i]; m.Status == gossip.Joining {
			m.UpNumber = 0
		}
		if members = append(members, m); m.Status >= gossip.Up {
			voters = append(voters, m.Node)
		}
	}
	v := downingtest.SplitView(members, of.side.has, gossip.Base{voters})
	if !v.Self.IsZero() && len(v.Unreachable) > 0 {
		var err error
		d, err = a.by.DecideNow(v)
		require.NoError(a.t, err)
		require.NoError(a.t, downing.Check(v, a.by.Class(), d))
	}
	a.known[of] = d
	return d
}

// keeps reports whether a side is kept that knows the members in these states.
func (a *asker) keeps(side set, known states) bool {
	return a.decide(view{side, known}).Verdict == downing.KeepSide
}

// goesOn reports whether a side is kept, or has nobody left to decide about.
func (a *asker) goesOn(side set, known states) bool {
	for i, s := range known {
		if s != 0 && s != gossip.Down && side&(1<<i) == 0 {
			return a.keeps(side, known)
		}
	}
	return side != 0
}

// allUp are the states of n members that are up.
func allUp(n int) (s states) {
	for i := range n {
		s[i] = gossip.Up
	}
	return s
}

// covers I4, F9: every split of 2 to 6 nodes into 2 and 3 sides. For each strategy the
// number of splits that no side survives is known.
func TestEverySplitOfASettledCluster(t *testing.T) {
	nobody := map[string][2]int{ // Of the 57 splits into 2 sides and of the 122 into 3.
		"keep-majority":                    {0, 64},
		"static-quorum":                    {14, 97},
		"static-quorum, too small":         {0, 64},
		"static-quorum, role":              {8, 70},
		"static-quorum, role, too small":   {56, 122},
		"keep-oldest":                      {0, 0},
		"keep-oldest, down-if-alone":       {0, 26},
		"keep-oldest, down-if-alone, role": {0, 33},
		"manual":                           {57, 122},
		"down-all":                         {57, 122},
	}
	for _, s := range strategies() {
		t.Run(s.name, func(t *testing.T) {
			var cases, none [2]int
			for n := 2; n <= 6; n++ {
				a := newAsker(t, s.make(n))
				for _, split := range splits(n) {
					survivors := 0
					for _, side := range split {
						if a.keeps(side, allUp(n)) {
							survivors++
						}
					}
					require.LessOrEqual(t, survivors, 1, "%d nodes, split %v", n, split)
					cases[len(split)-2]++
					if survivors == 0 {
						none[len(split)-2]++
					}
				}
			}
			t.Logf("nobody survives %d of %d splits into 2 sides and %d of %d into 3", none[0], cases[0], none[1], cases[1])
			require.Equal(t, nobody[s.name], none)
		})
	}
}

// each calls do with every choice of one option for each of n numbers.
func each(n int, options func(i int) []gossip.Status, do func(s states)) {
	var chosen states
	var choose func(i int)
	choose = func(i int) {
		if i == n {
			do(chosen)
			return
		}
		for _, o := range options(i) {
			chosen[i] = o
			choose(i + 1)
		}
	}
	choose(0)
}

// joins is 1 for a member that joins, and 0 for others.
func joins(s gossip.Status) int {
	if s == gossip.Joining {
		return 1
	}
	return 0
}

// edited returns the states that the leader may make of one that all have seen.
func edited(s gossip.Status) []gossip.Status {
	switch s {
	case gossip.Joining:
		return []gossip.Status{gossip.Joining, gossip.Up}
	case gossip.Leaving:
		return []gossip.Status{gossip.Leaving, gossip.Exiting}
	default:
		return []gossip.Status{s}
	}
}

// orLeaves returns the states, and each in which one more member is leaving: a member may
// say so at any time.
func orLeaves(n int, s states) []states {
	all := []states{s}
	for i := range n {
		if s[i] == gossip.Up {
			next := s
			next[i] = gossip.Leaving
			all = append(all, next)
		}
	}
	return all
}

// covers I4, F14: what one side knows of an edit of the leader, and the other does not.
// Members that join have become up, and members that leave are exiting; and on either side
// one more member may have said that it leaves. The strategies that need no majority have
// no common set of voters that would make them safe.
func TestNeverTwoSurvivorsWhileOneSideKnowsMore(t *testing.T) {
	for _, s := range strategies() {
		if s.make(5).Class().MajorityOnly {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			cases, kept := 0, 0
			for n := 2; n <= 5; n++ {
				a := newAsker(t, s.make(n))
				each(n, func(int) []gossip.Status { return []gossip.Status{gossip.Joining, gossip.Up, gossip.Leaving} }, func(before states) {
					if !slices.IsSortedFunc(before[:n], func(a, b gossip.Status) int { return joins(a) - joins(b) }) {
						return // Who joins is younger than who is up.
					}
					each(n, func(i int) []gossip.Status { return edited(before[i]) }, func(after states) {
						for side := set(1); side < 1<<n-1; side++ {
							knows, other := firstKept(a, side, orLeaves(n, after)), firstKept(a, (1<<n-1)&^side, orLeaves(n, before))
							if knows >= 0 && other >= 0 {
								require.Failf(t, "two sides survive", "%d nodes, side %b knows %v, the other %v", n, side, orLeaves(n, after)[knows], orLeaves(n, before)[other])
							}
							cases++
							if knows >= 0 || other >= 0 {
								kept++
							}
						}
					})
				})
			}
			t.Logf("%d cases, %d with a survivor", cases, kept)
			require.Positive(t, kept)
		})
	}
}

// firstKept returns the first of the states with which a side is kept, or -1.
func firstKept(a *asker, side set, knows []states) int {
	return slices.IndexFunc(knows, func(s states) bool { return a.keeps(side, s) })
}

// covers I4, F12: a side is kept, and before all of it have heard of the decision the
// nodes fall into two sides anew, in any way. Those who have heard know who is down; where
// all who are kept have heard, the downed may be removed. A side that decides again, and
// one of those who have not heard, are never both kept.
func TestNeverTwoSurvivorsAfterADecisionThatSomeHaveNotHeard(t *testing.T) {
	for _, s := range strategies() {
		t.Run(s.name, func(t *testing.T) {
			cases := 0
			for n := 2; n <= 5; n++ {
				a, all := newAsker(t, s.make(n)), set(1)<<n-1
				for side := set(1); side < all; side++ {
					d := a.decide(view{side, allUp(n)})
					if d.Verdict != downing.KeepSide {
						continue
					}
					downed := allUp(n)
					for i := range n {
						if slices.Contains(d.Down, downingtest.Node(i)) {
							downed[i] = gossip.Down
						}
					}
					for heard := side; heard > 0; heard = (heard - 1) & side {
						for one := set(1); one < all; one++ {
							requireOneAgain(t, a, n, downed, heard, one)
							cases++
						}
					}
				}
			}
			t.Log(cases, "cases")
		})
	}
}

// requireOneAgain requires that at most one of two sides is kept when those who have heard
// know who is down. Who is down ends as soon as somebody on its side knows.
func requireOneAgain(t *testing.T, a *asker, n int, downed states, heard, one set) {
	t.Helper()
	survivors := 0
	for _, side := range []set{one, (1<<n - 1) &^ one} {
		known := allUp(n)
		if side&heard != 0 {
			known = downed
		}
		for i := range n {
			if known[i] == gossip.Down {
				side &^= 1 << i
			}
		}
		if a.goesOn(side, known) {
			survivors++
		}
	}
	require.LessOrEqual(t, survivors, 1, "%d nodes, downed %v, heard %b, sides %b", n, downed, heard, one)
}
