// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package allocation_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/allocation/allocationtest"
)

// The laws of load-aware. A world here has shards with true loads, of which regions report the
// sums; an exact solver tries all homes of few shards. First the moves, then new homes, last what
// a request may be.

func loadAware(tb testing.TB, tolerance float64) *allocation.LoadAware {
	tb.Helper()
	c := allocation.Default().LoadAware
	c.Tolerance, c.RebalanceRelativeLimit = tolerance, 1
	l, err := allocation.NewLoadAware(c)
	require.NoError(tb, err)
	return l
}

func TestLoadAwareKeepsTheContract(t *testing.T) {
	allocationtest.TestStrategy(t, func(tb testing.TB) allocation.Strategy { tb.Helper(); return loadAware(tb, 0.1) })
}

// loaded returns regions with numbers of shards, loads and capacities.
func loaded(sizes []int, loads []float64, capacities ...uint32) []allocation.RegionState {
	rs := regions(sizes...)
	for i := range rs {
		if rs[i].Load = loads[i]; len(capacities) > 0 {
			rs[i].Capacity = capacities[i]
		}
	}
	return rs
}

// request asks for moves with ample room.
func request(rs []allocation.RegionState) allocation.RebalanceRequest {
	return allocation.RebalanceRequest{Regions: rs, Fitness: fit, Budget: allocation.Budget{Simultaneous: 1000}}
}

func TestLoadAwareMovesWhatTheLoadSays(t *testing.T) {
	tests := []struct {
		name     string
		sizes    []int
		loads    []float64
		capacity []uint32
		want     []int
		reason   string
	}{
		{"unequal within the band", []int{12, 9, 9}, []float64{0.4, 0.55, 0.5}, nil, []int{12, 9, 9}, "3 regions are within 0.10 of the mean use"},
		{"a hot region", []int{10, 10, 10}, []float64{0.9, 0.3, 0.3}, nil, []int{6, 12, 12}, "4 of 30 shards move"},
		{"idle", []int{30, 0, 0}, []float64{0, 0, 0}, nil, []int{11, 10, 9}, "19 of 30 shards move; the mean use is 0.50, and 0 regions are then not within 0.10 of it"},
		{"a newcomer", []int{20, 20, 0}, []float64{0.6, 0.6, 0}, nil, []int{14, 14, 12}, "12 of 40 shards move"},
		{"a great one", []int{10, 10}, []float64{0.9, 0.4}, []uint32{1, 3}, []int{6, 14}, "4 of 20 shards move"},
		{"numbers count beside great loads", []int{2, 38}, []float64{0.85, 0.95}, nil, []int{5, 35}, "3 of 40 shards move; the mean use is 1.00"},
		{"one shard that is heavy", []int{1, 4}, []float64{1, 0}, nil, []int{1, 4}, "no move that the budget permits beside 0 in flight brings them nearer"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := request(loaded(test.sizes, test.loads, test.capacity...))
			res := loadAware(t, 0.1).DecideRebalance(r)
			require.NoError(t, allocation.CheckRebalance(&r, &res))
			require.Contains(t, res.Reason, test.reason)
			require.Equal(t, test.want, counts(allocationtest.Apply(r.Regions, res.Moves)), res.Reason)
		})
	}
}

// model is what the solver knows: the homes as loads, numbers and weights of shards that are equal
// within a region, written down anew in floating point.
type model struct {
	capacity, load, weight []float64
	n                      []int
	mean, tolerance        float64
}

func newModel(rs []allocation.RegionState, tolerance float64) model {
	m := model{tolerance: tolerance}
	shards, all := 0, 0.0
	for i := range rs {
		m.capacity = append(m.capacity, float64(max(rs[i].Capacity, 1)))
		m.n = append(m.n, len(rs[i].Shards))
		shards += m.n[i]
		all += m.capacity[i]
	}
	sum, loads := 0.0, 0.0
	for i := range rs {
		loads += rs[i].Load * m.capacity[i]
	}
	for i := range rs {
		load, weight := rs[i].Load*m.capacity[i], 0.0
		if m.n[i] > 0 {
			weight = load/float64(m.n[i]) + max(all/2-loads, all/10)/float64(shards)
			load = weight * float64(m.n[i])
		}
		m.load, m.weight = append(m.load, load), append(m.weight, weight)
		sum += load
	}
	m.mean = sum / all
	m.tolerance /= 2 // The band.
	return m
}

// tolerated reports whether nothing has to move, by a margin for what integers round.
func (m model) tolerated(margin float64) bool { return m.inside(m.load, m.tolerance+margin) }

