// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package allocation_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/allocation"
)

// byVersion are the strategies that look at versions, as a part of the capacity has them.
func byVersion(tb testing.TB, above float64) map[string]func(allocation.AllocateRequest) allocation.AllocateResult {
	tb.Helper()
	cfg := allocation.Default()
	cfg.PreferNewestAbove = above
	least, err := cfg.NewLeastShard()
	require.NoError(tb, err)
	old, err := allocation.NewLeastShardThreshold(cfg.LeastShardThreshold, allocation.PreferNewestAbove(above))
	require.NoError(tb, err)
	byLoad, err := allocation.NewLoadAware(cfg.LoadAware, allocation.PreferNewestAbove(above))
	require.NoError(tb, err)
	return map[string]func(allocation.AllocateRequest) allocation.AllocateResult{
		allocation.LeastShardName: least.DecideAllocate, allocation.LeastShardThresholdName: old.DecideAllocate,
		allocation.LoadAwareName: byLoad.DecideAllocate,
	}
}

// shardsOf returns the shards that a region has got.
func shardsOf(id allocation.Region, res allocation.AllocateResult) (got []allocation.Shard) {
	for _, p := range res.Placements {
		if p.Region == id {
			got = append(got, p.Shard)
		}
	}
	return got
}

// A canary that has just come is the emptiest region of the newest version. It gets its part of
// the shards that another region leaves, within five standard deviations, and the same ones
// whether they come one by one or all at a time.
func TestACanaryGetsItsPart(t *testing.T) {
	const shards, nodes = 4000, 5
	for name, allocate := range byVersion(t, 0.5) {
		rs := regions(shards, shards, shards, shards, 0)
		for i := range rs[:nodes-1] {
			rs[i].Version = "1.0"
		}
		rs[nodes-1].Version = "1.1"
		added := pending(nodes*shards, shards)
		together := allocate(allocation.AllocateRequest{Regions: rs, Shards: added})
		got := shardsOf(rs[nodes-1].ID, together)
		require.InDelta(t, shards/nodes, len(got), 5*math.Sqrt(shards/nodes), name)
		require.Contains(t, together.Placements[got[0]-nodes*shards].Reason, name+": version 1.1 has 1 of 5 regions, and gets its part of the new shards by lot")
		var single []allocation.Shard
		for _, p := range added[:100] {
			single = append(single, shardsOf(rs[nodes-1].ID, allocate(allocation.AllocateRequest{Regions: rs, Shards: []allocation.Pending{p}}))...)
		}
		require.Equal(t, got[:len(single)], single, name)
	}
}

// From the part on that the configuration says, the newest regions get all; with 0 at once, and
// with 1 never.
func TestTheNewestRegionsGetAllAboveAPart(t *testing.T) {
	for _, test := range []struct {
		above         float64
		newest, nodes int
		all           bool
	}{
		{0.5, 1, 2, false},
		{0.5, 2, 3, true},
		{0.5, 2, 4, false},
		{0, 1, 9, true},
		{1, 8, 9, false},
		{1, 9, 9, true}, // There is no other.
		{0.25, 1, 4, false},
		{0.25, 2, 4, true},
	} {
		for name, allocate := range byVersion(t, test.above) {
			rs, got := regions(make([]int, test.nodes)...), 0
			for i := range test.newest {
				rs[i].Version = "2"
			}
			res := allocate(allocation.AllocateRequest{Regions: rs, Shards: pending(0, 1000)})
			for i := range test.newest {
				got += len(shardsOf(rs[i].ID, res))
			}
			require.Equal(t, test.all, got == 1000, "%s: %+v got %d", name, test, got)
		}
	}
	for name, allocate := range byVersion(t, 0.5) {
		rs := regions(0, 0, 0)
		rs[0].Version, rs[0].Capacity = "2", 3
		res := allocate(allocation.AllocateRequest{Regions: rs, Shards: pending(0, 100)})
		require.Len(t, shardsOf("a", res), 100, "%s: one node of three has three parts of five", name)
		rs[0].Capacity, rs[1].Version, rs[2].Capacity = 1, "2", 2
		res = allocate(allocation.AllocateRequest{Regions: rs, Shards: pending(0, 100)})
		require.NotEmpty(t, shardsOf("c", res), "%s: two nodes of three have half", name)
	}
}

// Whatever the versions, every shard gets one home, and regions of old versions that are not
// canaries fill as without them.
func TestVersionsLeaveNoShardOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rs := drawRegions(t, true)
		for i := range rs {
			rs[i].Version = fmt.Sprint(rapid.IntRange(0, 3).Draw(t, "version"))
			rs[i].Unreachable = i > 0 && rapid.Bool().Draw(t, "unreachable")
		}
		r := allocation.AllocateRequest{Regions: rs, Shards: pending(1000, rapid.IntRange(1, 80).Draw(t, "n"))}
		for _, above := range []float64{0, 0.3, 1} {
			least, err := allocation.NewLeastShard(allocation.Default().LeastShard, allocation.PreferNewestAbove(above))
			require.NoError(t, err)
			res := least.DecideAllocate(r)
			require.NoError(t, allocation.CheckAllocate(&r, &res))
			require.Len(t, res.Placements, len(r.Shards))
			for i, p := range res.Placements {
				require.Equal(t, r.Shards[i].Shard, p.Shard)
			}
		}
	})
}

func TestPreferNewestAboveIsChecked(t *testing.T) {
	for _, part := range []float64{-0.1, 1.1, math.NaN(), math.Inf(1)} {
		cfg := allocation.Default()
		cfg.PreferNewestAbove = part
		require.ErrorContains(t, cfg.Validate(), "prefer-newest-above")
		_, err := cfg.NewLeastShard()
		require.ErrorContains(t, err, "is not from 0 to 1")
		_, err = allocation.NewLeastShardThreshold(cfg.LeastShardThreshold, allocation.PreferNewestAbove(part))
		require.ErrorContains(t, err, "is not from 0 to 1")
	}
}
