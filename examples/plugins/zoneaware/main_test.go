// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/allocation/allocationtest"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/sdk"
	"github.com/quorate/quorate/plugins/sdk/sdktest"
)

func TestTheContractIsKept(t *testing.T) {
	allocationtest.TestStrategy(t, func(testing.TB) allocation.Strategy { return &zoneAware{skew: 1} })
}

func TestTheContractIsKeptOverTheWire(t *testing.T) {
	allocationtest.TestStrategy(t, func(tb testing.TB) allocation.Strategy {
		tb.Helper()
		return sdktest.Allocation(tb, sdk.Allocation(newZoneAware), map[string]any{"skew": 2})
	})
}

// regions returns regions in zones a, b, ..., as many as counts has in each.
func regions(counts ...int) []allocation.RegionState {
	var all []allocation.RegionState
	for zone, n := range counts {
		for i := range n {
			all = append(all, allocation.RegionState{
				ID: allocation.Region(fmt.Sprintf("%c%d", 'a'+zone, i)), Zone: string(rune('a' + zone)),
			})
		}
	}
	return all
}

func pending(n int) []allocation.Pending {
	list := make([]allocation.Pending, n)
	for i := range list {
		list[i].Shard = allocation.Shard(i)
	}
	return list
}

func TestZonesGetEquallyManyShards(t *testing.T) {
	z := &zoneAware{skew: 1}
	res, err := z.Allocate(t.Context(), allocation.AllocateRequest{Regions: regions(1, 3), Shards: pending(12)})
	require.NoError(t, err)
	count := map[allocation.Region]int{}
	for _, p := range res.Placements {
		count[p.Region]++
	}
	require.Equal(t, map[allocation.Region]int{"a0": 6, "b0": 2, "b1": 2, "b2": 2}, count)
}

func TestANewZoneTakesItsPart(t *testing.T) {
	z := &zoneAware{skew: 1}
	all := regions(2, 2, 1)
	for s := range allocation.Shard(12) {
		r := &all[s%4]
		r.Shards = append(r.Shards, s)
	}
	r := allocation.RebalanceRequest{
		Regions: all, Fitness: allocation.Fitness{OneVersion: true, NoneUnreachable: true, NoneJoining: true},
		Budget: allocation.Budget{Simultaneous: 10, PerRegion: 3},
	}
	res, err := z.Rebalance(t.Context(), r)
	require.NoError(t, err)
	require.NoError(t, allocation.CheckRebalance(&r, &res))
	require.Len(t, res.Moves, 3, "zones had 6, 6 and 0, and a region takes part in 3 moves")
	for _, m := range res.Moves {
		require.Equal(t, allocation.Region("c0"), m.To)
	}
	r.Regions = allocationtest.Apply(all, res.Moves)
	res, err = z.Rebalance(t.Context(), r)
	require.NoError(t, err)
	require.Len(t, res.Moves, 1, "the zones have 5, 4 and 3: one move makes them even")
	r.Regions = allocationtest.Apply(r.Regions, res.Moves)
	res, err = z.Rebalance(t.Context(), r)
	require.NoError(t, err)
	require.Empty(t, res.Moves)
}

func TestNothingMovesInAnUnfitCluster(t *testing.T) {
	all := regions(2)
	all[0].Shards = []allocation.Shard{1, 2, 3}
	res, err := (&zoneAware{skew: 1}).Rebalance(t.Context(), allocation.RebalanceRequest{Regions: all, Budget: allocation.Budget{Simultaneous: 9}})
	require.NoError(t, err)
	require.Empty(t, res.Moves)
	require.NotEmpty(t, res.Reason)
}

// A hundred thousand shards are placed evenly over the wire. Each batch of them takes less
// time than a call may.
func TestManyShardsAreAllocatedInTime(t *testing.T) {
	const shards, batch = 100_000, 10_000
	s := sdktest.Allocation(t, sdk.Allocation(newZoneAware), nil)
	r := allocation.AllocateRequest{Regions: regions(30, 30, 40)}
	at := map[allocation.Region]int{}
	for i := range r.Regions {
		at[r.Regions[i].ID] = i
	}
	began := time.Now()
	for first := range shards / batch {
		r.Shards = pending(batch)
		for i := range r.Shards {
			r.Shards[i].Shard += allocation.Shard(first * batch)
		}
		res, err := s.Allocate(t.Context(), r)
		require.NoError(t, err)
		require.Len(t, res.Placements, batch)
		for _, p := range res.Placements {
			home := &r.Regions[at[p.Region]]
			home.Shards = append(home.Shards, p.Shard)
		}
	}
	t.Logf("%d shards in %v", shards, time.Since(began))
	zones := map[string]int{}
	for i := range r.Regions {
		zones[r.Regions[i].Zone] += len(r.Regions[i].Shards)
	}
	require.Equal(t, map[string]int{"a": 33333, "b": 33333, "c": 33334}, zones, "the last one goes to the zone with the emptiest region")
}

func TestSettingsAreChecked(t *testing.T) {
	m, err := sdktest.Configure(t, sdk.Allocation(newZoneAware), nil)
	require.NoError(t, err)
	require.Equal(t, plugins.Class{Pure: true}, m.Class)
	_, err = sdktest.Configure(t, sdk.Allocation(newZoneAware), map[string]any{"skew": 0})
	require.ErrorIs(t, err, plugins.SettingError{Key: "skew", Reason: "0 is less than 1"})
}