// inside reports whether loads are in the band, by a margin for what integers round.
func (m model) inside(load []float64, margin float64) bool {
	for i := range load {
		if !m.within(i, load, margin) {
			return false
		}
	}
	return true
}

// within reports whether one region is in the band.
func (m model) within(i int, load []float64, margin float64) bool {
	return math.Abs(load[i]/m.capacity[i]-m.mean) <= m.tolerance+margin
}

// fewest returns the least number of moves after which all regions are in the band, -1 if there is
// no way: it tries all numbers of shards that can go from each region to each other.
func (m model) fewest(margin float64) int {
	best := -1
	load := slices.Clone(m.load)
	var try func(from, to, left, moved int)
	try = func(from, to, left, moved int) {
		if best >= 0 && moved >= best {
			return
		}
		if from == len(m.n) {
			if m.inside(load, margin) {
				best = moved
			}
			return
		}
		if to == len(m.n) {
			next := 0
			if from+1 < len(m.n) {
				next = m.n[from+1]
			}
			try(from+1, 0, next, moved)
			return
		}
		if to == from {
			try(from, to+1, left, moved)
			return
		}
		for k := 0; k <= left; k++ {
			load[from] -= float64(k) * m.weight[from]
			load[to] += float64(k) * m.weight[from]
			try(from, to+1, left-k, moved+k)
			load[from] += float64(k) * m.weight[from]
			load[to] -= float64(k) * m.weight[from]
		}
	}
	try(0, 0, m.n[0], 0)
	return best
}

// fewestEqual is fewest for shards of one weight: it tries all numbers that regions can end with,
// which need as many moves as these exceed the numbers before.
func (m model) fewestEqual(margin float64) int {
	weight, all := slices.Max(m.weight), 0
	for _, n := range m.n {
		all += n
	}
	best, load := -1, make([]float64, len(m.n))
	var try func(i, left, moved int)
	try = func(i, left, moved int) {
		if i < len(m.n) {
			for n := 0; n <= left; n++ {
				load[i] = float64(n) * weight
				try(i+1, left-n, moved+max(0, n-m.n[i]))
			}
			return
		}
		if left == 0 && (best < 0 || moved < best) && m.inside(load, margin) {
			best = moved
		}
	}
	try(0, all, 0)
	return best
}

// needs returns how many moves out of the regions above the band, and into those below it, are
// needed at most and at least, whatever the others do.
func (m model) needs() (most, least int) {
	const margin = 1e-4 // For what integers round.
	out, in, fewestOut, fewestIn := 0, 0, 0, 0
	ceil := func(load, weight float64) int { return max(0, int(math.Ceil(load/weight))) }
	light, heavy := math.Inf(1), 0.0
	for i := range m.n {
		if m.n[i] > 0 {
			light, heavy = min(light, m.weight[i]), max(heavy, m.weight[i])
		}
	}
	for i := range m.n {
		above := m.load[i] - (m.mean+m.tolerance)*m.capacity[i]
		below := (m.mean-m.tolerance)*m.capacity[i] - m.load[i]
		if m.n[i] > 0 {
			out += ceil(above+margin, m.weight[i])
			fewestOut += ceil(above-margin, m.weight[i])
		}
		in += ceil(below+margin, light)
		fewestIn += ceil(below-margin, heavy)
	}
	return out + in, max(fewestOut, fewestIn)
}

// heaviest returns the use that the heaviest shard is of the smallest region.
func (m model) heaviest() float64 { return slices.Max(m.weight) / slices.Min(m.capacity) }

// drawSmall draws up to four regions with so few shards that a solver can try all ways.
func drawSmall(t *rapid.T, equal bool) []allocation.RegionState {
	most := map[int]int{2: 12, 3: 7, 4: 3}
	if equal {
		most = map[int]int{2: 20, 3: 16, 4: 12}
	}
	n := rapid.IntRange(2, 4).Draw(t, "regions")
	sizes, loads, capacities := make([]int, n), make([]float64, n), make([]uint32, n)
	each := rapid.Float64Range(0, 0.1).Draw(t, "each")
	for i := range n {
		sizes[i] = rapid.IntRange(0, most[n]).Draw(t, "size")
		loads[i], capacities[i] = rapid.Float64Range(0, 1).Draw(t, "load"), 1
		if sizes[i] == 0 {
			loads[i] = 0 // Else it has a load that cannot move.
		}
		if equal {
			loads[i] = each * float64(sizes[i]) / 2
		} else {
			capacities[i] = rapid.Uint32Range(1, 3).Draw(t, "capacity")
		}
	}
	return loaded(sizes, loads, capacities...)
}

