// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package allocation_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/allocation/allocationtest"
)

// fit is the fitness in which moves are advisable.
var fit = allocation.Fitness{OneVersion: true, NoneUnreachable: true, NoneJoining: true}

func leastShard(tb testing.TB, absolute int, relative float64) *allocation.LeastShard {
	tb.Helper()
	l, err := allocation.NewLeastShard(allocation.RebalanceLimits{
		RebalanceAbsoluteLimit: absolute, RebalanceRelativeLimit: relative,
	})
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// regions returns regions a, b, c … with the given numbers of shards, which are
// numbered consecutively.
func regions(counts ...int) []allocation.RegionState {
	out := make([]allocation.RegionState, len(counts))
	next := allocation.Shard(0)
	for i, n := range counts {
		out[i].ID = allocation.Region(fmt.Sprintf("%c", 'a'+i))
		for range n {
			out[i].Shards = append(out[i].Shards, next)
			next++
		}
	}
	return out
}

// pending returns n shards, numbered from first.
func pending(first, n int) []allocation.Pending {
	out := make([]allocation.Pending, n)
	for i := range out {
		out[i].Shard = allocation.Shard(first + i)
	}
	return out
}

// place returns the regions with the placements carried out.
func place(rs []allocation.RegionState, ps []allocation.Placement) []allocation.RegionState {
	out := slices.Clone(rs)
	at := map[allocation.Region]int{}
	for i := range out {
		out[i].Shards = slices.Clone(out[i].Shards)
		at[out[i].ID] = i
	}
	for _, p := range ps {
		i := at[p.Region]
		out[i].Shards = append(out[i].Shards, p.Shard)
	}
	return out
}

func counts(rs []allocation.RegionState) []int {
	out := make([]int, len(rs))
	for i := range rs {
		out[i] = len(rs[i].Shards)
	}
	return out
}

func TestAllocateFillsTheEmptiest(t *testing.T) {
	l := leastShard(t, 100, 0.1)
	tests := []struct {
		name string
		have []int
		add  int
		want []int
	}{
		{"from nothing", []int{0, 0, 0}, 10, []int{4, 3, 3}},
		{"one", []int{2, 1, 1}, 1, []int{2, 2, 1}},
		{"a full one gets nothing", []int{9, 1, 0}, 5, []int{9, 3, 3}},
		{"all filled", []int{3, 1, 0}, 8, []int{4, 4, 4}},
		{"one region", []int{5}, 3, []int{8}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := allocation.AllocateRequest{Regions: regions(test.have...), Shards: pending(1000, test.add)}
			res := l.DecideAllocate(r)
			require.NoError(t, allocation.CheckAllocate(&r, &res))
			require.Equal(t, test.want, counts(place(r.Regions, res.Placements)))
			for i, p := range res.Placements {
				require.Equal(t, r.Shards[i].Shard, p.Shard)
				require.NotEmpty(t, p.Reason)
			}
		})
	}
}

func TestAllocateRespectsCapacity(t *testing.T) {
	rs := regions(0, 0, 0)
	rs[0].Capacity, rs[1].Capacity, rs[2].Capacity = 4, 2, 1
	r := allocation.AllocateRequest{Regions: rs, Shards: pending(0, 70)}
	res := leastShard(t, 100, 0.1).DecideAllocate(r)
	require.Equal(t, []int{40, 20, 10}, counts(place(rs, res.Placements)))
	require.Equal(t, "least-shard: its share is 40 of 70 shards on 3 regions", res.Placements[0].Reason)

	rs[0].Capacity, rs[1].Capacity, rs[2].Capacity = 1, 3, 3
	r = allocation.AllocateRequest{Regions: rs, Shards: pending(0, 4)}
	require.Equal(t, []int{0, 2, 2}, counts(place(rs, leastShard(t, 100, 0.1).DecideAllocate(r).Placements)), "the greatest fractions")
}

// Each new shard goes to the most suitable region of those that are below their share, so that the first ones
// of a batch are spread too.
func TestEachNewShardGoesToTheMostSuitable(t *testing.T) {
	res := leastShard(t, 100, 0.1).DecideAllocate(allocation.AllocateRequest{Regions: regions(0, 1, 0), Shards: pending(10, 5)})
	var got []allocation.Region
	for _, p := range res.Placements {
		got = append(got, p.Region)
	}
	require.Equal(t, []allocation.Region{"a", "c", "a", "b", "c"}, got)
}

