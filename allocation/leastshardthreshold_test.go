// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package allocation_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/allocation/allocationtest"
)

func threshold(tb testing.TB, by, most int) *allocation.LeastShardThreshold {
	tb.Helper()
	l, err := allocation.NewLeastShardThreshold(allocation.ThresholdConfig{RebalanceThreshold: by, MaxSimultaneousRebalance: most})
	require.NoError(tb, err)
	return l
}

func TestLeastShardThresholdKeepsTheContract(t *testing.T) {
	allocationtest.TestStrategy(t, func(tb testing.TB) allocation.Strategy { tb.Helper(); return threshold(tb, 1, 3) })
}

// What a round moves, as the original does for the same numbers.
func TestThresholdRounds(t *testing.T) {
	tests := []struct {
		name     string
		by, most int
		have     []int
		moves    int
		reason   string
	}{
		{"one by default", 1, 3, []int{20, 0, 5}, 1, "exceeds the emptiest by 20 shards, 1 move"},
		{"within the threshold", 1, 3, []int{3, 2, 2}, 0, "the fullest region has 3 shards, the emptiest 2"},
		{"what exceeds the threshold", 10, 100, []int{13, 0}, 3, "by 13 shards, 3 move"},
		{"as many as the threshold", 10, 100, []int{60, 0}, 10, "by 60 shards, 10 move"},
		{"as many as may move", 10, 4, []int{60, 0}, 4, "by 60 shards, 4 move"},
		{"off", 1, 0, []int{60, 0}, 0, "switched off"},
		{"one region", 1, 3, []int{60}, 0, "no two regions"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := allocation.RebalanceRequest{Regions: regions(test.have...), Fitness: fit, Budget: allocation.Budget{Simultaneous: 1000}}
			res := threshold(t, test.by, test.most).DecideRebalance(r)
			require.NoError(t, allocation.CheckRebalance(&r, &res))
			require.Len(t, res.Moves, test.moves)
			require.Contains(t, res.Reason, test.reason)
			for i, m := range res.Moves {
				require.EqualValues(t, i, m.Shard, "the lowest numbers first")
			}
		})
	}
}

func TestThresholdRoundsCountWhatIsInFlight(t *testing.T) {
	l, r := threshold(t, 5, 3), allocation.RebalanceRequest{Regions: regions(20, 0), Fitness: fit, Budget: allocation.Budget{Simultaneous: 9}}
	slices.Reverse(r.Regions[0].Shards)
	r.Budget.InFlight = []allocation.Move{{Shard: 0, From: "a", To: "b"}}
	res := l.DecideRebalance(r)
	require.Len(t, res.Moves, 2)
	require.Equal(t, allocation.Move{Shard: 1, From: "a", To: "b", Reason: "least-shard-threshold: 19 shards here, the most; 1 there, the fewest"}, res.Moves[0])
	r.Budget.InFlight = append(r.Budget.InFlight, res.Moves...)
	require.Contains(t, l.DecideRebalance(r).Reason, "the budget permits no move beside 3 in flight")
	r.Fitness.NoneJoining = false
	require.Equal(t, "least-shard-threshold: not now: a member is joining", l.DecideRebalance(r).Reason)
}

// New shards go to the emptiest of the newest regions, whatever the capacities.
func TestThresholdAllocatesByNumbers(t *testing.T) {
	l, rs := threshold(t, 1, 3), regions(4, 0, 1)
	rs[1].Capacity, rs[1].Version, rs[2].Version = 100, "2", "2"
	r := allocation.AllocateRequest{Regions: rs, Shards: pending(100, 5)}
	res := l.DecideAllocate(r)
	require.NoError(t, allocation.CheckAllocate(&r, &res))
	require.Equal(t, []int{4, 3, 3}, counts(place(rs, res.Placements)))
	require.Equal(t, "least-shard-threshold: with 0 shards it had the fewest of 2 regions", res.Placements[0].Reason)
	require.Zero(t, l.DecideAllocate(allocation.AllocateRequest{Regions: rs}), "nothing asked")
	rs[0].Leaving = true
	require.Equal(t, "least-shard-threshold: none of 1 regions is eligible",
		l.DecideAllocate(allocation.AllocateRequest{Regions: rs[:1], Shards: pending(0, 1)}).Reason)
}

// Rounds come to rest with no difference above the threshold, and the difference between the
// fullest and the emptiest never grows on the way.
func TestThresholdRoundsComeToRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		by := rapid.IntRange(1, 6).Draw(t, "threshold")
		l, err := allocation.NewLeastShardThreshold(allocation.ThresholdConfig{
			RebalanceThreshold: by, MaxSimultaneousRebalance: rapid.IntRange(1, 9).Draw(t, "most"),
		})
		require.NoError(t, err)
		r := allocation.RebalanceRequest{Regions: drawRegions(t, true), Fitness: fit, Budget: allocation.Budget{Simultaneous: 5}}
		for {
			sizes := counts(r.Regions)
			before := slices.Max(sizes) - slices.Min(sizes)
			res := l.DecideRebalance(r)
			if len(res.Moves) == 0 {
				require.LessOrEqual(t, before, by)
				return
			}
			r.Regions = allocationtest.Apply(r.Regions, res.Moves)
			sizes = counts(r.Regions)
			require.LessOrEqual(t, slices.Max(sizes)-slices.Min(sizes), before)
		}
	})
}
