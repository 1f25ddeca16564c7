// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package downing_test

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/downing/downingtest"
	"github.com/quorate/quorate/gossip"
)

// knowledge is what a side knows of an edit of the members: nothing, the edit, or that all
// know it.
type knowledge int

const (
	knowsBefore knowledge = iota
	knowsEdit
	knowsThatAllDo
)

// change is an edit by which one of n nodes stops to vote, or begins to.
type change struct {
	n, of int
	joins bool
}

// survives reports whether keep-majority keeps a side by what it knows of the edit.
func (c change) survives(t *testing.T, side set, k knowledge) bool {
	t.Helper()
	all := set(1)<<c.n - 1
	without := all &^ (1 << c.of)
	before, after, status := all, without, []gossip.Status{gossip.Leaving, gossip.Exiting}
	if c.joins {
		before, after, status = without, all, []gossip.Status{gossip.Joining, gossip.Up}
	}
	members := downingtest.Members(c.n)
	m := members[c.of]
	m.Status = status[min(k, 1)]
	if m.Status == gossip.Joining {
		m.UpNumber = 0
	}
	base := [...]gossip.Base{{before.ids()}, {after.ids(), before.ids()}, {after.ids()}}[k]
	v := downingtest.SplitView(members, side.has, base)
	return downingtest.Survives(v, decide(t, v))
}

// alive returns how many sides of a split survive if each knows as much as it is said to.
func (c change) alive(t *testing.T, split []set, knows func(side set) knowledge) (alive int) {
	t.Helper()
	for _, side := range split {
		if side != 1<<c.of && c.survives(t, side, knows(side)) { // Nobody asks on the side of one who joins or exits alone.
			alive++
		}
	}
	return alive
}

// everyKnowledge calls f with each way in which sides can know of an edit: before all have
// seen it some have not, and after that those who do not know so count by both.
func everyKnowledge(split []set, f func(knows func(side set) knowledge)) {
	for least := range 2 {
		for mask := range 1 << len(split) {
			f(func(side set) knowledge {
				for i, s := range split {
					if s == side {
						return knowledge(least + mask>>i&1)
					}
				}
				return knowledge(least)
			})
		}
	}
}

// winner returns the side of a split that survives if all know as much.
func (c change) winner(t *testing.T, split []set, k knowledge) (winner set) {
	t.Helper()
	for _, side := range split {
		if side != 1<<c.of && c.survives(t, side, k) {
			winner = side
		}
	}
	return winner
}

// covers I4, F10, F28: every split of 3 to 7 nodes into 2 sides, and of 3 to 6 into 3, while one of them
// begins or ceases to vote, whatever each side knows of that. A member that exits votes on the
// side whose view it has seen. Two sides never survive; of two sides one does, unless the edit
// makes another side the winner than before: then some moment without a winner is unavoidable, see
// DESIGN.md, "The base".
func TestNeverTwoSurvivorsWhileAMemberJoinsOrExits(t *testing.T) {
	for n := 3; n <= 7; n++ {
		t.Run(fmt.Sprintf("nodes=%d", n), func(t *testing.T) {
			var tally [2]exitTally
			for of := range n {
				tally[0].add(t, change{n: n, of: of})
				if of > 0 { // The leader has joined before.
					tally[1].add(t, change{n: n, of: of, joins: true})
				}
			}
			t.Logf("leaving: %v", tally[0])
			t.Logf("joining: %v", tally[1])
		})
	}
}

// exitTally counts splits into two sides in one moment of an edit.
type exitTally struct {
	splits int
	turned int // In which the edit makes another side the winner.
	nobody int // In which nobody survives while the side of the leader, the lowest, alone has the edit.
	known  int // The same by the rule of Akka, see [change.survivesAsKnown].
	shared int // By that rule, as long as all know that the member joins or leaves, and no more.
}

func (e exitTally) String() string {
	return fmt.Sprintf("of %d splits the edit turns %d; nobody goes on while the side of the leader alone has it: %d; by the rule of Akka: %d, and %d as long as all know no more than what the member is about to do",
		e.splits, e.turned, e.nobody, e.known, e.shared)
}

