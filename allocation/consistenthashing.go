// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package allocation

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
)

// Consistent hashing: first the two decisions, then the moves of a round, last the drawing of
// lots by which each shard finds its region.

// ConsistentHashing gives each shard the region that a hash chooses, whatever the other shards
// do: by rendezvous hashing (Thaler and Ravishankar, "Using name-based mappings to increase hit
// rates", IEEE/ACM Transactions on Networking 6, 1998), weighted by the capacities (Schindelhauer
// and Schomaker, "Weighted distributed hash tables", SPAA 2005, the logarithmic method). Each
// region draws a lot for the shard, and the highest lot wins. It is immutable; create it with
// [NewConsistentHashing].
//
// The homes follow from the ids, capacities and eligibility of the regions alone. So a region
// that comes takes only the shards that it wins, and one that goes gives up only its own: of N
// shards and n equal regions about N/n, the fewest for this rule. Shards of equal numbers of
// two kinds that run on the same nodes live together, which saves a hop to entities that talk to
// each other. The price is balance: of N shards a region with the part p has N·p on average, with
// the standard deviation sqrt(N·p·(1−p)), where [LeastShard] is off by less than one. With 1,000
// shards on 10 nodes the fullest has about 115.
//
// Rebalancing moves the shards that do not live on their region, the lowest numbers first, a
// bounded number at one time, and only while the cluster is fit. App-versions do not count.
type ConsistentHashing struct {
	limits RebalanceLimits
}

var (
	_ Strategy = (*ConsistentHashing)(nil)
	_ Classed  = (*ConsistentHashing)(nil)
)

// NewConsistentHashing returns the strategy, or the faults of its configuration.
func NewConsistentHashing(c RebalanceLimits) (*ConsistentHashing, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("allocation: %w", err)
	}
	return &ConsistentHashing{limits: c}, nil
}

// Class says that the strategy is pure.
func (h *ConsistentHashing) Class() Class { return Class{Pure: true} }

// Allocate is [ConsistentHashing.DecideAllocate]; it never blocks and never fails.
func (h *ConsistentHashing) Allocate(_ context.Context, r AllocateRequest) (AllocateResult, error) {
	return h.DecideAllocate(r), nil
}

// Rebalance is [ConsistentHashing.DecideRebalance]; it never blocks and never fails.
func (h *ConsistentHashing) Rebalance(_ context.Context, r RebalanceRequest) (RebalanceResult, error) {
	return h.DecideRebalance(r), nil
}

// DecideAllocate is the pure function behind Allocate. All shards of the batch get a home, or
// none does because no region is eligible. With n shards and r regions it takes O(n·r).
func (h *ConsistentHashing) DecideAllocate(r AllocateRequest) AllocateResult {
	if len(r.Shards) == 0 {
		return AllocateResult{}
	}
	lots := newLots(eligibleSlots(r.Regions))
	if len(lots) == 0 {
		return AllocateResult{Reason: fmt.Sprintf("consistent-hashing: none of %d regions is eligible", len(r.Regions))}
	}
	reason := fmt.Sprintf("consistent-hashing: it has the highest lot of %d regions", len(lots))
	placements := make([]Placement, len(r.Shards))
	for i, p := range r.Shards {
		placements[i] = Placement{Shard: p.Shard, Region: lots.winner(p.Shard).region.ID, Reason: reason}
	}
	return AllocateResult{Placements: placements}
}