func TestAllocateSkipsRegionsThatCannotHost(t *testing.T) {
	rs := regions(0, 0, 0, 5)
	rs[0].Leaving, rs[1].Suspended, rs[2].Unreachable = true, true, true
	r := allocation.AllocateRequest{Regions: rs, Shards: pending(100, 3)}
	l := leastShard(t, 100, 0.1)
	require.Equal(t, []int{0, 0, 0, 8}, counts(place(rs, l.DecideAllocate(r).Placements)))

	r.Regions = rs[:3]
	res := l.DecideAllocate(r)
	require.Empty(t, res.Placements)
	require.Equal(t, "least-shard: none of 3 regions is eligible", res.Reason)
	require.Zero(t, l.DecideAllocate(allocation.AllocateRequest{Regions: rs}), "nothing asked")
}

// In a rolling update a shard that went to an old node would have to move again.
func TestAllocatePrefersTheHigherVersion(t *testing.T) {
	rs := regions(0, 5, 5)
	rs[0].Version, rs[1].Version, rs[2].Version = "1.0.0", "1.1.0", "1.1"
	r := allocation.AllocateRequest{Regions: rs, Shards: pending(100, 4)}
	require.Equal(t, []int{0, 7, 7}, counts(place(rs, leastShard(t, 100, 0.1).DecideAllocate(r).Placements)))

	rs[0].Version, rs[1].Version, rs[2].Version = "v1.9.0", "v1.10.0", "1.10"
	require.Equal(t, []int{0, 7, 7}, counts(place(rs, leastShard(t, 100, 0.1).DecideAllocate(r).Placements)), "numbers, not text")
}

func TestRebalanceMovesTheOldestShardsOfTheFullest(t *testing.T) {
	r := allocation.RebalanceRequest{
		Regions: regions(5, 5, 0), Fitness: fit, Budget: allocation.Budget{Simultaneous: 10},
	}
	res := leastShard(t, 100, 1).DecideRebalance(r)
	require.NoError(t, allocation.CheckRebalance(&r, &res))
	require.Len(t, res.Moves, 3)
	require.Equal(t, allocation.Move{
		Shard: 0, From: "a", To: "c", Reason: "least-shard: 5 shards here, share 4; 0 there, share 3",
	}, res.Moves[0])
	require.Equal(t, []allocation.Shard{0, 5, 6}, []allocation.Shard{res.Moves[0].Shard, res.Moves[1].Shard, res.Moves[2].Shard})
	require.Equal(t, "least-shard: 3 of 10 shards move, 0 remain out of balance", res.Reason)
}

// A round that may not move all begins where it helps most: with the fullest region, and with the emptiest.
func TestRebalanceBeginsWithTheFullest(t *testing.T) {
	for _, test := range []struct {
		have     []int
		from, to allocation.Region
	}{
		{[]int{6, 9, 0}, "b", "c"},
		{[]int{12, 2, 0}, "a", "c"},
	} {
		r := allocation.RebalanceRequest{Regions: regions(test.have...), Fitness: fit, Budget: allocation.Budget{Simultaneous: 1}}
		moves := leastShard(t, 100, 1).DecideRebalance(r).Moves
		require.Len(t, moves, 1)
		require.Equal(t, test.from, moves[0].From, "%v", test.have)
		require.Equal(t, test.to, moves[0].To, "%v", test.have)
	}
}

