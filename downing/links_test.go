// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package downing_test

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/downing/downingtest"
	"github.com/quorate/quorate/gossip"
)

// pairs returns the pairs of the nodes of a side.
func (s set) pairs() [][2]gossip.NodeID {
	ids := s.ids()
	var out [][2]gossip.NodeID
	for i, a := range ids {
		for _, b := range ids[i+1:] {
			out = append(out, [2]gossip.NodeID{a, b})
		}
	}
	return out
}

// brokenLinks returns the choices of broken links to try within a side, as sets of its
// pairs: for up to five nodes every choice, for more nodes those with at most three
// broken links, or with at most two that work.
func brokenLinks(side set) []uint {
	n := len(side.pairs())
	every := n <= 10
	var out []uint
	for broken := uint(0); broken < 1<<n; broken++ {
		if count := bits.OnesCount(broken); every || count <= 3 || count >= n-2 {
			out = append(out, broken)
		}
	}
	return out
}

// linked is a side of a split, some of whose links are broken.
type linked struct {
	members []*gossip.Member
	side    set
	broken  uint
}

// view returns the view of the side. A member that has seen the state is connected in
// some way: either both ends of a broken link complain, or one of them.
func (l linked) view(base gossip.Base) downing.View {
	v := downingtest.SplitView(l.members, l.side.has, base)
	for i, pair := range l.side.pairs() {
		if l.broken&(1<<i) == 0 {
			continue
		}
		v.Unreachable = append(v.Unreachable, downingtest.Complaint(pair[0], pair[1]))
		if i%2 == 0 {
			v.Unreachable = append(v.Unreachable, downingtest.Complaint(pair[1], pair[0]))
		}
	}
	return v
}

// apply returns the side without the downed members.
func (l linked) apply(d downing.Decision) linked {
	kept := set(0)
	var members []*gossip.Member
	for n := range 16 {
		if id := downingtest.Node(n); l.side&(1<<n) != 0 && !slices.Contains(d.Down, id) {
			kept |= 1 << n
		}
	}
	for _, m := range l.members {
		if kept.has(m.Node) {
			members = append(members, m)
		}
	}
	// The pairs of fewer nodes have other numbers.
	next, before := linked{members: members, side: kept}, l.side.pairs()
	for i, pair := range kept.pairs() {
		at := slices.Index(before, pair)
		if l.broken&(1<<at) != 0 {
			next.broken |= 1 << i
		}
	}
	return next
}

// someoneWins reports whether a node of the side wins with the nodes of the side that
// it reaches.
func (l linked) someoneWins(voters set) bool {
	pairs, ids := l.side.pairs(), voters.ids()
	for n := range 16 {
		if l.side&(1<<n) == 0 {
			continue
		}
		reached := l.side
		for i, pair := range pairs {
			if l.broken&(1<<i) != 0 && pair[0] == downingtest.Node(n) {
				reached &^= 1 << (pair[1].UID - 0x1000)
			}
			if l.broken&(1<<i) != 0 && pair[1] == downingtest.Node(n) {
				reached &^= 1 << (pair[0].UID - 0x1000)
			}
		}
		if gossip.Wins(ids, reached.has) {
			return true
		}
	}
	return false
}

// settle decides, removes the downed nodes from side and voters, and repeats until
// nothing is left to decide. It returns the remaining side.
func (l linked) settle(t *testing.T, voters set) linked {
	t.Helper()
	for round := 0; ; round++ {
		base := gossip.Base{voters.ids()}
		v := l.view(base)
		d := decide(t, v)
		switch d.Verdict {
		case downing.None:
			return l
		case downing.KeepSide:
			l = l.apply(d)
		default:
			return linked{}
		}
		require.Less(t, round, 8, "side %b, links %b: it goes on for ever", l.side, l.broken)
		require.True(t, l.someoneWins(voters), "nobody can act: side %b, links %b", l.side, l.broken)
		require.True(t, base.Wins(l.side.has), "side %b is kept without a majority of %b", l.side, voters)
		voters = l.side
	}
}

// covers F12, I4, I13: every split of 3 to 7 nodes into 2 sides, with every choice of
// broken links within either side, or a great many. The side with the majority goes on
// if one of its nodes reaches a majority, and in the end all remaining nodes reach
// each other; the other side never goes on.
func TestBrokenLinksWithinTheWinningSideLeaveSomebody(t *testing.T) {
	for n := 3; n <= 7; n++ {
		t.Run(fmt.Sprintf("nodes=%d", n), func(t *testing.T) {
			all, cases := set(1)<<n-1, 0
			members := downingtest.Members(n)
			for side := set(1); side <= all; side++ {
				for _, broken := range brokenLinks(side) {
					l := linked{members, side, broken}
					wins, left := l.someoneWins(all), l.settle(t, all)
					require.Equal(t, wins, left.side != 0, "side %b, links %b", side, broken)
					require.Zero(t, left.broken, "side %b, links %b: %b is left, with links %b", side, broken, left.side, left.broken)
					cases++
				}
			}
			t.Log(cases, "sides with broken links")
		})
	}
}

// covers F12, I4: while a change of the voters is under way, sides that count by
// different sets of it, with broken links in each, never both go on.
func TestNeverTwoSurvivorsWithBrokenLinks(t *testing.T) {
	for n := 3; n <= 5; n++ {
		t.Run(fmt.Sprintf("nodes=%d", n), func(t *testing.T) {
			members := downingtest.Members(n)
			goesOn := map[question]bool{}
			survives := func(side set, voters [2]set) bool {
				key := question{side, voters[0], voters[1]}
				if known, ok := goesOn[key]; ok {
					return known
				}
				base := gossip.Base{voters[0].ids(), voters[1].ids()}
				for _, broken := range brokenLinks(side) {
					v := linked{members, side, broken}.view(base)
					goesOn[key] = goesOn[key] || downingtest.Survives(v, decide(t, v))
				}
				return goesOn[key]
			}
			for _, e := range edits(n) {
				for _, split := range splits(n) {
					for _, phase := range [][][2]set{{{e.before}, {e.after, e.before}}, {{e.after, e.before}, {e.after}}} {
						count := 0
						for _, side := range split {
							if slices.ContainsFunc(phase, func(voters [2]set) bool { return survives(side, voters) }) {
								count++
							}
						}
						require.LessOrEqual(t, count, 1, "split %v, voters %v", split, phase)
					}
				}
			}
		})
	}
}

// A node decides in one step, during which it answers no heartbeat: even with broken
// links everywhere it examines each member a few times, and not all members for each.
func TestManyBrokenLinksTakeLittleToDecide(t *testing.T) {
	const n = 300
	v := ringView(n, 9)
	allocations := testing.AllocsPerRun(1, func() {
		d, err := keepMajority.DecideNow(v)
		require.NoError(t, err)
		require.Equal(t, downing.KeepSide, d.Verdict)
	})
	require.Less(t, allocations, float64(20*n))
}