// The moves are the fewest possible when all shards weigh the same and none is heavier than the
// tolerance: an exact solver finds no way into the band with fewer, and they always find one.
func TestLoadAwareMovesTheFewestOfEqualShards(t *testing.T) {
	solved := 0
	rapid.Check(t, func(t *rapid.T) {
		tolerance := rapid.Float64Range(0.2, 0.9).Draw(t, "tolerance")
		l, r := newLoadAware(t, tolerance), request(drawSmall(t, true))
		m := newModel(r.Regions, tolerance)
		if m.heaviest() > tolerance/2 {
			return
		}
		res := l.DecideRebalance(r)
		if m.tolerated(-1e-4) {
			require.Empty(t, res.Moves)
		}
		if m.tolerated(1e-4) {
			return
		}
		after := newModelAfter(m, r.Regions, res.Moves)
		require.True(t, m.inside(after, 1e-4), "%v, %s", after, res.Reason)
		require.GreaterOrEqual(t, len(res.Moves), m.fewestEqual(1e-4), "%+v", m)
		if tight := m.fewestEqual(-1e-4); tight >= 0 { // The strategy may round either way.
			require.LessOrEqual(t, len(res.Moves), tight, "%+v", m)
		}
		if len(res.Moves) > 0 {
			solved++
		}
	})
	t.Logf("%d with moves", solved)
	require.Greater(t, solved, 5)
}

// Whatever the weights and capacities, the moves are at most those that the regions above and
// below the band need together, and no way has fewer than the greater of the two; where no shard is
// heavier than the tolerance, they end in the band. No move brings a region out of it.
func TestLoadAwareKeepsItsBound(t *testing.T) {
	ways, sum, least := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		tolerance := rapid.Float64Range(0.05, 0.5).Draw(t, "tolerance")
		l, r := newLoadAware(t, tolerance), request(drawSmall(t, false))
		m := newModel(r.Regions, tolerance)
		res := l.DecideRebalance(r)
		most, needed := m.needs()
		require.LessOrEqual(t, len(res.Moves), most, "%+v", m)
		requireOneWay(t, res.Moves)
		after := newModelAfter(m, r.Regions, res.Moves)
		for i := range after {
			if m.within(i, m.load, -1e-4) {
				require.True(t, m.within(i, after, 1e-4), "region %d has left the band: %+v, %v, %s", i, m, after, res.Reason)
			}
		}
		if m.heaviest() <= tolerance/2 && !m.tolerated(1e-4) {
			require.True(t, m.inside(after, 1e-4), "%v, %s", after, res.Reason)
		}
		fewest := m.fewest(0)
		if fewest >= 0 && m.inside(after, 0) {
			require.GreaterOrEqual(t, fewest, needed, "%+v", m)
			ways, sum, least = ways+1, sum+len(res.Moves), least+fewest
		}
	})
	t.Logf("%d cases: %d moves, the solver needs %d", ways, sum, least)
	require.LessOrEqual(t, float64(sum), 1.1*float64(least))
}

// requireOneWay requires that no region both gives and takes: that would exchange shards.
func requireOneWay(t require.TestingT, moves []allocation.Move) {
	gives := map[allocation.Region]bool{}
	for _, m := range moves {
		gives[m.From] = true
	}
	for _, m := range moves {
		require.False(t, gives[m.To], "%s gives and takes: %v", m.To, moves)
	}
}

// newModelAfter returns the loads after moves.
func newModelAfter(m model, rs []allocation.RegionState, moves []allocation.Move) []float64 {
	at, load := map[allocation.Region]int{}, slices.Clone(m.load)
	for i := range rs {
		at[rs[i].ID] = i
	}
	for _, move := range moves {
		load[at[move.From]] -= m.weight[at[move.From]]
		load[at[move.To]] += m.weight[at[move.From]]
	}
	return load
}

// newLoadAware is loadAware for a test of package rapid.
func newLoadAware(t *rapid.T, tolerance float64) *allocation.LoadAware {
	c := allocation.Default().LoadAware
	c.Tolerance, c.RebalanceRelativeLimit = tolerance, 1
	l, err := allocation.NewLoadAware(c)
	require.NoError(t, err)
	return l
}