// What is in flight counts for the limits of each strategy too, whatever the budget of the caller
// permits, and stays in flight.
func TestLimitsCountWhatIsInFlight(t *testing.T) {
	limits, table := allocation.RebalanceLimits{RebalanceAbsoluteLimit: 3, RebalanceRelativeLimit: 1}, new(allocation.LocationTable)
	rs := atNodes(20, 0, 0)
	for _, shard := range rs[0].Shards {
		table.Put("k", shard, "b:1")
	}
	follow, err := allocation.NewExternal(limits, table)
	require.NoError(t, err)
	byLoad, err := allocation.NewLoadAware(allocation.LoadAwareConfig{Tolerance: 0.1, RebalanceLimits: limits})
	require.NoError(t, err)
	for name, s := range map[string]allocation.Strategy{
		allocation.LeastShardName: leastShard(t, 3, 1), allocation.ConsistentHashingName: consistent(t, 3, 1),
		allocation.LoadAwareName: byLoad, allocation.ExternalName: follow, allocation.LeastShardThresholdName: threshold(t, 5, 3),
	} {
		r := allocation.RebalanceRequest{Kind: "k", Regions: rs, Fitness: fit, Budget: allocation.Budget{Simultaneous: 1000}}
		for moving := range 4 {
			res, err := s.Rebalance(t.Context(), r)
			require.NoError(t, err)
			require.NoError(t, allocation.CheckRebalance(&r, &res), name)
			require.Len(t, res.Moves, 3-moving, name)
			if moving < 3 {
				r.Budget.InFlight = append(r.Budget.InFlight, res.Moves[0])
			}
		}
	}
}

func TestRebalanceLimits(t *testing.T) {
	tests := []struct {
		name         string
		absolute     int
		relative     float64
		simultaneous int
		perRegion    int
		moves        int
		reason       string
	}{
		{"relative limit", 100, 0.1, 1000, 0, 20, "20 remain"},
		{"absolute limit", 7, 0.1, 1000, 0, 7, "33 remain"},
		{"at least one", 100, 0.001, 1000, 0, 1, "39 remain"},
		{"simultaneous", 100, 0.1, 3, 0, 3, "37 remain"},
		{"per region", 100, 0.1, 1000, 2, 2, "38 remain"},
		{"no budget", 100, 0.1, 0, 0, 0, "budget permits no move"},
		{"off", 0, 0.1, 1000, 0, 0, "switched off"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := allocation.RebalanceRequest{
				Regions: regions(50, 50, 50, 50, 0), Fitness: fit,
				Budget: allocation.Budget{Simultaneous: test.simultaneous, PerRegion: test.perRegion},
			}
			res := leastShard(t, test.absolute, test.relative).DecideRebalance(r)
			require.NoError(t, allocation.CheckRebalance(&r, &res))
			require.Len(t, res.Moves, test.moves)
			require.Contains(t, res.Reason, test.reason)
		})
	}
}

func TestRebalanceWaits(t *testing.T) {
	l := leastShard(t, 100, 1)
	tests := []struct {
		name    string
		fitness allocation.Fitness
		reason  string
	}{
		{"versions differ", allocation.Fitness{NoneUnreachable: true, NoneJoining: true}, "least-shard: not now: regions run different app-versions"},
		{"unreachable", allocation.Fitness{OneVersion: true, NoneJoining: true}, "least-shard: not now: a member is unreachable"},
		{"joining", allocation.Fitness{OneVersion: true, NoneUnreachable: true}, "least-shard: not now: a member is joining"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			res := l.DecideRebalance(allocation.RebalanceRequest{
				Regions: regions(10, 0), Fitness: test.fitness,
				Budget: allocation.Budget{Simultaneous: 10},
			})
			require.Empty(t, res.Moves)
			require.Equal(t, test.reason, res.Reason)
		})
	}
}

