// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Command zoneaware is an allocation plugin that gives every zone as many shards as
// any other, so that the loss of a zone stops as little as possible.
package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/sdk"
)

// settings are the settings under plugins.<name>.settings.
type settings struct {
	Skew int // Largest difference between zones, or between regions of a zone. From 1, the default.
}

// SetDefaults sets the skew to 1.
func (s *settings) SetDefaults() { s.Skew = 1 }

type zoneAware struct{ skew int }

func newZoneAware(s settings) (allocation.Strategy, error) {
	if s.Skew < 1 {
		return nil, plugins.SettingError{Key: "skew", Reason: fmt.Sprintf("%d is less than 1", s.Skew)}
	}
	return &zoneAware{s.Skew}, nil
}

// Class says that equal requests get equal answers.
func (z *zoneAware) Class() allocation.Class { return allocation.Class{Pure: true} }

// region is a region that can take shards. Shards on their way to it count.
type region struct {
	id           allocation.Region
	zone         string
	shards       []allocation.Shard // Shards that may move.
	count, moves int                // Number of shards, and of moves that the region takes part in.
}

// compare orders regions, the best for one more shard first.
func compare(zones map[string]int) func(a, b *region) int {
	return func(a, b *region) int {
		return cmp.Or(cmp.Compare(zones[a.zone], zones[b.zone]), cmp.Compare(a.count, b.count), cmp.Compare(a.id, b.id))
	}
}

// eligible returns the regions that can take shards, and the shards of each zone.
func eligible(states []allocation.RegionState, flying []allocation.Move) ([]*region, map[string]int) {
	var regions []*region
	zones := map[string]int{}
	for i := range states {
		if s := &states[i]; s.Eligible() {
			r := &region{id: s.ID, zone: s.Zone, shards: slices.Clone(s.Shards), count: len(s.Shards)}
			for _, m := range flying {
				if m.From == r.id {
					r.shards = slices.DeleteFunc(r.shards, func(x allocation.Shard) bool { return x == m.Shard })
					r.count, r.moves = r.count-1, r.moves+1
				} else if m.To == r.id {
					r.count, r.moves = r.count+1, r.moves+1
				}
			}
			regions, zones[r.zone] = append(regions, r), zones[r.zone]+r.count
		}
	}
	slices.SortFunc(regions, func(a, b *region) int { return cmp.Compare(a.id, b.id) })
	return regions, zones
}

// Allocate gives each shard to the emptiest region of the emptiest zone.
func (z *zoneAware) Allocate(_ context.Context, r allocation.AllocateRequest) (res allocation.AllocateResult, err error) {
	regions, zones := eligible(r.Regions, nil)
	if len(regions) == 0 {
		return allocation.AllocateResult{Reason: "zone-aware: no region can take shards"}, nil
	}
	for _, p := range r.Shards { // Each shard sees the placements of the ones before.
		to := slices.MinFunc(regions, compare(zones))
		to.count, zones[to.zone] = to.count+1, zones[to.zone]+1
		res.Placements = append(res.Placements, allocation.Placement{Shard: p.Shard, Region: to.id, Reason: "zone-aware: fewest in zone " + to.zone})
	}
	return res, nil
}

// Rebalance moves shards from fuller zones to emptier ones, and within zones.
func (z *zoneAware) Rebalance(_ context.Context, r allocation.RebalanceRequest) (res allocation.RebalanceResult, err error) {
	if fit, why := r.Fitness.Fit(); !fit {
		return allocation.RebalanceResult{Reason: "zone-aware: not now: " + why}, nil
	}
	regions, zones := eligible(r.Regions, r.Budget.InFlight)
	for len(res.Moves) < r.Budget.Room() {
		var from, to *region
		most := [2]int{} // Differences between zones, then between regions.
		for _, a := range regions {
			for _, b := range regions {
				gap := [2]int{zones[a.zone] - zones[b.zone], a.count - b.count}
				even := gap[0] <= z.skew && (a.zone != b.zone || gap[1] <= z.skew)
				full := r.Budget.PerRegion > 0 && max(a.moves, b.moves) >= r.Budget.PerRegion
				if !even && !full && len(a.shards) > 0 && (from == nil || slices.Compare(gap[:], most[:]) > 0) {
					from, to, most = a, b, gap
				}
			}
		}
		if from == nil {
			break
		}
		res.Moves = append(res.Moves, allocation.Move{Shard: from.shards[0], From: from.id, To: to.id, Reason: fmt.Sprint("zone-aware: zone, region fuller by ", most)})
		from.shards, from.count, from.moves, to.count, to.moves = from.shards[1:], from.count-1, from.moves+1, to.count+1, to.moves+1
		zones[from.zone], zones[to.zone] = zones[from.zone]-1, zones[to.zone]+1
	}
	return res, nil
}

func main() {
	sdk.Serve(sdk.Allocation(newZoneAware), sdk.WithName("zone-aware"), sdk.WithVersion("1.0.0"))
}