// Loads that are within half of the tolerance of each other's mean move nothing, however they
// change from round to round and whatever noise does to them.
func TestNoiseMovesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tolerance := rapid.Float64Range(0.05, 0.4).Draw(t, "tolerance")
		l, rs := newLoadAware(t, tolerance), drawRegions(t, true)
		base := rapid.Float64Range(0.2, 0.8).Draw(t, "base")
		for i := range rs {
			rs[i].Shards = make([]allocation.Shard, 20*max(rs[i].Capacity, 1)) // Even, so that loads alone differ.
			for j := range rs[i].Shards {
				rs[i].Shards[j] = allocation.Shard(1000*i + j)
			}
		}
		for range 20 {
			for i := range rs {
				rs[i].Load = base + rapid.Float64Range(-tolerance/2, tolerance/2).Draw(t, "noise")
			}
			res := l.DecideRebalance(request(rs))
			require.Empty(t, res.Moves, res.Reason)
		}
	})
}

// The order in which regions are listed changes nothing, and that of a region's shards only which
// of them move.
func TestLoadAwareKnowsNoOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLoadAware(t, 0.1)
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		r, a := allocationtest.RandomRebalanceRequest(rnd), allocationtest.RandomAllocateRequest(rnd)
		r.Fitness = fit
		if rapid.Bool().Draw(t, "idle") { // Many regions are equal then.
			for i := range r.Regions {
				r.Regions[i].Load, r.Regions[i].Capacity = 0, 1
			}
			for i := range a.Regions {
				a.Regions[i].Load, a.Regions[i].Capacity = 0, 1
			}
		}
		moves, homes := l.DecideRebalance(r), l.DecideAllocate(a)
		rnd.Shuffle(len(r.Regions), func(i, j int) { r.Regions[i], r.Regions[j] = r.Regions[j], r.Regions[i] })
		rnd.Shuffle(len(a.Regions), func(i, j int) { a.Regions[i], a.Regions[j] = a.Regions[j], a.Regions[i] })
		require.Equal(t, moves, l.DecideRebalance(r))
		require.Equal(t, homes, l.DecideAllocate(a))
		if len(r.Budget.InFlight) > 0 {
			return
		}
		for i := range r.Regions {
			own := slices.Clone(r.Regions[i].Shards)
			rnd.Shuffle(len(own), func(i, j int) { own[i], own[j] = own[j], own[i] })
			r.Regions[i].Shards = own
		}
		again := l.DecideRebalance(r)
		require.Len(t, again.Moves, len(moves.Moves))
		for i, m := range again.Moves {
			require.Equal(t, [2]allocation.Region{moves.Moves[i].From, moves.Moves[i].To}, [2]allocation.Region{m.From, m.To})
		}
	})
}

// A move stays in its zone where that serves as well, and crosses where it does not.
func TestLoadAwareMovesStayInTheirZone(t *testing.T) {
	rs := loaded([]int{10, 10, 10, 10}, []float64{0.75, 0.4, 0.4, 0.4})
	for i := range rs {
		rs[i].Zone = []string{"x", "y", "x", "y"}[i]
	}
	l := loadAware(t, 0.2)
	moves := l.DecideRebalance(request(rs)).Moves
	require.NotEmpty(t, moves)
	for _, m := range moves {
		require.Equal(t, []allocation.Region{"a", "c"}, []allocation.Region{m.From, m.To})
	}
	rs[2].Load = 0.8 // Its zone is full.
	moves = l.DecideRebalance(request(rs)).Moves
	require.NotEmpty(t, moves)
	for _, m := range moves {
		require.Contains(t, []allocation.Region{"b", "d"}, m.To)
	}

	rs = hundreds("xyx", 0.77, 0.40, 0.48)
	require.Equal(t, allocation.Region("b"), l.DecideRebalance(request(rs)).Moves[0].To, "who is below the band needs it more than who is in the zone")
}

// hundreds returns regions with a hundred shards each, a letter for the zone of each, and their loads.
func hundreds(zones string, loads ...float64) []allocation.RegionState {
	sizes := make([]int, len(loads))
	for i := range sizes {
		sizes[i] = 100
	}
	rs := loaded(sizes, loads)
	for i := range rs {
		rs[i].Zone = zones[i : i+1]
	}
	return rs
}

