// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package allocation

import (
	"context"
	"fmt"

	"github.com/quorate/quorate/config/field"
)

// Load-aware: the configuration, then the two decisions. Both see the regions as a balance
// (loadbalance.go), which knows the weights of shards and the band that regions are to be in.

// LoadAwareConfig configures [LoadAware].
type LoadAwareConfig struct {
	// Tolerance is how far the use of a region may be from the mean of all before shards
	// move: from 0.02 to 1, where 1 is a region that is full. Noise below it moves nothing.
	Tolerance float64 `koanf:"tolerance" unit:"part of a node" range:"0.02..1"`

	RebalanceLimits `koanf:",squash"`
}

// Validate returns all faults of the configuration, joined, each a
// [field.Error].
func (c LoadAwareConfig) Validate() error {
	var faults field.Faults
	faults.Add(field.Ranges(c))
	faults.Add(c.RebalanceLimits.Validate())
	return faults.Err()
}

// LoadAware gives each region load in proportion to its capacity, as the regions report it
// ([RegionState.Load]), and moves the fewest shards for it. It is immutable; create it with
// [NewLoadAware].
//
// The shards of a region weigh the same each: its load, divided among them, and a ballast that
// all shards have: with the loads it comes to half of what all regions can bear, and is a tenth of
// that at least. So regions without load are even in numbers, loads outweigh numbers where there
// are loads, and a region that has just come gets shards though nothing is known of it. The use
// of a region is the weight of its shards, as a part of what it can bear. As long as the use of
// each is within the tolerance of the mean of all eligible regions, nothing moves. Otherwise, and
// while such moves are in flight, shards leave the regions above the band, which is half of the
// tolerance around the mean, and go to those below it, until all are inside, as far as limits
// and the weights of single shards permit.
//
// The bound: let a be the number of shards that have to leave the regions above the band, and b
// the number that have to come to those below it, if all had the weight of the lightest. No more
// than a + b shards move. When all weigh the same, and no more than half of the tolerance,
// max(a, b) move, and no way into the band has fewer.
//
// New shards count as heavy as the mean of the others, and go to the region whose use is the
// lowest, with canaries as by [LeastShard]. A zone is preferred where that costs no balance: a
// new shard goes to the zone of the region that asked for it, if the use there is within the
// tolerance of the lowest, and a shard that moves stays in its zone if a region there serves as
// well.
type LoadAware struct {
	config   LoadAwareConfig
	versions versions
}

var (
	_ Strategy = (*LoadAware)(nil)
	_ Classed  = (*LoadAware)(nil)
)

// NewLoadAware returns the strategy, or the faults of its configuration.
func NewLoadAware(c LoadAwareConfig, opts ...Option) (*LoadAware, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("allocation: %w", err)
	}
	v, err := newVersions(opts)
	return &LoadAware{config: c, versions: v}, err
}

// Class says that the strategy is pure.
func (l *LoadAware) Class() Class { return Class{Pure: true} }

// Allocate is [LoadAware.DecideAllocate]; it never blocks and never fails.
func (l *LoadAware) Allocate(_ context.Context, r AllocateRequest) (AllocateResult, error) {
	return l.DecideAllocate(r), nil
}

// Rebalance is [LoadAware.DecideRebalance]; it never blocks and never fails.
func (l *LoadAware) Rebalance(_ context.Context, r RebalanceRequest) (RebalanceResult, error) {
	return l.DecideRebalance(r), nil
}

// DecideAllocate is the pure function behind Allocate. All shards of the batch get a home, or
// none does because no region is eligible. With n shards and r regions it takes O(n·r).
func (l *LoadAware) DecideAllocate(r AllocateRequest) AllocateResult {
	if len(r.Shards) == 0 {
		return AllocateResult{}
	}
	slots, canaries := l.versions.split(r.Regions)
	if len(slots) == 0 {
		return AllocateResult{Reason: fmt.Sprintf("load-aware: none of %d regions is eligible", len(r.Regions))}
	}
	placements, left := canaries.take(r.Shards, LoadAwareName)
	b := newBalance(slots, nil, left, l.tolerance())
	zones := make(map[Region]string, len(r.Regions))
	for i := range r.Regions {
		zones[r.Regions[i].ID] = r.Regions[i].Zone
	}
	for i := range placements {
		if placements[i].Region != "" {
			continue
		}
		home, near := b.place(zones[r.Shards[i].Requester])
		placements[i].Region, placements[i].Reason = home.region.ID, fmt.Sprintf("load-aware: %s uses %s of its part then, the least of %d regions", home.region.ID, parts(home.use()), len(slots))
		if near {
			placements[i].Reason = fmt.Sprintf("load-aware: in the zone %q of the region that asked; it uses %s of its part then, within %s of the least", home.region.Zone, parts(home.use()), parts(b.tolerance))
		}
	}
	return AllocateResult{Placements: placements}
}

// tolerance is that of the configuration in millionths.
func (l *LoadAware) tolerance() uint64 { return millionths(l.config.Tolerance) }

// DecideRebalance is the pure function behind Rebalance. With m moves and r regions it takes
// O(m·r).
func (l *LoadAware) DecideRebalance(r RebalanceRequest) RebalanceResult {
	if l.config.RebalanceAbsoluteLimit == 0 {
		return RebalanceResult{Reason: "load-aware: rebalancing is switched off"}
	}
	if fit, why := r.Fitness.Fit(); !fit {
		return RebalanceResult{Reason: "load-aware: not now: " + why}
	}
	slots := eligibleSlots(r.Regions)
	if len(slots) < 2 {
		return RebalanceResult{Reason: "load-aware: there are no two regions"}
	}
	b := newBalance(slots, r.Budget.InFlight, 0, l.tolerance())
	limit := min(l.config.limit(b.shards)-len(r.Budget.InFlight), r.Budget.Room())
	var moves []Move
	if !b.tolerates() {
		moves = b.moves(limit, r.Budget.PerRegion)
	}
	out := b.outside(b.tolerance)
	switch {
	case len(moves) > 0:
		return RebalanceResult{Moves: moves, Reason: fmt.Sprintf("load-aware: %d of %d shards move; the mean use is %s, and %d regions are then not within %s of it", len(moves), b.shards, parts(b.mean), out, parts(b.tolerance))}
	case out > 0:
		return RebalanceResult{Reason: fmt.Sprintf("load-aware: %d of %d regions are not within %s of the mean use %s, and no move that the budget permits beside %d in flight brings them nearer", out, len(slots), parts(b.tolerance), parts(b.mean), len(r.Budget.InFlight))}
	}
	return RebalanceResult{Reason: fmt.Sprintf("load-aware: %d regions are within %s of the mean use %s", len(slots), parts(b.tolerance), parts(b.mean))}
}
