// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package allocation

import (
	"context"
	"fmt"
)

// Least-shard. DecideAllocate fills the regions of the newest version up to their
// share; DecideRebalance counts the moves in flight as done, computes the shares, and
// pairs regions above theirs with regions below. Shares are computed in share.go.

// LeastShard gives every region a share of the shards in proportion to its capacity.
// It is immutable; create it with [NewLeastShard].
//
// New shards go to the eligible regions of the highest app-version, each to the most
// suitable region by [CompareSuitability] that is below its share. While these regions have
// no more than a part of the capacity ([PreferNewestAbove]), they are canaries: they get their
// part of the new shards, by lot, and the other regions the rest. Rebalancing moves
// the shards that a region has had the longest from regions above their share to
// regions below, a bounded number at one time, and only while the cluster is fit.
// Moves in flight count as if they had ended, so that one slow move delays no other.
type LeastShard struct {
	config   RebalanceLimits
	versions versions
}

var (
	_ Strategy = (*LeastShard)(nil)
	_ Classed  = (*LeastShard)(nil)
)

// NewLeastShard returns the strategy, or the faults of its configuration.
func NewLeastShard(c RebalanceLimits, opts ...Option) (*LeastShard, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("allocation: %w", err)
	}
	v, err := newVersions(opts)
	return &LeastShard{config: c, versions: v}, err
}

// Class says that the strategy is pure.
func (l *LeastShard) Class() Class { return Class{Pure: true} }

// Allocate is [LeastShard.DecideAllocate]; it never blocks and never fails.
func (l *LeastShard) Allocate(_ context.Context, r AllocateRequest) (AllocateResult, error) {
	return l.DecideAllocate(r), nil
}

// Rebalance is [LeastShard.DecideRebalance]; it never blocks and never fails.
func (l *LeastShard) Rebalance(_ context.Context, r RebalanceRequest) (RebalanceResult, error) {
	return l.DecideRebalance(r), nil
}

// DecideAllocate is the pure function behind Allocate. All shards of the batch get a
// home, or none does because no region is eligible. With n shards and r regions it
// takes O(r log r + n log r).
func (l *LeastShard) DecideAllocate(r AllocateRequest) AllocateResult {
	if len(r.Shards) == 0 {
		return AllocateResult{}
	}
	slots, canaries := l.versions.split(r.Regions)
	if len(slots) == 0 {
		return AllocateResult{Reason: fmt.Sprintf("least-shard: none of %d regions is eligible", len(r.Regions))}
	}
	placements, left := canaries.take(r.Shards, LeastShardName)
	total := fill(slots, left)
	open := newQueue(slots, (*slot).below, (*slot).moreSuitable)
	reasons := make(map[*slot]string, len(slots))
	for i := range placements {
		if placements[i].Region != "" {
			continue
		}
		s := open.first()
		reason, ok := reasons[s]
		if !ok {
			reason = fmt.Sprintf("least-shard: its share is %d of %d shards on %d regions", s.share, total, len(slots))
			reasons[s] = reason
		}
		placements[i].Region, placements[i].Reason = s.region.ID, reason
		s.count++
		open.settle((*slot).below)
	}
	return AllocateResult{Placements: placements}
}

// DecideRebalance is the pure function behind Rebalance. With m moves and r
// regions it takes O(r log r + m log r).
func (l *LeastShard) DecideRebalance(r RebalanceRequest) RebalanceResult {
	if l.config.RebalanceAbsoluteLimit == 0 {
		return RebalanceResult{Reason: "least-shard: rebalancing is switched off"}
	}
	if fit, why := r.Fitness.Fit(); !fit {
		return RebalanceResult{Reason: "least-shard: not now: " + why}
	}
	slots := eligibleSlots(r.Regions)
	flying := arrive(slots, r.Budget.InFlight)
	total := apportion(slots)
	limit := min(l.config.limit(total)-len(flying), r.Budget.Room())
	moves := pair(slots, flying, limit, r.Budget.PerRegion)
	if len(moves) == 0 {
		if excess(slots) > 0 {
			if n := len(flying); n > 0 {
				return RebalanceResult{Reason: fmt.Sprintf("least-shard: out of balance, and %d moves are still in flight", n)}
			}
			return RebalanceResult{Reason: "least-shard: out of balance, but the budget permits no move"}
		}
		return RebalanceResult{Reason: fmt.Sprintf("least-shard: %d shards are balanced over %d regions", total, len(slots))}
	}
	return RebalanceResult{
		Moves:  moves,
		Reason: fmt.Sprintf("least-shard: %d of %d shards move, %d remain out of balance", len(moves), total, excess(slots)),
	}
}

// arrive counts the moves in flight as if they had ended, and returns their shards.
func arrive(slots []*slot, moves []Move) map[Shard]bool {
	if len(moves) == 0 {
		return nil
	}
	byID := make(map[Region]*slot, len(slots))
	for _, s := range slots {
		byID[s.region.ID] = s
	}
	flying := make(map[Shard]bool, len(moves))
	for _, m := range moves {
		flying[m.Shard] = true
		if s := byID[m.From]; s != nil {
			s.count--
			s.moves++
		}
		if s := byID[m.To]; s != nil {
			s.count++
			s.moves++
		}
	}
	return flying
}

// pair moves shards from slots above their share to slots below, from the fullest and
// to the emptiest first, and counts the moves in the slots. It does not move shards
// that are in flight.
func pair(slots []*slot, flying map[Shard]bool, limit, perRegion int) []Move {
	above := func(s *slot) bool { return s.count > s.share && s.permits(perRegion) && s.ready(flying) }
	below := func(s *slot) bool { return s.count < s.share && s.permits(perRegion) }
	from := newQueue(slots, above, (*slot).fuller)
	to := newQueue(slots, below, (*slot).moreSuitable)
	var moves []Move
	for len(moves) < limit && !from.empty() && !to.empty() {
		x, y := from.first(), to.first()
		moves = append(moves, Move{
			Shard: x.region.Shards[x.next], From: x.region.ID, To: y.region.ID,
			Reason: fmt.Sprintf("least-shard: %d shards here, share %d; %d there, share %d", x.count, x.share, y.count, y.share),
		})
		x.count, x.moves, x.next = x.count-1, x.moves+1, x.next+1
		y.count, y.moves = y.count+1, y.moves+1
		from.settle(above)
		to.settle(below)
	}
	return moves
}

// excess is how many shards are above the share of their region.
func excess(slots []*slot) int {
	n := 0
	for _, s := range slots {
		n += max(0, s.count-s.share)
	}
	return n
}
