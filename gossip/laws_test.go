// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/gossip"
)

// The laws of the join, over arbitrary valid states that disagree about
// everything that states can disagree about.

func TestMergeIsAssociative(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		u := drawUniverse(t)
		a, b, c := u.state(t, "a"), u.state(t, "b"), u.state(t, "c")
		requireEqual(t, a.Merge(b).Merge(c), a.Merge(b.Merge(c)), "associative")
	})
}

func TestMergeIsCommutative(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		u := drawUniverse(t)
		a, b := u.state(t, "a"), u.state(t, "b")
		requireEqual(t, a.Merge(b), b.Merge(a), "commutative")
	})
}

func TestMergeIsIdempotentAndMonotone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		u := drawUniverse(t)
		a, b := u.state(t, "a"), u.state(t, "b")
		require.Same(t, a, a.Merge(a))
		require.Same(t, a, a.Merge(rewire(t, a)), "an equal state adds nothing")
		m := a.Merge(b)
		require.Same(t, m, m.Merge(a), "a join holds its operands")
		require.Same(t, m, m.Merge(rewire(t, b)), "a join holds its operands")
		requireWellFormed(t, m)
		requireNotBackwards(t, a, m)
		requireNotBackwards(t, b, m)
	})
}

// A merge with one more state holds at least as much.
func TestMergeKeepsTheOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		u := drawUniverse(t)
		a, b, c := u.state(t, "a"), u.state(t, "b"), u.state(t, "c")
		above := a.Merge(b)
		m := above.Merge(c)
		require.Same(t, m, m.Merge(a.Merge(c)))
	})
}

// requireNotBackwards requires that everything in old is in now, except for removals
// and pruning.
//
// covers I6.
func requireNotBackwards(t require.TestingT, old, now *gossip.State) {
	for _, m := range old.Members() {
		n := now.Member(m.Node)
		if n == nil {
			_, removed := now.Removed(m.Node)
			require.True(t, removed, "%v vanished", m.Node)
			continue
		}
		require.GreaterOrEqual(t, n.Status, m.Status, "%v went backwards", m.Node)
		require.GreaterOrEqual(t, n.UpNumber, m.UpNumber, "the up-number of %v went down", m.Node)
		require.Subset(t, n.Services, m.Services)
	}
	for _, tomb := range old.Tombstones() {
		require.Nil(t, now.Member(tomb.Node), "%v came back", tomb.Node)
		if _, removed := now.Removed(tomb.Node); !removed {
			require.True(t, now.PrunedBefore().After(tomb.Time()), "tombstone of %v vanished", tomb.Node)
		}
	}
	require.GreaterOrEqual(t, now.LastUpNumber(), old.LastUpNumber())
	require.GreaterOrEqual(t, now.Config().Generation().Compare(old.Config().Generation()), 0)
	require.False(t, now.PrunedBefore().Before(old.PrunedBefore()))
}

// A tombstone keeps a removed node away, and pruning it too early brings the node
// back: this is why only a leader may prune, under convergence, and late.
func TestForgottenTombstoneNoLongerKeepsANodeAway(t *testing.T) {
	t.Parallel()
	a, b := node(1), node(2)
	s := gossip.New(gossip.ClusterID{Born: 1}).Edit(a, func(e *gossip.Edit) {
		e.Join(gossip.Member{Node: a})
		e.Join(gossip.Member{Node: b})
	})
	removed := s.Edit(a, func(e *gossip.Edit) { require.True(t, e.Remove(b, time.UnixMilli(50))) })
	require.Nil(t, removed.Merge(s).Member(b), "the tombstone wins")
	pruned := removed.Edit(a, func(e *gossip.Edit) { require.True(t, e.SetPrunedBefore(time.UnixMilli(51))) })
	require.Empty(t, pruned.Tombstones())
	require.Same(t, pruned, pruned.Merge(removed), "a pruned tombstone does not come back")
	require.NotNil(t, pruned.Merge(s).Member(b), "nobody knows any more")
}

func TestClocksAreALattice(t *testing.T) {
	t.Parallel()
	draw := func(t *rapid.T, label string) gossip.VectorClock {
		var entries []gossip.Dot
		for i := range 5 {
			if n := rapid.IntRange(0, 3).Draw(t, label); n > 0 {
				entries = append(entries, gossip.Dot{Node: node(i), Count: uint64(n)})
			}
		}
		c, err := gossip.ClockOf(entries)
		require.NoError(t, err)
		return c
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := draw(t, "a"), draw(t, "b"), draw(t, "c")
		require.True(t, a.Merge(b).Merge(c).Equal(a.Merge(b.Merge(c))))
		require.True(t, a.Merge(b).Equal(b.Merge(a)))
		require.True(t, a.Merge(b).Covers(a))
		require.Equal(t, a.Covers(b), a.Merge(b).Equal(a))
		require.Equal(t, a.Equal(b), a.Compare(b) == gossip.Same)
		require.Equal(t, a.Compare(b) == gossip.Before, b.Compare(a) == gossip.After)
		require.Equal(t, a.Equal(b), a.Hash() == b.Hash())
	})
}