// add looks at all splits in the face of a change.
func (e *exitTally) add(t *testing.T, c change) {
	t.Helper()
	for _, split := range splits(c.n) {
		if c.n == 7 && len(split) > 2 {
			continue // To save time.
		}
		before, after := c.winner(t, split, knowsBefore), c.winner(t, split, knowsThatAllDo)
		require.True(t, before != 0 && after != 0 || len(split) > 2, "split %v, %+v: nobody goes on although all know the same", split, c)
		turned := before != after
		everyKnowledge(split, func(knows func(set) knowledge) {
			alive := c.alive(t, split, knows)
			require.LessOrEqual(t, alive, 1, "split %v, %+v", split, c)
			require.True(t, alive == 1 || turned || len(split) > 2, "split %v, %+v", split, c)
		})
		if len(split) > 2 {
			continue
		}
		e.splits++
		if turned {
			e.turned++
		}
		if c.alive(t, split, func(side set) knowledge { return knowledge(side & 1) }) == 0 {
			e.nobody++
		}
		if !slices.ContainsFunc(split, func(side set) bool { return c.survivesAsKnown(side, side&1 != 0) }) {
			e.known++
		}
		if !slices.ContainsFunc(split, func(side set) bool { return c.survivesAsKnown(side, false) }) {
			e.shared++
		}
	}
}

// survivesAsKnown reports whether a side survives by the rule of the split brain resolver of
// Akka, which this is compared with: of the members that are up or leaving to the side itself it
// has more than half, or half with the lowest, and so it is still when nobody who leaves counts
// on this side, and who joins counts on the other one.
func (c change) survivesAsKnown(side set, edited bool) bool {
	counted, here, there := set(1)<<c.n-1, side, ^side
	switch of := set(1) << c.of; {
	case c.joins && !edited: // Joining.
		counted &^= of
	case !c.joins && edited: // Exiting.
		counted &^= of
	case !c.joins: // Leaving.
		here &^= of
	}
	doubted := counted
	if c.joins && !edited && side&(1<<c.of) == 0 {
		doubted |= 1 << c.of
	}
	return majority(counted, side, counted&^side) && majority(doubted, here&counted, there&doubted)
}

// majority reports whether some of the members are more than others, or as many, with the lowest.
func majority(members, some, others set) bool {
	have, lost := bits.OnesCount(uint(some)), bits.OnesCount(uint(others))
	return have > lost || have == lost && some&(1<<bits.TrailingZeros(uint(members))) != 0
}

// A member that exits does not vote where it has not seen the view, on whatever side it is.
func TestAnExitingMemberThatHasNotSeenTheViewDoesNotVote(t *testing.T) {
	for n := 3; n <= 7; n++ {
		all := set(1)<<n - 1
		for of := range n {
			members := downingtest.Members(n)
			members[of].Status = gossip.Exiting
			for _, split := range splits(n) {
				for _, side := range split {
					v := downingtest.SplitView(members, side.has, gossip.Base{all.ids()})
					v.Seen = (side &^ (1 << of)).ids()
					if len(v.Seen) == 0 {
						continue
					}
					v.Self = v.Seen[0]
					wins := gossip.Wins(all.ids(), (side &^ (1 << of)).has)
					d := decide(t, v)
					lost := side|1<<of != all
					require.Equal(t, wins || !lost, d.Verdict != downing.DownSide, "%d exits, side %v of %v", of, side.ids(), split)
				}
			}
		}
	}
}

// Who exits alone keeps nothing: the side would go on with nobody. Its vote may be the lowest of
// two, or all that are left of the voters.
func TestASideOfExitingMembersGivesUp(t *testing.T) {
	members := downingtest.Members(2)
	members[0].Status = gossip.Exiting
	v := downingtest.SplitView(members, set(1).has, gossip.Base{set(3).ids()})
	d := decide(t, v)
	require.Equal(t, downing.DownSide, d.Verdict)
	require.Empty(t, d.Down)
	require.Contains(t, d.Reason, "nobody on this side stays")
	require.NoError(t, downing.Check(v, downing.KeepMajority{}.Class(), d))
}

// [downing.View.Votes] says which votes a decision has counted.
func TestVotesAreThoseThatAreCounted(t *testing.T) {
	for seed := range uint64(300) {
		v := downingtest.RandomView(rand.New(rand.NewPCG(seed, 0)))
		for _, m := range v.Members {
			counts := m.Status >= gossip.Up && m.Status <= gossip.Leaving || m.Status == gossip.Exiting && slices.Contains(v.Seen, m.Node)
			require.Equal(t, counts, v.Votes(m.Node), "%s", m.Node)
		}
		require.False(t, v.Votes(downingtest.Node(99)))
	}
}
