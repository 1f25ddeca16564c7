// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package allocation_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/allocation/allocationtest"
)

func TestLeastShardKeepsTheContract(t *testing.T) {
	allocationtest.TestStrategy(t, func(tb testing.TB) allocation.Strategy {
		tb.Helper()
		s, err := allocation.New(allocation.Default())
		if err != nil {
			tb.Fatal(err)
		}
		return s
	})
}

// Each rule of the order must matter only when the ones before it do not decide.
func TestCompareSuitability(t *testing.T) {
	best := allocation.RegionState{ID: "b", Version: "2.0.0", Capacity: 2, Shards: make([]allocation.Shard, 3)}
	tests := []struct {
		name  string
		worse func(r *allocation.RegionState)
	}{
		{"leaving, though newer and empty", func(r *allocation.RegionState) { r.Leaving, r.Version, r.Shards = true, "3.0.0", nil }},
		{"suspended", func(r *allocation.RegionState) { r.Suspended = true }},
		{"unreachable", func(r *allocation.RegionState) { r.Unreachable = true }},
		{"older, though empty", func(r *allocation.RegionState) { r.Version, r.Shards, r.ID = "1.9.9", nil, "a" }},
		{"fewer shards, but more for its capacity", func(r *allocation.RegionState) {
			r.Shards, r.Capacity, r.ID = make([]allocation.Shard, 2), 1, "a"
		}},
		{"higher id", func(r *allocation.RegionState) { r.ID = "c" }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			other := best
			test.worse(&other)
			require.Negative(t, allocation.CompareSuitability(&best, &other))
			require.Positive(t, allocation.CompareSuitability(&other, &best))
		})
	}
	require.Zero(t, allocation.CompareSuitability(&best, &best))
}

func TestConfigReportsEveryFault(t *testing.T) {
	require.NoError(t, allocation.Default().Validate())
	c := allocation.Config{LeastShard: allocation.RebalanceLimits{RebalanceAbsoluteLimit: -1, RebalanceRelativeLimit: 1.5}}
	err := c.Validate()
	require.ErrorContains(t, err, "strategy")
	require.ErrorContains(t, err, "rebalance-absolute-limit")
	require.ErrorContains(t, err, "rebalance-relative-limit")
	_, err = allocation.New(c)
	require.Error(t, err)
	_, err = allocation.NewLeastShard(c.LeastShard)
	require.Error(t, err)
	c.LeastShard.RebalanceRelativeLimit = math.NaN()
	require.ErrorContains(t, c.Validate(), "rebalance-relative-limit: NaN is not above 0")
}

func TestNewRefusesUnknownNames(t *testing.T) {
	c := allocation.Default()
	c.Strategy = "by-moon-phase"
	_, err := allocation.New(c)
	require.ErrorIs(t, err, allocation.ErrUnknownStrategy)
	require.ErrorContains(t, err, "by-moon-phase")
}

func TestClassOf(t *testing.T) {
	s, err := allocation.New(allocation.Default())
	require.NoError(t, err)
	require.Equal(t, allocation.Class{Pure: true}, allocation.ClassOf(s))
	require.Equal(t, allocation.Class{}, allocation.ClassOf(struct{ allocation.Strategy }{}))
}

// covers F40: answers that name unknown regions or shards, or too many of them.
func TestCheckAllocateFindsEveryFault(t *testing.T) {
	r := allocation.AllocateRequest{
		Regions: []allocation.RegionState{
			{ID: "a"}, {ID: "l", Leaving: true}, {ID: "s", Suspended: true}, {ID: "u", Unreachable: true},
		},
		Shards: []allocation.Pending{{Shard: 1}, {Shard: 2}},
	}
	place := func(ps ...allocation.Placement) allocation.AllocateResult {
		return allocation.AllocateResult{Placements: ps}
	}
	long := string(make([]byte, allocation.MaxReason+1))
	tests := []struct {
		name string
		res  allocation.AllocateResult
		want string
	}{
		{"nothing", place(), ""},
		{"all", place(allocation.Placement{Shard: 2, Region: "a"}, allocation.Placement{Shard: 1, Region: "a"}), ""},
		{"unknown shard", place(allocation.Placement{Shard: 3, Region: "a"}), "was not asked for"},
		{"twice", place(allocation.Placement{Shard: 1, Region: "a"}, allocation.Placement{Shard: 1, Region: "a"}), "placed twice"},
		{"too many", place(make([]allocation.Placement, 3)...), "3 placements for 2 shards"},
		{"unknown region", place(allocation.Placement{Shard: 1, Region: "x"}), "not in the request"},
		{"no region", place(allocation.Placement{Shard: 1}), "not in the request"},
		{"leaving", place(allocation.Placement{Shard: 1, Region: "l"}), "leaving"},
		{"suspended", place(allocation.Placement{Shard: 1, Region: "s"}), "suspended"},
		{"unreachable", place(allocation.Placement{Shard: 1, Region: "u"}), "unreachable"},
		{"long reason", place(allocation.Placement{Shard: 1, Region: "a", Reason: long}), "limit is 1024"},
		{"long reason of the result", allocation.AllocateResult{Reason: long}, "limit is 1024"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			requireFault(t, allocation.CheckAllocate(&r, &test.res), test.want)
		})
	}
}