// Moves in flight count as if they had ended: other moves begin beside them, within
// the budget, and not too many.
func TestRebalanceGoesOnBesideMovesInFlight(t *testing.T) {
	l := leastShard(t, 100, 1)
	flight := func(n int) (moves []allocation.Move) {
		for i := range n {
			moves = append(moves, allocation.Move{Shard: allocation.Shard(i), From: "a", To: "b"})
		}
		return moves
	}
	ask := func(n, perRegion int, sizes ...int) allocation.RebalanceResult {
		r := allocation.RebalanceRequest{
			Regions: regions(sizes...), Fitness: fit,
			Budget: allocation.Budget{Simultaneous: 4, PerRegion: perRegion, InFlight: flight(n)},
		}
		res := l.DecideRebalance(r)
		require.NoError(t, allocation.CheckRebalance(&r, &res))
		return res
	}
	res := ask(2, 0, 10, 0)
	require.Len(t, res.Moves, 2, "four at one time")
	require.EqualValues(t, 2, res.Moves[0].Shard, "those in flight are left alone")
	require.Len(t, ask(2, 3, 10, 0).Moves, 1, "three with one region")
	res = ask(4, 0, 10, 0)
	require.Empty(t, res.Moves)
	require.Equal(t, "least-shard: out of balance, and 4 moves are still in flight", res.Reason)
	require.Empty(t, ask(3, 0, 6, 0).Moves, "balanced when they have arrived")
	require.Empty(t, ask(2, 0, 5, 0).Moves, "as even as five can be when they have arrived")
	require.Empty(t, ask(2, 0, 2, 0, 0, 0).Moves, "what has not arrived cannot go on")

	stray := allocation.RebalanceRequest{Regions: regions(3, 0, 0), Fitness: fit, Budget: allocation.Budget{Simultaneous: 9, InFlight: flight(3)}}
	stray.Budget.InFlight[0].From, stray.Budget.InFlight[1].From = "z", "z"
	res = l.DecideRebalance(stray)
	require.Empty(t, res.Moves, "a request that contradicts itself does no harm")
}

// drawRegions draws regions of one version and, unless weighted, one capacity.
func drawRegions(t *rapid.T, weighted bool) []allocation.RegionState {
	sizes := rapid.SliceOfN(rapid.IntRange(0, 40), 1, 12).Draw(t, "sizes")
	rs := regions(sizes...)
	for i := range rs {
		if weighted {
			rs[i].Capacity = rapid.Uint32Range(0, 9).Draw(t, "capacity")
		}
	}
	return rs
}

// In the end, a region that got a shard has at most one more than the emptiest region.
func TestAllocatePropertyLevels(t *testing.T) {
	l := leastShard(t, 100, 0.1)
	rapid.Check(t, func(t *rapid.T) {
		r := allocation.AllocateRequest{Regions: drawRegions(t, false), Shards: pending(1000, rapid.IntRange(1, 200).Draw(t, "n"))}
		before := counts(r.Regions)
		res := l.DecideAllocate(r)
		require.NoError(t, allocation.CheckAllocate(&r, &res))
		require.Len(t, res.Placements, len(r.Shards))
		after := counts(place(r.Regions, res.Placements))
		for i := range after {
			if after[i] > before[i] {
				require.LessOrEqual(t, after[i], slices.Min(after)+1, "before %v, after %v", before, after)
			}
		}
	})
}

// A batch that is allocated to empty regions gives each its exact part, rounded.
func TestAllocatePropertyQuota(t *testing.T) {
	l := leastShard(t, 100, 0.1)
	rapid.Check(t, func(t *rapid.T) {
		rs := drawRegions(t, true)
		for i := range rs {
			rs[i].Shards = nil
		}
		r := allocation.AllocateRequest{Regions: rs, Shards: pending(0, rapid.IntRange(1, 500).Draw(t, "n"))}
		requireQuota(t, place(rs, l.DecideAllocate(r).Placements))
	})
}

// A batch fills regions of unequal capacities like water: whoever has more than its part keeps what it has, and the
// others get their exact parts of the rest, rounded.
func TestAllocatePropertyWater(t *testing.T) {
	l := leastShard(t, 100, 0.1)
	fills := func(t require.TestingT, rs []allocation.RegionState, n int) {
		after := counts(place(rs, l.DecideAllocate(allocation.AllocateRequest{Regions: rs, Shards: pending(1000, n)}).Placements))
		for i, want := range water(rs, n) {
			require.InDelta(t, want, float64(after[i]), 1-1e-6, "before %v, after %v", counts(rs), after)
		}
	}
	one := regions(100, 0, 0, 0, 0)
	one[4].Capacity = 9
	fills(t, one, 4)
	rapid.Check(t, func(t *rapid.T) { fills(t, drawRegions(t, true), rapid.IntRange(1, 100).Draw(t, "n")) })
}

// water returns what regions have once n shards more are poured over them, were shards divisible.
func water(rs []allocation.RegionState, n int) []float64 {
	filled := func(level float64) (have []float64, added float64) {
		for i := range rs {
			own := float64(len(rs[i].Shards))
			have = append(have, max(own, level*float64(max(rs[i].Capacity, 1))))
			added += have[i] - own
		}
		return have, added
	}
	low, high := 0.0, 1e6
	for range 100 {
		level := (low + high) / 2
		if _, added := filled(level); added < float64(n) {
			low = level
		} else {
			high = level
		}
	}
	have, _ := filled(low)
	return have
}

