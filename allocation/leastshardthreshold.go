// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package allocation

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/quorate/quorate/config/field"
)

// Least-shard by a threshold: the configuration, then the two decisions. Each compares two
// numbers of shards; there are no shares here.

// ThresholdConfig configures [LeastShardThreshold].
type ThresholdConfig struct {
	// RebalanceThreshold is by how many shards the fullest region may exceed the emptiest:
	// 1 to 1,000,000. It also bounds the moves of a round.
	RebalanceThreshold int `koanf:"rebalance-threshold" unit:"shards" range:"1..1000000"`
	// MaxSimultaneousRebalance is how many shards of a kind may be moving at one time: 0 to
	// 1,000,000. 0 switches rebalancing off.
	MaxSimultaneousRebalance int `koanf:"max-simultaneous-rebalance" unit:"shards" range:"0..1000000"`
}

// Validate returns all faults of the configuration, joined, each a
// [field.Error].
func (c ThresholdConfig) Validate() error {
	return field.Ranges(c)
}

// LeastShardThreshold is the least-shard strategy that Akka and Pekko have by default, for a
// comparison with it, or for a cluster that should go on as it did there. It is immutable;
// create it with [NewLeastShardThreshold].
//
// Each new shard goes to the most suitable region, by the highest app-version and then by the
// fewest shards, of which capacities are no part; canaries are spared as by [LeastShard], unless
// [PreferNewestAbove] is 0 as in the original. When the region with the most shards exceeds
// the one with the fewest by more than the threshold, as many shards move from the one to the
// other as the difference exceeds the threshold, at most the threshold itself; the lowest
// numbers first. So a round takes shards from one region only, and with the threshold 1 a single
// shard: [LeastShard] needs far fewer rounds, and shares by capacity.
type LeastShardThreshold struct {
	config   ThresholdConfig
	versions versions
}

var (
	_ Strategy = (*LeastShardThreshold)(nil)
	_ Classed  = (*LeastShardThreshold)(nil)
)

// NewLeastShardThreshold returns the strategy, or the faults of its configuration.
func NewLeastShardThreshold(c ThresholdConfig, opts ...Option) (*LeastShardThreshold, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("allocation: %w", err)
	}
	v, err := newVersions(opts)
	return &LeastShardThreshold{config: c, versions: v}, err
}

// Class says that the strategy is pure.
func (l *LeastShardThreshold) Class() Class { return Class{Pure: true} }

// Allocate is [LeastShardThreshold.DecideAllocate]; it never blocks and never fails.
func (l *LeastShardThreshold) Allocate(_ context.Context, r AllocateRequest) (AllocateResult, error) {
	return l.DecideAllocate(r), nil
}

// Rebalance is [LeastShardThreshold.DecideRebalance]; it never blocks and never fails.
func (l *LeastShardThreshold) Rebalance(_ context.Context, r RebalanceRequest) (RebalanceResult, error) {
	return l.DecideRebalance(r), nil
}

// DecideAllocate is the pure function behind Allocate. All shards of the batch get a
// home, or none does because no region is eligible. With n shards and r regions it
// takes O(r + n log r).
func (l *LeastShardThreshold) DecideAllocate(r AllocateRequest) AllocateResult {
	if len(r.Shards) == 0 {
		return AllocateResult{}
	}
	slots, canaries := l.versions.split(r.Regions)
	if len(slots) == 0 {
		return AllocateResult{Reason: fmt.Sprintf("least-shard-threshold: none of %d regions is eligible", len(r.Regions))}
	}
	always := func(*slot) bool { return true }
	open := newQueue(slots, always, func(a, b *slot) bool { return a.compareCount(b) < 0 })
	placements, _ := canaries.take(r.Shards, LeastShardThresholdName)
	for i := range placements {
		if placements[i].Region != "" {
			continue
		}
		s := open.first()
		placements[i].Region = s.region.ID
		placements[i].Reason = fmt.Sprintf("least-shard-threshold: with %d shards it had the fewest of %d regions", s.count, len(slots))
		s.count++
		open.settle(always)
	}
	return AllocateResult{Placements: placements}
}

// compareCount orders by fewer shards, then by id.
func (s *slot) compareCount(o *slot) int {
	return cmp.Or(cmp.Compare(s.count, o.count), cmp.Compare(s.region.ID, o.region.ID))
}

// DecideRebalance is the pure function behind Rebalance. Moves in flight count as if they had
// ended. With n shards and r regions it takes O(n log n + r log r).
func (l *LeastShardThreshold) DecideRebalance(r RebalanceRequest) RebalanceResult {
	if l.config.MaxSimultaneousRebalance == 0 {
		return RebalanceResult{Reason: "least-shard-threshold: rebalancing is switched off"}
	}
	if fit, why := r.Fitness.Fit(); !fit {
		return RebalanceResult{Reason: "least-shard-threshold: not now: " + why}
	}
	slots := eligibleSlots(r.Regions)
	if len(slots) < 2 {
		return RebalanceResult{Reason: "least-shard-threshold: there are no two regions"}
	}
	flying := arrive(slots, r.Budget.InFlight)
	least := slices.MinFunc(slots, (*slot).compareCount)
	most := slices.MinFunc(slots, func(a, b *slot) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.region.ID, b.region.ID))
	})
	threshold, excess := l.config.RebalanceThreshold, most.count-least.count
	if excess <= threshold {
		return RebalanceResult{Reason: fmt.Sprintf("least-shard-threshold: the fullest region has %d shards, the emptiest %d", most.count, least.count)}
	}
	limit := min(excess-threshold, threshold, l.config.MaxSimultaneousRebalance-len(flying), r.Budget.Room())
	moves := lowest(most, least, flying, limit, r.Budget.PerRegion)
	if len(moves) == 0 {
		return RebalanceResult{Reason: fmt.Sprintf("least-shard-threshold: the fullest region exceeds the emptiest by %d shards, and the budget permits no move beside %d in flight", excess, len(flying))}
	}
	return RebalanceResult{Moves: moves, Reason: fmt.Sprintf("least-shard-threshold: the fullest region exceeds the emptiest by %d shards, %d move", excess, len(moves))}
}

// lowest moves the shards with the lowest numbers from one slot to another.
func lowest(from, to *slot, flying map[Shard]bool, limit, perRegion int) []Move {
	reason := fmt.Sprintf("least-shard-threshold: %d shards here, the most; %d there, the fewest", from.count, to.count)
	var moves []Move
	for _, shard := range slices.Sorted(slices.Values(from.region.Shards)) {
		if len(moves) >= limit || !from.permits(perRegion) || !to.permits(perRegion) {
			break
		}
		if flying[shard] {
			continue
		}
		from.moves++
		to.moves++
		moves = append(moves, Move{Shard: shard, From: from.region.ID, To: to.region.ID, Reason: reason})
	}
	return moves
}