// A region below the band is filled from its zone, by regions above the mean, and by the fullest if there are none.
func TestLoadAwareSuppliesFromTheZone(t *testing.T) {
	l := loadAware(t, 0.2)
	moves := l.DecideRebalance(request(hundreds("xxyy", 0.34, 0.61, 0.64, 0.61))).Moves
	require.NotEmpty(t, moves)
	require.Equal(t, []allocation.Region{"b", "a"}, []allocation.Region{moves[0].From, moves[0].To})
	moves = l.DecideRebalance(request(hundreds("xxyyy", 0.34, 0.54, 0.65, 0.63, 0.59))).Moves
	require.NotEmpty(t, moves)
	require.Equal(t, []allocation.Region{"c", "a"}, []allocation.Region{moves[0].From, moves[0].To}, "b is below the mean itself")
}

// Who gives stays in the band: of a region with two heavy shards none goes to one below the band while it would
// fall below it itself, though it is the fullest.
func TestWhoGivesStaysInTheBand(t *testing.T) {
	rs := loaded([]int{2, 100, 20, 100}, []float64{0.7, 0.52, 0.1, 0.52})
	moves := loadAware(t, 0.38).DecideRebalance(request(rs)).Moves
	require.NotEmpty(t, moves)
	for _, m := range moves {
		require.Contains(t, []allocation.Region{"b", "d"}, m.From)
		require.Equal(t, allocation.Region("c"), m.To)
	}
}

// A round that may not move all begins where it helps most.
func TestLoadAwareBeginsWithTheFullest(t *testing.T) {
	r := request(hundreds("xxx", 0.67, 0.7, 0.28))
	r.Budget.Simultaneous = 1
	moves := loadAware(t, 0.2).DecideRebalance(r).Moves
	require.Len(t, moves, 1)
	require.Equal(t, []allocation.Region{"b", "c"}, []allocation.Region{moves[0].From, moves[0].To})
}

// The zone of whoever asks counts, also if it hosts nothing more itself.
func TestNewShardsGoToTheZoneOfAnyRegion(t *testing.T) {
	rs := loaded([]int{10, 10, 0}, []float64{0.2, 0.25, 0})
	rs[0].Zone, rs[1].Zone, rs[2].Zone, rs[2].Leaving = "x", "y", "y", true
	res := loadAware(t, 0.1).DecideAllocate(allocation.AllocateRequest{Regions: rs, Shards: []allocation.Pending{{Shard: 99, Requester: "c"}}})
	require.Equal(t, allocation.Region("b"), res.Placements[0].Region)
}

// A new shard goes where the use is the lowest, or to the zone of the region that asked for it
// while that is within the tolerance of the lowest.
func TestLoadAwareAllocates(t *testing.T) {
	rs := loaded([]int{10, 10, 10}, []float64{0.2, 0.25, 0.6})
	rs[0].Zone, rs[1].Zone, rs[2].Zone = "x", "y", "z"
	l := loadAware(t, 0.1)
	ask := func(requester allocation.Region) allocation.Placement {
		return l.DecideAllocate(allocation.AllocateRequest{Regions: rs, Shards: []allocation.Pending{{Shard: 99, Requester: requester}}}).Placements[0]
	}
	require.Equal(t, allocation.Placement{Shard: 99, Region: "a", Reason: "load-aware: a uses 0.39 of its part then, the least of 3 regions"}, ask(""))
	require.Equal(t, allocation.Region("a"), ask("a").Region)
	require.Equal(t, allocation.Placement{Shard: 99, Region: "b", Reason: `load-aware: in the zone "y" of the region that asked; it uses 0.44 of its part then, within 0.10 of the least`}, ask("b"))
	require.Equal(t, allocation.Region("a"), ask("c").Region, "too full")
	require.Equal(t, allocation.Region("a"), ask("elsewhere").Region)

	r := allocation.AllocateRequest{Regions: loaded([]int{0, 0, 0}, make([]float64, 3), 1, 2, 1), Shards: pending(0, 40)}
	require.Equal(t, []int{10, 20, 10}, counts(place(r.Regions, l.DecideAllocate(r).Placements)), "nothing known: by capacity")
	rs[0].Leaving, rs[1].Suspended, rs[2].Unreachable = true, true, true
	require.Equal(t, "load-aware: none of 3 regions is eligible", l.DecideAllocate(allocation.AllocateRequest{Regions: rs, Shards: pending(50, 1)}).Reason)
	require.Zero(t, l.DecideAllocate(allocation.AllocateRequest{Regions: rs}))
}

