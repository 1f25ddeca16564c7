// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package allocation_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/allocation/allocationtest"
)

func consistent(tb testing.TB, absolute int, relative float64) *allocation.ConsistentHashing {
	tb.Helper()
	h, err := allocation.NewConsistentHashing(allocation.RebalanceLimits{RebalanceAbsoluteLimit: absolute, RebalanceRelativeLimit: relative})
	require.NoError(tb, err)
	return h
}

func TestConsistentHashingKeepsTheContract(t *testing.T) {
	allocationtest.TestStrategy(t, func(tb testing.TB) allocation.Strategy { tb.Helper(); return consistent(tb, 100, 0.1) })
}

// homes allocates n shards to regions without shards, and returns the home of each.
func homes(h *allocation.ConsistentHashing, rs []allocation.RegionState, n int) map[allocation.Shard]allocation.Region {
	at := make(map[allocation.Shard]allocation.Region, n)
	for _, p := range h.DecideAllocate(allocation.AllocateRequest{Regions: rs, Shards: pending(0, n)}).Placements {
		at[p.Shard] = p.Region
	}
	return at
}

// A region that goes gives up its own shards, and one that comes takes only what it wins: no
// shard moves between two regions that stay.
func TestNoShardMovesBetweenRegionsThatStay(t *testing.T) {
	h := consistent(t, 100, 1)
	rapid.Check(t, func(t *rapid.T) {
		rs := drawRegions(t, true)
		gone := rapid.IntRange(0, len(rs)-1).Draw(t, "gone")
		before := homes(h, rs, 200)
		after := homes(h, slices.Delete(slices.Clone(rs), gone, gone+1), 200)
		for shard, home := range after {
			if before[shard] != rs[gone].ID {
				require.Equal(t, before[shard], home, "shard %d", shard)
			}
		}
	})
}

// Where a shard was before does not matter: after rebalancing every shard has the home that it
// would have got first, and none has moved twice.
func TestRebalancingEndsWhereAllocationBegins(t *testing.T) {
	h := consistent(t, 7, 1)
	rapid.Check(t, func(t *rapid.T) {
		r := allocation.RebalanceRequest{
			Regions: drawRegions(t, true), Fitness: fit,
			Budget: allocation.Budget{Simultaneous: rapid.IntRange(1, 30).Draw(t, "simultaneous"), PerRegion: rapid.IntRange(0, 3).Draw(t, "per region")},
		}
		n, moved := 0, map[allocation.Shard]bool{}
		for _, c := range counts(r.Regions) {
			n += c
		}
		for {
			res := h.DecideRebalance(r)
			require.NoError(t, allocation.CheckRebalance(&r, &res))
			if len(res.Moves) == 0 {
				require.Contains(t, res.Reason, "live on their regions, or move there")
				break
			}
			for _, m := range res.Moves {
				require.False(t, moved[m.Shard], "shard %d moves twice", m.Shard)
				moved[m.Shard] = true
			}
			r.Regions = allocationtest.Apply(r.Regions, res.Moves)
		}
		want := homes(h, r.Regions, n)
		for i := range r.Regions {
			for _, shard := range r.Regions[i].Shards {
				require.Equal(t, want[shard], r.Regions[i].ID)
			}
		}
	})
}

// The shards with the lowest numbers move first, whichever regions they are on, so that all rounds together go
// through the shards once.
func TestTheLowestStraysMoveFirst(t *testing.T) {
	table, rs := new(allocation.LocationTable), atNodes(0, 0, 0)
	for shard := range allocation.Shard(60) {
		table.Put("k", shard, "c:1")
		at := &rs[shard%2]
		at.Shards = slices.Insert(at.Shards, 0, shard)
	}
	for _, s := range []allocation.Strategy{consistent(t, 100, 1), external(t, table)} {
		r := allocation.RebalanceRequest{Kind: "k", Regions: rs, Fitness: fit, Budget: allocation.Budget{Simultaneous: 1000}}
		all, err := s.Rebalance(t.Context(), r)
		require.NoError(t, err)
		require.Greater(t, len(all.Moves), 20)
		require.True(t, slices.IsSortedFunc(all.Moves, func(a, b allocation.Move) int { return cmp.Compare(a.Shard, b.Shard) }), "%v", all.Moves)
		r.Budget.Simultaneous = 7
		few, err := s.Rebalance(t.Context(), r)
		require.NoError(t, err)
		require.Equal(t, all.Moves[:7], few.Moves)
	}
}

// Each region gets its part of the shards, within five standard deviations; the seeds of the
// hash are the ids of real nodes.
func TestConsistentHashingSpreadsByCapacity(t *testing.T) {
	const shards = 20000
	r, h := rand.New(rand.NewPCG(1, 1)), consistent(t, 100, 1)
	for _, capacities := range [][]uint32{{1, 1, 1, 1, 1}, {4, 2, 1}, {1, 1000}, {0, 3}} {
		sum := uint32(0)
		rs := make([]allocation.RegionState, len(capacities))
		for i, c := range capacities {
			rs[i] = allocation.RegionState{ID: allocation.Region(fmt.Sprintf("10.0.0.%d:7946#%x", i+1, r.Uint64())), Capacity: c}
			sum += max(c, 1)
		}
		got := map[allocation.Region]int{}
		for _, home := range homes(h, rs, shards) {
			got[home]++
		}
		for i, c := range capacities {
			part := float64(max(c, 1)) / float64(sum)
			require.InDelta(t, shards*part, got[rs[i].ID], 5*math.Sqrt(shards*part*(1-part)), "capacities %v", capacities)
		}
	}
}

// Shards of equal numbers of two kinds live together.
func TestKindsLiveTogether(t *testing.T) {
	h, rs := consistent(t, 100, 1), regions(0, 0, 0, 0)
	one := h.DecideAllocate(allocation.AllocateRequest{Kind: "account", Regions: rs, Shards: pending(0, 50)})
	other := h.DecideAllocate(allocation.AllocateRequest{Kind: "audit", Regions: rs, Shards: pending(0, 50)})
	require.Equal(t, one, other)
}

func TestConsistentHashingExplainsWhatItLeaves(t *testing.T) {
	rs := regions(0, 0)
	rs[0].Leaving, rs[1].Suspended = true, true
	res := consistent(t, 100, 1).DecideAllocate(allocation.AllocateRequest{Regions: rs, Shards: pending(0, 1)})
	require.Equal(t, allocation.AllocateResult{Reason: "consistent-hashing: none of 2 regions is eligible"}, res)
	require.Zero(t, consistent(t, 100, 1).DecideAllocate(allocation.AllocateRequest{Regions: rs}))

	r := allocation.RebalanceRequest{Regions: regions(40, 0), Fitness: fit, Budget: allocation.Budget{Simultaneous: 3}}
	require.Len(t, consistent(t, 100, 1).DecideRebalance(r).Moves, 3)
	require.Equal(t, "consistent-hashing: rebalancing is switched off", consistent(t, 0, 1).DecideRebalance(r).Reason)
	moves := consistent(t, 100, 1).DecideRebalance(r).Moves
	r.Budget.InFlight = moves
	require.Contains(t, consistent(t, 100, 1).DecideRebalance(r).Reason, "the budget permits no move beside 3 in flight")
	r.Fitness.NoneJoining = false
	require.Equal(t, "consistent-hashing: not now: a member is joining", consistent(t, 100, 1).DecideRebalance(r).Reason)
}