// requireQuota requires that no region is a whole shard away from its exact part.
func requireQuota(t require.TestingT, rs []allocation.RegionState) {
	total, weights := 0, 0
	for i := range rs {
		total += len(rs[i].Shards)
		weights += int(max(rs[i].Capacity, 1))
	}
	for i := range rs {
		exact := float64(total) * float64(max(rs[i].Capacity, 1)) / float64(weights)
		require.InDelta(t, exact, float64(len(rs[i].Shards)), 1-1e-9, "%v", counts(rs))
	}
}

// Rebalancing soon ends in balance, and then moves nothing.
func TestRebalancePropertySettles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, err := allocation.NewLeastShard(allocation.RebalanceLimits{
			RebalanceAbsoluteLimit: rapid.IntRange(1, 20).Draw(t, "absolute"),
			RebalanceRelativeLimit: rapid.Float64Range(0.01, 1).Draw(t, "relative"),
		})
		require.NoError(t, err)
		r := allocation.RebalanceRequest{
			Regions: drawRegions(t, true), Fitness: fit,
			Budget: allocation.Budget{Simultaneous: rapid.IntRange(1, 30).Draw(t, "simultaneous"), PerRegion: rapid.IntRange(0, 3).Draw(t, "per region")},
		}
		total, moved := 0, 0
		for _, n := range counts(r.Regions) {
			total += n
		}
		for {
			res := l.DecideRebalance(r)
			require.NoError(t, allocation.CheckRebalance(&r, &res))
			if len(res.Moves) == 0 {
				break
			}
			moved += len(res.Moves)
			require.LessOrEqual(t, moved, total, "a shard moves at most once")
			r.Regions = allocationtest.Apply(r.Regions, res.Moves)
		}
		requireQuota(t, r.Regions)
	})
}

// Shards that were allocated to empty regions in one batch are never moved afterwards.
func TestRebalanceLeavesAFreshAllocationAlone(t *testing.T) {
	l := leastShard(t, 100, 1)
	rapid.Check(t, func(t *rapid.T) {
		rs := drawRegions(t, true)
		for i := range rs {
			rs[i].Shards = nil
		}
		r := allocation.AllocateRequest{Regions: rs, Shards: pending(0, rapid.IntRange(1, 300).Draw(t, "n"))}
		rs = place(rs, l.DecideAllocate(r).Placements)
		res := l.DecideRebalance(allocation.RebalanceRequest{Regions: rs, Fitness: fit, Budget: allocation.Budget{Simultaneous: 100}})
		require.Empty(t, res.Moves)
	})
}

// Equal requests get equal answers, whatever the order of the regions.
func TestDecisionsDoNotDependOnTheOrderOfRegions(t *testing.T) {
	l := leastShard(t, 100, 0.5)
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		a, b := allocationtest.RandomAllocateRequest(rnd), allocationtest.RandomRebalanceRequest(rnd)
		first, moves := l.DecideAllocate(a), l.DecideRebalance(b)
		rnd.Shuffle(len(a.Regions), func(i, j int) { a.Regions[i], a.Regions[j] = a.Regions[j], a.Regions[i] })
		rnd.Shuffle(len(b.Regions), func(i, j int) { b.Regions[i], b.Regions[j] = b.Regions[j], b.Regions[i] })
		require.Equal(t, first, l.DecideAllocate(a), "seed %d", seed)
		require.Equal(t, moves, l.DecideRebalance(b), "seed %d", seed)
	}
}

// The arithmetic must hold for the greatest capacities and many shards.
func TestExtremeCapacities(t *testing.T) {
	rs := regions(0, 0, 0)
	rs[0].Capacity, rs[1].Capacity = 1<<32-1, allocation.MaxCapacity
	r := allocation.AllocateRequest{Regions: rs, Shards: pending(0, 200_001)}
	got := counts(place(rs, leastShard(t, 100, 0.1).DecideAllocate(r).Placements))
	require.Equal(t, []int{100_001, 100_000, 0}, got)
}