// Whatever a request holds, the answer keeps the contract: loads that are no numbers, negative or
// beyond all bounds, the greatest capacities, many regions.
func TestLoadAwareTakesAnything(t *testing.T) {
	odd := []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, math.MaxFloat64, math.SmallestNonzeroFloat64, 0, 1, 1e300, math.Copysign(0, -1)}
	rapid.Check(t, func(t *rapid.T) {
		l := newLoadAware(t, rapid.Float64Range(0.02, 1).Draw(t, "tolerance"))
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		r, a := allocationtest.RandomRebalanceRequest(rnd), allocationtest.RandomAllocateRequest(rnd)
		r.Fitness = fit
		for _, rs := range [][]allocation.RegionState{r.Regions, a.Regions} {
			for i := range rs {
				rs[i].Load = odd[rnd.IntN(len(odd))]
				rs[i].Capacity = []uint32{0, 1, 1 << 20, math.MaxUint32}[rnd.IntN(4)]
			}
		}
		moves, homes := l.DecideRebalance(r), l.DecideAllocate(a)
		require.NoError(t, allocation.CheckRebalance(&r, &moves))
		require.NoError(t, allocation.CheckAllocate(&a, &homes))
	})
	many := manyRegions(4096, 16)
	for i := range many {
		many[i].Capacity, many[i].Load = math.MaxUint32, float64(i%2)
	}
	r := request(many)
	res := loadAware(t, 0.1).DecideRebalance(r)
	require.NoError(t, allocation.CheckRebalance(&r, &res))
	require.NotEmpty(t, res.Moves)
	for _, m := range res.Moves {
		require.NotEqual(t, m.From, m.To)
	}
}

// A load that is no number or negative is none, and one that is too great is that of a full region.
func TestLoadsThatAreNoNumbersAreNone(t *testing.T) {
	l := loadAware(t, 0.1)
	decide := func(load float64) (allocation.RebalanceResult, allocation.AllocateResult) {
		rs := loaded([]int{20, 20}, []float64{load, 0.5})
		return l.DecideRebalance(request(rs)), l.DecideAllocate(allocation.AllocateRequest{Regions: rs, Shards: pending(100, 10)})
	}
	for is, same := range map[float64][]float64{
		0: {math.NaN(), -1, math.Inf(-1), math.Copysign(0, -1)},
		1: {2, 1e300, math.MaxFloat64, math.Inf(1)},
	} {
		moves, homes := decide(is)
		require.NotEmpty(t, moves.Moves)
		for _, load := range same {
			got, at := decide(load)
			require.Equal(t, moves, got, "%v", load)
			require.Equal(t, homes, at, "%v", load)
		}
	}
}

func TestLoadAwareWaits(t *testing.T) {
	l, r := loadAware(t, 0.1), request(loaded([]int{10, 0}, []float64{1, 0}))
	r.Fitness.NoneUnreachable = false
	require.Equal(t, "load-aware: not now: a member is unreachable", l.DecideRebalance(r).Reason)
	r.Fitness = fit
	require.Equal(t, "load-aware: there are no two regions", l.DecideRebalance(request(r.Regions[:1])).Reason)
	off, err := allocation.NewLoadAware(allocation.LoadAwareConfig{Tolerance: 0.1, RebalanceLimits: allocation.RebalanceLimits{RebalanceRelativeLimit: 1}})
	require.NoError(t, err)
	require.Equal(t, "load-aware: rebalancing is switched off", off.DecideRebalance(r).Reason)
	all := l.DecideRebalance(r).Moves
	for n := range len(all) + 1 {
		r.Budget.InFlight = all[:n]
		require.Len(t, l.DecideRebalance(r).Moves, len(all)-n, "what is in flight counts as if it had ended")
	}
	r = request(hundreds("xx", 0.85, 0.35))
	all = loadAware(t, 0.2).DecideRebalance(r).Moves
	r.Regions = allocationtest.Apply(r.Regions, all[:len(all)-1])
	r.Regions[0].Load, r.Regions[1].Load = 0.85*float64(len(r.Regions[0].Shards))/100, 0.35+0.85*float64(len(all)-1)/100
	require.Empty(t, loadAware(t, 0.2).DecideRebalance(r).Moves, "within the tolerance")
	r = request(hundreds("xx", 0.85, 0.35))
	r.Budget.InFlight = all[:len(all)-1]
	require.Len(t, loadAware(t, 0.2).DecideRebalance(r).Moves, 1, "a round that has begun brings all regions into the band")
	for _, tolerance := range []float64{0, 0.01, 1.1, math.NaN()} {
		_, err := allocation.NewLoadAware(allocation.LoadAwareConfig{Tolerance: tolerance, RebalanceLimits: allocation.Default().LeastShard})
		require.ErrorContains(t, err, "tolerance: ")
	}
}