// covers F40, I21: no shard is in two moves, and the budget is kept.
func TestCheckRebalanceFindsEveryFault(t *testing.T) {
	r := allocation.RebalanceRequest{
		Regions: []allocation.RegionState{
			{ID: "a", Shards: []allocation.Shard{1, 2, 3, 4}},
			{ID: "b", Shards: []allocation.Shard{5}},
			{ID: "c"},
			{ID: "l", Leaving: true, Shards: []allocation.Shard{6}},
			{ID: "s", Suspended: true, Shards: []allocation.Shard{7}},
			{ID: "u", Unreachable: true, Shards: []allocation.Shard{8}},
		},
		Budget: allocation.Budget{Simultaneous: 4, PerRegion: 2, InFlight: []allocation.Move{{Shard: 1, From: "a", To: "b"}}},
	}
	move := func(s allocation.Shard, from, to allocation.Region) allocation.Move {
		return allocation.Move{Shard: s, From: from, To: to}
	}
	long := string(make([]byte, allocation.MaxReason+1))
	tests := []struct {
		name  string
		moves []allocation.Move
		want  string
	}{
		{"nothing", nil, ""},
		{"one", []allocation.Move{move(2, "a", "b")}, ""},
		{"away from a leaving one", []allocation.Move{move(6, "l", "a")}, ""},
		{"too many", make([]allocation.Move, 4), "4 moves, 3 more may begin"},
		{"too many with one region", []allocation.Move{move(2, "a", "b"), move(3, "a", "b")}, "a region may take part in"},
		{"too many from one region", []allocation.Move{move(2, "a", "c"), move(3, "a", "c")}, "a region may take part in"},
		{"too many to one region", []allocation.Move{move(6, "l", "b"), move(2, "a", "b")}, "a region may take part in"},
		{"in flight", []allocation.Move{move(1, "a", "b")}, "already on the move"},
		{"twice", []allocation.Move{move(6, "l", "a"), move(6, "l", "b")}, "already on the move"},
		{"not hosted there", []allocation.Move{move(5, "a", "b")}, "does not host it"},
		{"unknown shard", []allocation.Move{move(9, "a", "b")}, "does not host it"},
		{"unknown origin", []allocation.Move{move(2, "x", "b")}, "not in the request"},
		{"unknown target", []allocation.Move{move(2, "a", "x")}, "not in the request"},
		{"to itself", []allocation.Move{move(2, "a", "a")}, "to where it is"},
		{"to a leaving one", []allocation.Move{move(2, "a", "l")}, "leaving"},
		{"to a suspended one", []allocation.Move{move(2, "a", "s")}, "suspended"},
		{"to an unreachable one", []allocation.Move{move(2, "a", "u")}, "unreachable"},
		{"from a suspended one", []allocation.Move{move(7, "s", "a")}, "cannot confirm"},
		{"from an unreachable one", []allocation.Move{move(8, "u", "a")}, "cannot confirm"},
		{"long reason", []allocation.Move{{Shard: 2, From: "a", To: "b", Reason: long}}, "limit is 1024"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			requireFault(t, allocation.CheckRebalance(&r, &allocation.RebalanceResult{Moves: test.moves}), test.want)
		})
	}
	requireFault(t, allocation.CheckRebalance(&r, &allocation.RebalanceResult{Reason: long}), "limit is 1024")
}

func requireFault(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" {
		require.NoError(t, err)
		return
	}
	require.ErrorContains(t, err, want)
	require.ErrorIs(t, err, allocation.ErrContract)
	var fault *allocation.ContractError
	require.ErrorAs(t, err, &fault)
}

func TestValidateRequests(t *testing.T) {
	home := []allocation.RegionState{{ID: "a", Shards: []allocation.Shard{1}}, {ID: "b"}}
	tests := []struct {
		name    string
		regions []allocation.RegionState
		pending []allocation.Pending
		want    string
	}{
		{"fine", home, []allocation.Pending{{Shard: 2}}, ""},
		{"no id", []allocation.RegionState{{}}, nil, "no id"},
		{"region twice", []allocation.RegionState{{ID: "a"}, {ID: "a"}}, nil, "listed twice"},
		{"two homes", slices.Concat(home, []allocation.RegionState{{ID: "c", Shards: []allocation.Shard{1}}}), nil, "two homes"},
		{"asked twice", home, []allocation.Pending{{Shard: 2}, {Shard: 2}}, "asked for twice"},
		{"has a home", home, []allocation.Pending{{Shard: 1}}, "has a home"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := allocation.AllocateRequest{Regions: test.regions, Shards: test.pending}
			requireFault(t, r.Validate(), test.want)
			if test.pending == nil {
				b := allocation.RebalanceRequest{Regions: test.regions}
				requireFault(t, b.Validate(), test.want)
			}
		})
	}
	negative := allocation.RebalanceRequest{Budget: allocation.Budget{PerRegion: -1}}
	requireFault(t, negative.Validate(), "negative")
}
