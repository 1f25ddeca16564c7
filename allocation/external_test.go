// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package allocation_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/allocation/allocationtest"
)

func external(tb testing.TB, l allocation.Locations) *allocation.External {
	tb.Helper()
	e, err := allocation.NewExternal(allocation.RebalanceLimits{RebalanceAbsoluteLimit: 100, RebalanceRelativeLimit: 1}, l)
	require.NoError(tb, err)
	return e
}

func TestExternalKeepsTheContract(t *testing.T) {
	allocationtest.TestStrategy(t, func(tb testing.TB) allocation.Strategy {
		tb.Helper()
		table := new(allocation.LocationTable)
		for s := range allocation.Shard(60) {
			table.Put("test", s, []string{"", "10.0.0.1:7946", "10.0.0.3:7946", "10.0.0.99:7946"}[s%4])
		}
		return external(tb, table)
	})
}

// atNodes returns regions of nodes a, b, c and so on, whose ids are addresses with incarnations.
func atNodes(counts ...int) []allocation.RegionState {
	rs := regions(counts...)
	for i := range rs {
		rs[i].ID += ":1#f"
	}
	return rs
}

func TestExternalPutsShardsAtTheirLocations(t *testing.T) {
	table, rs := new(allocation.LocationTable), atNodes(0, 0, 9, 0)
	rs[3].Leaving = true
	table.Put("k", 100, "b:1")
	table.Put("k", 101, "d:1")
	table.Put("k", 102, "nowhere:1")
	table.Put("other", 103, "b:1")
	table.Put("k", 104, strings.Repeat("x", 2*allocation.MaxReason))
	r := allocation.AllocateRequest{Kind: "k", Regions: rs, Shards: []allocation.Pending{
		{Shard: 100, Requester: "c:1#f"}, {Shard: 101, Requester: "c:1#f"}, {Shard: 102}, {Shard: 103, Requester: "d:1#f"}, {Shard: 104, Requester: "a:1#f"},
	}}
	res, err := external(t, table).Allocate(t.Context(), r)
	require.NoError(t, err)
	require.NoError(t, allocation.CheckAllocate(&r, &res))
	require.Equal(t, allocation.Placement{Shard: 100, Region: "b:1#f", Reason: "external: its location is b:1"}, res.Placements[0])
	require.Equal(t, allocation.Placement{Shard: 101, Region: "c:1#f", Reason: "external: the region asked for it, and no region at its location d:1 can host"}, res.Placements[1])
	require.Contains(t, res.Placements[2].Reason, "external: nothing says where it should live; least-shard: its share is")
	require.Contains(t, res.Placements[3].Reason, "nothing says where it should live", "what is said of another kind means nothing")
	require.Equal(t, []int{2, 2, 10, 0}, counts(place(rs, res.Placements)), "the others are filled")
	for i := range rs {
		rs[i].Suspended = true
	}
	res, err = external(t, table).Allocate(t.Context(), r)
	require.NoError(t, err)
	require.Empty(t, res.Placements)
	require.Contains(t, res.Reason, "none of 4 regions is eligible")
}

// What goes to its location in a batch counts when the others are shared.
func TestExternalFillsBesideLocations(t *testing.T) {
	table, rs := new(allocation.LocationTable), atNodes(0, 0, 0)
	table.Put("k", 0, "b:1")
	table.Put("k", 1, "b:1")
	res, err := external(t, table).Allocate(t.Context(), allocation.AllocateRequest{Kind: "k", Regions: rs, Shards: pending(0, 6)})
	require.NoError(t, err)
	require.Equal(t, []int{2, 2, 2}, counts(place(rs, res.Placements)))
}