// DecideRebalance is the pure function behind Rebalance. With n shards and r regions it
// takes O(n·r + n log n).
func (h *ConsistentHashing) DecideRebalance(r RebalanceRequest) RebalanceResult {
	if h.limits.RebalanceAbsoluteLimit == 0 {
		return RebalanceResult{Reason: "consistent-hashing: rebalancing is switched off"}
	}
	if fit, why := r.Fitness.Fit(); !fit {
		return RebalanceResult{Reason: "consistent-hashing: not now: " + why}
	}
	slots := eligibleSlots(r.Regions)
	flying := arrive(slots, r.Budget.InFlight)
	strays, total := straysFrom(slots, flying, newLots(slots).winner)
	limit := min(h.limits.limit(total)-len(flying), r.Budget.Room())
	moves := within(strays, limit, r.Budget.PerRegion, "consistent-hashing: the other region has the highest lot")
	left := len(strays) - len(moves)
	switch {
	case len(moves) > 0:
		return RebalanceResult{Moves: moves, Reason: fmt.Sprintf("consistent-hashing: %d of %d shards move, %d more do not live on their regions", len(moves), total, left)}
	case left > 0:
		return RebalanceResult{Reason: fmt.Sprintf("consistent-hashing: %d shards do not live on their regions, and the budget permits no move beside %d in flight", left, len(flying))}
	}
	return RebalanceResult{Reason: fmt.Sprintf("consistent-hashing: %d shards live on their regions, or move there", total)}
}

// stray is a shard that does not live on its region.
type stray struct {
	shard    Shard
	from, to *slot
}

// straysFrom returns the shards of eligible regions that do not live on theirs, if they have one,
// and are not in flight, sorted, and the number of all shards. Shards of other regions come to
// theirs when these regions have gone.
func straysFrom(slots []*slot, flying map[Shard]bool, home func(Shard) *slot) (list []stray, total int) {
	for _, s := range slots {
		total += len(s.region.Shards)
		for _, shard := range s.region.Shards {
			if to := home(shard); to != nil && to != s && !flying[shard] {
				list = append(list, stray{shard: shard, from: s, to: to})
			}
		}
	}
	slices.SortFunc(list, func(a, b stray) int { return cmp.Compare(a.shard, b.shard) })
	return list, total
}

// within returns the moves of strays that the limits permit, for a reason.
func within(list []stray, limit, perRegion int, reason string) []Move {
	var moves []Move
	for _, s := range list {
		if len(moves) >= limit {
			break
		}
		if !s.from.permits(perRegion) || !s.to.permits(perRegion) {
			continue
		}
		s.from.moves++
		s.to.moves++
		moves = append(moves, Move{
			Shard: s.shard, From: s.from.region.ID, To: s.to.region.ID,
			Reason: reason,
		})
	}
	return moves
}

// lots are the regions that draw lots, sorted by id.
type lots []lot

// lot is a region as one that draws lots.
type lot struct {
	*slot
	seed uint64
}

func newLots(slots []*slot) lots {
	list := make(lots, len(slots))
	for i, s := range slots {
		list[i] = lot{slot: s, seed: seedOf(s.region.ID)}
	}
	return list
}

// winner returns the region with the highest lot for a shard; of equal lots the lowest id.
func (l lots) winner(s Shard) *slot {
	var best *lot
	var highest uint64
	number := mix(uint64(s))
	for i := range l {
		drawn := mix(l[i].seed ^ number)
		if best == nil || higher(drawn, l[i].weight, highest, best.weight) {
			best, highest = &l[i], drawn
		}
	}
	return best.slot
}

// higher reports whether a lot is higher than another: of equal capacities the one with the
// greater hash. Else a lot is the capacity, divided by a number that the hash distributes
// exponentially, so that the probability that a lot is the highest is the part of its region in
// the sum of the capacities.
func higher(a, weightA, b, weightB uint64) bool {
	if weightA == weightB {
		return a > b
	}
	return float64(weightA)*exponential(b) > float64(weightB)*exponential(a)
}

// exponential returns the value of the exponential distribution at a hash.
func exponential(hash uint64) float64 {
	const bits = 53 // Of a float64: each step of the unit interval is exact.
	return -math.Log((float64(hash>>(64-bits)) + 0.5) / (1 << bits))
}

// seedOf is the hash FNV-1a of a region's id.
func seedOf(id Region) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(id) {
		h = (h ^ uint64(id[i])) * 1099511628211
	}
	return h
}

// mix is the finalizer of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
// generators", OOPSLA 2014), a permutation after which each bit depends on all bits of x.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
