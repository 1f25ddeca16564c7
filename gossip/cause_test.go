// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/gossip"
)

// A node that declares a member down gives a cause, and the cause is kept as long as
// the member is known: in the member first, then in its tombstone.
func TestCauseStaysWithTheMemberAndItsTombstone(t *testing.T) {
	t.Parallel()
	s := statuses(t, gossip.Up, gossip.Up, gossip.Up)
	down := s.Edit(node(0), func(e *gossip.Edit) {
		require.True(t, e.Down(node(2), "keep-majority: lost"))
		require.False(t, e.Down(node(2), "again"), "the first word stands")
		require.False(t, e.Down(node(9), "a stranger"))
	})
	cause := gossip.Cause{By: node(0), Why: "keep-majority: lost"}
	require.Equal(t, gossip.Down, down.Member(node(2)).Status)
	require.Equal(t, s.Member(node(2)).UpNumber, down.Member(node(2)).UpNumber)
	require.Equal(t, cause, down.Member(node(2)).Downed)
	require.Equal(t, node(0).String()+": keep-majority: lost", cause.String())
	require.Equal(t, node(0).String(), gossip.Cause{By: node(0)}.String())
	require.Empty(t, gossip.Cause{}.String())

	heard, err := s.Apply(down.Delta(s.Clock()))
	require.NoError(t, err)
	require.Equal(t, cause, heard.Member(node(2)).Downed, "a difference carries it")

	gone := down.Edit(node(1), func(e *gossip.Edit) { require.True(t, e.Remove(node(2), time.UnixMilli(5))) })
	tomb, _ := gone.Removed(node(2))
	require.Equal(t, cause, tomb.Downed)
	require.Contains(t, gone.Describe(), cause.Why)
	heard, err = heard.Apply(gone.Delta(heard.Clock()))
	require.NoError(t, err)
	requireEqual(t, gone, heard, "the tombstone with its cause")
	left := s.Edit(node(1), func(e *gossip.Edit) {
		require.True(t, e.SetStatus(node(2), gossip.Exiting, 0))
		require.True(t, e.Remove(node(2), time.UnixMilli(5)))
	})
	tomb, _ = left.Removed(node(2))
	require.Zero(t, tomb.Downed, "it left")
}

// When two nodes declare a member down at once, all nodes keep the same one of the two
// causes.
func TestOfTwoCausesAllNodesTellTheSame(t *testing.T) {
	t.Parallel()
	s := statuses(t, gossip.Up, gossip.Up, gossip.Up)
	a := s.Edit(node(0), func(e *gossip.Edit) { e.Down(node(2), "one reason") })
	b := s.Edit(node(1), func(e *gossip.Edit) { e.Down(node(2), "another one") })
	c := s.Edit(node(1), func(e *gossip.Edit) { e.SetStatus(node(2), gossip.Down, 0) })
	require.Equal(t, a.Merge(b).Member(node(2)).Downed, b.Merge(a).Member(node(2)).Downed)
	require.Equal(t, "another one", a.Merge(b).Member(node(2)).Downed.Why)
	require.Equal(t, "one reason", c.Merge(a).Member(node(2)).Downed.Why, "a cause is more than none")
}

// A reason is made acceptable to every node, whatever a strategy returns: the text may
// come from a foreign process.
func TestReasonsAreMadeFit(t *testing.T) {
	t.Parallel()
	s := statuses(t, gossip.Up, gossip.Up)
	rapid.Check(t, func(t *rapid.T) {
		why := rapid.OneOf(rapid.String(), rapid.Just(strings.Repeat("\u20ac", 200)),
			rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "why")
		down := s.Edit(node(0), func(e *gossip.Edit) { require.True(t, e.Down(node(1), why)) })
		requireEqual(t, down, rewire(t, down), "every node takes it")
	})
	for why, want := range map[string]string{
		"a\nb\x00c":                  "a b c",
		"a\xffb":                     "a\ufffdb",
		strings.Repeat("x", 201):     strings.Repeat("x", gossip.MaxCauseBytes),
		strings.Repeat("\u20ac", 67): strings.Repeat("\u20ac", 66),
	} {
		down := s.Edit(node(0), func(e *gossip.Edit) { e.Down(node(1), why) })
		require.Equal(t, want, down.Member(node(1)).Downed.Why)
	}
}

// A member of a version without causes drops them. It counts as having seen the state
// nevertheless: otherwise no member could be promoted or removed during an upgrade, as
// long as there is a tombstone with a cause.
func TestWhoDropsCausesIsCountedAsHavingSeen(t *testing.T) {
	t.Parallel()
	s := statuses(t, gossip.Up, gossip.Up, gossip.Up)
	s = s.Edit(node(0), func(e *gossip.Edit) { e.Down(node(2), "lost") })
	s = s.See(node(1)).Edit(node(0), func(e *gossip.Edit) { require.True(t, e.Remove(node(2), time.UnixMilli(5))) })
	p := s.Parts()
	p.Tombstones[0].Downed = gossip.Cause{}
	older, err := gossip.FromParts(p)
	require.NoError(t, err)
	older = older.See(node(1))
	require.Equal(t, gossip.SeenDiffers, s.CompareDigest(older.Digest()))
	for _, m := range []*gossip.State{s.Merge(older), older.Merge(s)} {
		require.True(t, m.Seen(node(0)) && m.Seen(node(1)))
		tomb, _ := m.Removed(node(2))
		require.Equal(t, "lost", tomb.Downed.Why)
	}
}
