// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/gossip"
)

func TestDigestIsSmallAtAnySize(t *testing.T) {
	t.Parallel()
	s := mark(cluster(t, 1000), 1, 2)
	require.Len(t, s.Digest().Clock.Entries, 1)
	require.NotZero(t, s.Digest().Clock.Base)
	require.Len(t, s.FullDigest().Clock.Entries, 1000)
}

func TestCompareDigest(t *testing.T) {
	t.Parallel()
	s := cluster(t, 4)
	newer, other := mark(s, 1, 2), mark(s, 3, 2)
	require.Equal(t, gossip.Same, s.CompareDigest(s.Digest()))
	require.Equal(t, gossip.Older, s.CompareDigest(newer.Digest()))
	require.Equal(t, gossip.Newer, newer.CompareDigest(s.Digest()))
	require.Equal(t, gossip.Concurrent, newer.CompareDigest(other.Digest()))
	require.Equal(t, gossip.SeenDiffers, newer.See(node(2)).CompareDigest(newer.Digest()))
	foreign := s.Digest()
	foreign.Cluster.Nonce++
	require.Equal(t, gossip.OtherCluster, s.CompareDigest(foreign))
	stranger := newer.Digest()
	stranger.Clock.Base = 12345
	require.Equal(t, gossip.Undecided, s.CompareDigest(stranger))
	require.Equal(t, gossip.Older, s.CompareDigest(newer.DigestFor(stranger)), "a full digest is always understood")
	require.True(t, newer.DeltaTo(stranger).Full)
}

// What a node sends last is understood by who does not keep its bases.
func TestADeltaWithoutBaseFitsWhicheverBasesAreKept(t *testing.T) {
	t.Parallel()
	old := mark(cluster(t, 4), 2, 3)
	latest := old
	for _, n := range []int{0, 1, 2, 3} {
		latest = latest.See(node(n)) // All have seen it: it is a base for who knows that.
	}
	last := mark(latest, 1, 2)
	_, err := old.Apply(last.DeltaTo(latest.Digest()))
	require.ErrorIs(t, err, gossip.ErrNotCovered)
	got, err := old.Apply(last.DeltaWithoutBase(latest.Digest()))
	require.NoError(t, err)
	requireEqual(t, last.Merge(old), got, "applied")
	stranger := latest.Digest()
	stranger.Clock.Base = 12345
	require.True(t, last.DeltaWithoutBase(stranger).Full)
}

// Two states have the same fingerprint exactly if the digest of either says that they are
// the same.
func TestFingerprintsAreEqualWhereDigestsSaySame(t *testing.T) {
	t.Parallel()
	equal := 0
	rapid.Check(t, func(t *rapid.T) {
		u := drawUniverse(t)
		a, b := u.state(t, "a"), u.state(t, "b")
		if rapid.Bool().Draw(t, "met") {
			a = a.Merge(b)
			b = b.Merge(a)
		}
		same := a.Cluster() == b.Cluster() && a.CompareDigest(b.Digest()) == gossip.Same
		require.Equal(t, same, a.Fingerprint() == b.Fingerprint())
		require.NotZero(t, a.Fingerprint())
		if same {
			equal++
		}
	})
	require.NotZero(t, equal)
}

func TestDeltaCarriesOnlyNews(t *testing.T) {
	t.Parallel()
	s := cluster(t, 100)
	d := mark(s, 1, 2).DeltaTo(s.Digest())
	require.False(t, d.Full)
	require.Empty(t, d.Members)
	require.Empty(t, d.From.Entries)
	require.Len(t, d.Clock.Entries, 1)
	require.Len(t, d.Observers, 1)
	got, err := s.Apply(d)
	require.NoError(t, err)
	requireEqual(t, mark(s, 1, 2), got, "applied")
	again, err := got.Apply(d)
	require.NoError(t, err)
	require.Same(t, got, again, "a delta twice adds nothing")
	_, err = gossip.New(s.Cluster()).Apply(d)
	require.ErrorIs(t, err, gossip.ErrNotCovered)
	_, err = gossip.New(gossip.ClusterID{Born: 9}).Apply(d)
	require.ErrorIs(t, err, gossip.ErrOtherCluster)
}

