// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package hold_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/epoch"
	"github.com/quorate/quorate/sharding/state/hold"
	"github.com/quorate/quorate/sharding/state/store"
)

var (
	limits = hold.Config{Limit: 10 * time.Second, Pause: 100 * time.Millisecond, PauseMost: time.Second}
	key    = store.Key{Kind: "account", ID: "a"}
	own    = store.Owner{Epoch: epoch.Epoch{N: 5}, Instance: 3}
)

func claimed(t *testing.T, version uint64) *hold.Hold {
	t.Helper()
	h := hold.NewHold(limits, key, own)
	require.Equal(t, store.Claim{Key: key, Owner: own}, h.Claim())
	require.Equal(t, hold.Step{}, h.Answered(store.Head{Owner: own, Version: version}))
	require.Equal(t, version, h.Version())
	return h
}

func TestWhatFollowsFromTheHeadOfARecord(t *testing.T) {
	later, earlier := own, own
	later.Instance++
	earlier.Epoch.N--
	for name, c := range map[string]struct {
		head store.Head
		want error
	}{
		"written":                 {store.Head{Owner: own, Version: 9}, nil},
		"not written":             {store.Head{Owner: own, Version: 7}, hold.ErrForeign},
		"written by another":      {store.Head{Owner: own, Version: 8}, hold.ErrForeign},
		"a later owner":           {store.Head{Owner: later, Version: 7}, hold.ErrFenced},
		"a later owner, the same": {store.Head{Owner: later, Version: 9}, hold.ErrFenced},
		"an earlier owner":        {store.Head{Owner: earlier, Version: 9}, hold.ErrForeign},
		"a record that is gone":   {store.Head{}, hold.ErrForeign},
	} {
		t.Run(name, func(t *testing.T) {
			h := claimed(t, 7)
			w := h.Save(1, store.Value{}, make([]store.Value, 2))
			require.Equal(t, store.Head{Owner: own, Version: 7}, w.Before())
			require.Equal(t, store.Head{Owner: own, Version: 9}, w.After())
			require.Positive(t, h.Unanswered(0).Again, "which changes nothing about the next answer")
			require.Equal(t, c.want, h.Answered(c.head).Err)
			require.Equal(t, c.want, h.Err())
			if c.want == nil {
				require.Equal(t, uint64(9), h.Version())
				require.Zero(t, h.Attempts())
			}
		})
	}
}

func TestAClaimOfAnEarlierOwnerEnds(t *testing.T) {
	h := hold.NewHold(limits, key, own)
	later := own
	later.Epoch.N++
	require.ErrorIs(t, h.Answered(store.Head{Owner: later}).Err, hold.ErrFenced)
	require.ErrorIs(t, h.Unanswered(0).Err, hold.ErrFenced, "it stays ended")
	h = hold.NewHold(limits, key, own)
	require.ErrorIs(t, h.Answered(store.Head{}).Err, hold.ErrForeign, "the store has not taken the claim")
}

func TestPausesGrowUntilTheLimit(t *testing.T) {
	h := claimed(t, 0)
	h.Save(1, store.Value{Form: 1}, nil)
	var since time.Duration
	for n := range 100 {
		s := h.Unanswered(since)
		if s.Err != nil {
			require.ErrorIs(t, s.Err, hold.ErrUnanswered)
			require.Greater(t, since, 8*time.Second)
			require.Equal(t, n+1, h.Attempts())
			return
		}
		full := min(100*time.Millisecond<<n, time.Second)
		require.LessOrEqual(t, s.Again, full)
		require.GreaterOrEqual(t, s.Again, full/2)
		since += s.Again
	}
	require.Fail(t, "no end")
}

func TestInstancesDoNotComeBackTogether(t *testing.T) {
	seen := map[time.Duration]bool{}
	for i := range uint64(100) {
		h := hold.NewHold(limits, key, store.Owner{Instance: i})
		seen[h.Unanswered(0).Again/time.Millisecond] = true
	}
	require.Greater(t, len(seen), 40)
}

func named(id string) store.Key { return store.Key{ID: id} }

func TestCallsTakeEachKeyOnceAndInOrder(t *testing.T) {
	q := hold.NewQueue[int](3)
	require.Empty(t, q.Next())
	for i, id := range []string{"a", "b", "a", "c", "d", "a"} {
		q.Put(named(id), 0, i)
	}
	require.Equal(t, []int{0, 1, 3}, q.Next())
	q.Remove(4)
	require.Equal(t, []int{2}, q.Next())
	require.Equal(t, 1, q.Len())
	require.Equal(t, []int{5}, q.Next())
}

// What a call has failed goes into smaller ones, in the end into one of its own.
func TestWhatFailsGoesIntoSmallerCalls(t *testing.T) {
	q := hold.NewQueue[int](64)
	for failed, most := range []int{64, 8, 1, 1} {
		for i := range 100 {
			q.Put(named(string(rune('a'+i))), failed, i)
		}
		require.Len(t, q.Next(), most)
		for q.Len() > 0 {
			q.Next()
		}
	}
	q.Put(named("x"), 0, 1)
	q.Put(named("y"), 9, 2)
	q.Put(named("z"), 0, 3)
	require.Equal(t, []int{1, 3}, q.Next(), "what has failed stays out of the call of others")
	require.Equal(t, []int{2}, q.Next())
}