// While a node that has started again stands beside what was there before, its address is that of the later
// one in the order of ids.
func TestExternalFollowsTheLaterIncarnation(t *testing.T) {
	table, rs := new(allocation.LocationTable), []allocation.RegionState{{ID: "a:1#1"}, {ID: "a:1#2"}, {ID: "b:1#1", Shards: []allocation.Shard{1}}}
	table.Put("k", 0, "a:1")
	table.Put("k", 1, "a:1")
	res, err := external(t, table).Allocate(t.Context(), allocation.AllocateRequest{Kind: "k", Regions: rs, Shards: pending(0, 1)})
	require.NoError(t, err)
	require.Equal(t, allocation.Region("a:1#2"), res.Placements[0].Region)
	moved, err := external(t, table).Rebalance(t.Context(), allocation.RebalanceRequest{Kind: "k", Regions: rs, Budget: allocation.Budget{Simultaneous: 1}})
	require.NoError(t, err)
	require.Equal(t, allocation.Region("a:1#2"), moved.Moves[0].To)
}

// After rebalancing each shard is at its location, if that can host, and what has no location has
// not moved; within the budget, and whether the cluster is fit or not.
func TestExternalMovesShardsToTheirLocations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := new(allocation.LocationTable)
		sizes := rapid.SliceOfN(rapid.IntRange(0, 20), 1, 5).Draw(t, "sizes")
		rs, before := atNodes(sizes...), map[allocation.Shard]allocation.Region{}
		want := map[allocation.Shard]allocation.Region{}
		for i := range rs {
			for _, s := range rs[i].Shards {
				before[s] = rs[i].ID
				if at := rapid.IntRange(-1, 6).Draw(t, "location"); at >= 0 {
					address := string(rune('a'+at)) + ":1"
					table.Put("k", s, address)
					if at < len(rs) {
						want[s] = allocation.Region(address + "#f")
					}
				}
			}
		}
		e, err := allocation.NewExternal(allocation.RebalanceLimits{RebalanceAbsoluteLimit: 7, RebalanceRelativeLimit: 1}, table)
		require.NoError(t, err)
		r := allocation.RebalanceRequest{Kind: "k", Regions: rs, Budget: allocation.Budget{Simultaneous: 10, PerRegion: rapid.IntRange(0, 3).Draw(t, "per region")}}
		for {
			res, err := e.Rebalance(t.Context(), r)
			require.NoError(t, err)
			require.NoError(t, allocation.CheckRebalance(&r, &res))
			require.LessOrEqual(t, len(res.Moves), 7)
			if len(res.Moves) == 0 {
				require.Contains(t, res.Reason, "none has another location that can host it")
				break
			}
			r.Regions = allocationtest.Apply(r.Regions, res.Moves)
		}
		for i := range r.Regions {
			for _, s := range r.Regions[i].Shards {
				if at, said := want[s]; said {
					require.Equal(t, at, r.Regions[i].ID)
				} else {
					require.Equal(t, before[s], r.Regions[i].ID)
				}
			}
		}
	})
}

func TestExternalExplainsWhatItLeaves(t *testing.T) {
	table := new(allocation.LocationTable)
	table.Put("k", 0, "b:1")
	table.Put("k", 1, "b:1")
	table.Put("k", 1, "")
	r := allocation.RebalanceRequest{Kind: "k", Regions: atNodes(2, 0), Budget: allocation.Budget{Simultaneous: 1}}
	res, err := external(t, table).Rebalance(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, []allocation.Move{{Shard: 0, From: "a:1#f", To: "b:1#f", Reason: "external: its location is there"}}, res.Moves)
	r.Budget.Simultaneous = 0
	res, err = external(t, table).Rebalance(t.Context(), r)
	require.NoError(t, err)
	require.Contains(t, res.Reason, "1 shards are not at their locations, and the budget permits no move")
	off, err := allocation.NewExternal(allocation.RebalanceLimits{RebalanceRelativeLimit: 1}, table)
	require.NoError(t, err)
	res, err = off.Rebalance(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, "external: rebalancing is switched off", res.Reason)
	_, err = allocation.NewExternal(allocation.RebalanceLimits{}, table)
	require.ErrorContains(t, err, "rebalance-relative-limit")
}