func TestDeltaOfUnknownHistoryIsFull(t *testing.T) {
	t.Parallel()
	s := cluster(t, 10)
	newer := rewire(t, mark(s, 1, 2))
	d := newer.Delta(s.Clock())
	require.True(t, d.Full, "the edit is not remembered")
	got, err := s.Apply(d)
	require.NoError(t, err)
	requireEqual(t, newer, got, "applied")
}

// Effects of edits of a removed node that its remover never saw are stamped again by
// any node that has them.
func TestRestamp(t *testing.T) {
	t.Parallel()
	s := cluster(t, 4)
	mine := s.Edit(node(3), func(e *gossip.Edit) { e.Join(gossip.Member{Node: node(8)}) })
	lagging := s.Merge(mine).See(node(1)) // Node 1 heard of it.
	removed := s.Edit(node(0), func(e *gossip.Edit) { require.True(t, e.Remove(node(3), s.PrunedBefore())) })

	m := lagging.Merge(removed).See(node(1))
	ok, why := m.Convergence(node(1), nil)
	require.False(t, ok)
	require.True(t, why.Unstamped)
	require.NotNil(t, m.Member(node(8)))
	stamped := m.Restamp(node(1))
	require.Equal(t, m.Clock().Get(node(1))+1, stamped.Clock().Get(node(1)))
	d := stamped.Delta(removed.Clock())
	require.False(t, d.Full)
	got, err := removed.Apply(d)
	require.NoError(t, err)
	require.NotNil(t, got.Member(node(8)))
	requireEqual(t, stamped, got, "nothing is missing")
}

// The history is bounded: an old clock gets a full state.
func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	s := cluster(t, 3)
	old := s
	for range 1200 {
		s = mark(s, 0, 1).Edit(node(0), func(e *gossip.Edit) { e.Clear(node(1)) })
	}
	require.True(t, s.Delta(old.Clock()).Full)
	recent := s
	for range 100 {
		s = mark(s, 0, 1).Edit(node(0), func(e *gossip.Edit) { e.Clear(node(1)) })
	}
	d := s.Delta(recent.Clock())
	require.False(t, d.Full)
	require.Len(t, d.Edits, 200)
}

// A node that got its news as deltas passes them on as deltas.
func TestDeltasAreRelayedAsDeltas(t *testing.T) {
	t.Parallel()
	s := cluster(t, 4)
	first, second := mark(s, 0, 1), mark(s, 2, 3)
	relay, err := s.Apply(first.DeltaTo(s.Digest()))
	require.NoError(t, err)
	relay, err = relay.See(node(3)).Apply(second.DeltaTo(relay.Digest()))
	require.NoError(t, err)
	d := relay.DeltaTo(s.Digest())
	require.False(t, d.Full)
	require.Len(t, d.Edits, 2)
	got, err := s.Apply(d)
	require.NoError(t, err)
	requireEqual(t, first.Merge(second), got, "both")
}

// Until effects of a removed node are stamped again no delta may be sent that has a
// clock without the edits that it counts.
func TestDeltaBeforeRestampIsFull(t *testing.T) {
	t.Parallel()
	s := cluster(t, 4)
	lagging := s.Edit(node(3), func(e *gossip.Edit) { e.Join(gossip.Member{Node: node(8)}) })
	removed := s.Edit(node(0), func(e *gossip.Edit) { require.True(t, e.Remove(node(3), s.PrunedBefore())) })
	require.True(t, removed.Merge(lagging).Delta(removed.Clock()).Full)
	require.False(t, removed.Merge(lagging).Restamp(node(1)).Delta(removed.Clock()).Full)
}
