// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package downing_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/downing/downingtest"
	"github.com/quorate/quorate/gossip"
)

// set is a set of nodes, by number.
type set uint

func (s set) has(id gossip.NodeID) bool { return s&(1<<(id.UID-0x1000)) != 0 }

func (s set) ids() []gossip.NodeID {
	var ids []gossip.NodeID
	for n := range 16 {
		if s&(1<<n) != 0 {
			ids = append(ids, downingtest.Node(n))
		}
	}
	return ids
}

// splits returns every way to split n nodes into 2 and into 3 sides that are not
// empty.
func splits(n int) [][]set {
	all := set(1)<<n - 1
	var out [][]set
	for a := set(1); a < all; a++ {
		// Node 0 is on the first side and the lowest other node on the second,
		// so that each split comes once.
		rest := all &^ a
		if a&1 == 0 {
			continue
		}
		out = append(out, []set{a, rest})
		for b := (rest - 1) & rest; b > 0; b = (b - 1) & rest {
			if b&(rest&-rest) != 0 {
				out = append(out, []set{a, b, rest &^ b})
			}
		}
	}
	return out
}

// edit is a change of the voters that may be under way.
type edit struct{ before, after set }

// edits returns the changes of voters to try: for few nodes every pair of sets, for
// more nodes the changes that a cluster makes: none, one node added, one removed, one
// replaced by another.
func edits(n int) []edit {
	all := set(1)<<n - 1
	var out []edit
	if n <= 4 {
		for before := set(1); before <= all; before++ {
			for after := set(1); after <= all; after++ {
				out = append(out, edit{before, after})
			}
		}
		return out
	}
	out = append(out, edit{all, all})
	for x := range n {
		out = append(out, edit{all &^ (1 << x), all}, edit{all, all &^ (1 << x)})
		for y := range n {
			if x != y {
				out = append(out, edit{all &^ (1 << x), all &^ (1 << y)})
			}
		}
	}
	return out
}

// judge tells whether sides survive, by asking keep-majority once for each side
// and base.
type judge struct {
	t       testing.TB
	members []*gossip.Member
	down    set
	known   map[question]bool
}

// question is a side and the one or two sets of voters that it counts by.
type question struct{ side, voters, previous set }

func newJudge(t *testing.T, n int, down set) *judge {
	t.Helper()
	members := downingtest.Members(n)
	for _, m := range members {
		if down.has(m.Node) {
			m.Status = gossip.Down
		}
	}
	return &judge{t: t, members: members, down: down, known: map[question]bool{}}
}

// survives reports whether the side goes on when it counts by these voters and, unless
// that set is empty, by the previous ones too. Every node of the side decides, and all
// must decide alike; in clusters of more than 5 nodes only one decides, to save time.
func (j *judge) survives(side set, voters, previous set) bool {
	if side&^j.down == 0 {
		return false
	}
	key := question{side, voters, previous}
	if known, ok := j.known[key]; ok {
		return known
	}
	base := gossip.Base{voters.ids(), previous.ids()}
	v := downingtest.SplitView(j.members, side.has, base)
	var decision downing.Decision
	asked := (side &^ j.down).ids()
	if len(j.members) > 5 {
		asked = asked[:1]
	}
	for i, id := range asked {
		v.Self = id
		d := decide(j.t, v)
		if i > 0 && (d.Verdict != decision.Verdict || d.Reason != decision.Reason || !slices.Equal(d.Down, decision.Down)) {
			j.t.Fatalf("%v decides %v, others %v", id, d, decision)
		}
		decision = d
	}
	j.known[key] = downingtest.Survives(v, decision)
	return j.known[key]
}

// mostSurvivors returns how many sides can survive at most when each counts by the
// worst of the bases.
func (j *judge) mostSurvivors(split []set, bases ...[2]set) int {
	n := 0
	for _, side := range split {
		for _, voters := range bases {
			if j.survives(side, voters[0], voters[1]) {
				n++
				break
			}
		}
	}
	return n
}

// covers I4, F10: every split of 3 to 7 nodes into 2 and 3 sides, with every
// mixture of knowledge about a change of voters under way. Before the change
// has converged, nodes count by the old voters or by both; once some know that
// it has, by both or by the new ones.
func TestNeverTwoSurvivors(t *testing.T) {
	for n := 3; n <= 7; n++ {
		t.Run(fmt.Sprintf("nodes=%d", n), func(t *testing.T) {
			j := newJudge(t, n, 0)
			cases := 0
			for _, e := range edits(n) {
				for _, split := range splits(n) {
					spreading := j.mostSurvivors(split, [2]set{e.before}, [2]set{e.after, e.before})
					converged := j.mostSurvivors(split, [2]set{e.after, e.before}, [2]set{e.after})
					if max(spreading, converged) > 1 {
						t.Fatalf("split %v with edit %v: %d, %d survivors", split, e, spreading, converged)
					}
					cases++
				}
			}
			t.Logf("%d cases, %d decisions", cases, len(j.known))
		})
	}
}

// The same while the downing of some nodes, which a majority decided, is known on
// every side, on one, or on none: it takes votes away and gives none.
func TestNeverTwoSurvivorsWithDowns(t *testing.T) {
	for n := 3; n <= 6; n++ {
		t.Run(fmt.Sprintf("nodes=%d", n), func(t *testing.T) {
			all := set(1)<<n - 1
			nobody := newJudge(t, n, 0)
			for x := range n {
				for y := x; y < n; y++ {
					down := set(1)<<x | set(1)<<y
					if !gossip.Wins(all.ids(), (all &^ down).has) {
						continue
					}
					some := newJudge(t, n, down)
					for _, split := range splits(n) {
						survivors := 0
						for _, side := range split {
							if nobody.survives(side, all, 0) || some.survives(side, all, 0) {
								survivors++
							}
						}
						require.LessOrEqual(t, survivors, 1, "split %v, down %v", split, down)
					}
				}
			}
		})
	}
}

// covers F9: with settled voters a clean split into two always leaves exactly one
// side, so that the cluster is never lost without need.
func TestTwoSidesLeaveExactlyOneSurvivor(t *testing.T) {
	for n := 2; n <= 9; n++ {
		j := newJudge(t, n, 0)
		for _, split := range splits(n) {
			if len(split) == 2 {
				require.Equal(t, 1, j.mostSurvivors(split, [2]set{1<<n - 1}), "nodes %d, split %v", n, split)
			}
		}
	}
}

// The enumeration must be able to fail: if each side counted by the one set of voters
// that it knows, two sides would survive some of these splits.
func TestOneSetOfVotersWouldNotBeEnough(t *testing.T) {
	const n = 5
	j := newJudge(t, n, 0)
	found := false
	for _, e := range edits(n) {
		for _, split := range splits(n) {
			found = found || j.mostSurvivors(split, [2]set{e.before}, [2]set{e.after}) > 1
		}
	}
	require.True(t, found)
}
