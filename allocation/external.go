// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package allocation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// External allocation: the two decisions, which follow a map of locations, and LocationTable, a map in
// memory with which a program says where shards should live.

// Locations says where shards should live, for [External]. It is asked on the goroutine of the
// strategy, about many shards at a time, so that it should answer from memory; it must be safe for
// concurrent use. [LocationTable] implements it.
type Locations interface {
	// Location returns the address of the node on which a shard of a kind should live, as
	// "host:port"; empty if nobody has said so.
	Location(kind string, shard Shard) string
}

// External puts shards where the program says: beside the partition of a queue that a node reads,
// or near the data of a customer. It is immutable; create it with [NewExternal], and give it to
// package sharding by WithAllocation.
//
// A new shard goes to its location. While that is not known, or no region there can host, it goes
// to the region that asked for it, and without one of these as [LeastShard] says. Rebalancing moves
// shards that live elsewhere to their locations as soon as a region there can host, the lowest
// numbers first, a bounded number at one time; also while the cluster is not fit, since the program
// has said so. A shard without a location stays where it is.
//
// The coordinator asks the strategy of its own node, so each node needs the same locations: a
// program replicates them, as with package ddata, and enters them into the [LocationTable] of each node.
type External struct {
	limits    RebalanceLimits
	locations Locations
	others    *LeastShard
}

var (
	_ Strategy  = (*External)(nil)
	_ Locations = (*LocationTable)(nil)
)

// NewExternal returns the strategy, or the faults of its configuration. The locations must not be
// nil.
func NewExternal(c RebalanceLimits, l Locations) (*External, error) {
	others, err := NewLeastShard(c)
	if err != nil {
		return nil, err
	}
	return &External{limits: c, locations: l, others: others}, nil
}

// Allocate never blocks but for the locations, and never fails. All shards of the batch get a home,
// or none does because no region is eligible.
func (e *External) Allocate(_ context.Context, r AllocateRequest) (AllocateResult, error) {
	slots := eligibleSlots(r.Regions)
	at, byID := locate(slots), make(map[Region]*slot, len(slots))
	for _, s := range slots {
		byID[s.region.ID] = s
	}
	chosen, rest := make(map[Shard]Placement, len(r.Shards)), make([]Pending, 0, len(r.Shards))
	got := make(map[Region][]Shard, len(slots))
	for _, p := range r.Shards {
		address := e.locations.Location(r.Kind, p.Shard)
		home, reason := at[address], "external: its location is "+address
		if home == nil {
			home, reason = byID[p.Requester], "external: the region asked for it, and "+absent(address)
		}
		if home == nil {
			rest = append(rest, p)
			continue
		}
		got[home.region.ID] = append(got[home.region.ID], p.Shard)
		chosen[p.Shard] = Placement{Shard: p.Shard, Region: home.region.ID, Reason: clipReason(reason)}
	}
	left := e.others.DecideAllocate(AllocateRequest{Kind: r.Kind, Regions: with(r.Regions, got), Shards: rest, Fitness: r.Fitness})
	for _, p := range left.Placements {
		p.Reason = "external: nothing says where it should live; " + p.Reason
		chosen[p.Shard] = p
	}
	res := AllocateResult{Reason: left.Reason}
	for _, p := range r.Shards {
		if home, ok := chosen[p.Shard]; ok {
			res.Placements = append(res.Placements, home)
		}
	}
	return res, nil
}

// absent says why a location was not followed.
func absent(address string) string {
	if address == "" {
		return "nothing says where it should live"
	}
	return "no region at its location " + address + " can host"
}

// with returns the regions with further shards.
func with(regions []RegionState, more map[Region][]Shard) []RegionState {
	regions = slices.Clone(regions)
	for i := range regions {
		if got := more[regions[i].ID]; len(got) > 0 {
			regions[i].Shards = slices.Concat(regions[i].Shards, got)
		}
	}
	return regions
}

// locate returns slots by the addresses of their nodes, which their ids begin with. Of two
// incarnations of a node the later one in the order of ids counts.
func locate(slots []*slot) map[string]*slot {
	at := make(map[string]*slot, len(slots))
	for _, s := range slots {
		address, _, _ := strings.Cut(string(s.region.ID), "#")
		at[address] = s
	}
	delete(at, "") // No location is no place.
	return at
}

// Rebalance never blocks but for the locations, and never fails.
func (e *External) Rebalance(_ context.Context, r RebalanceRequest) (RebalanceResult, error) {
	if e.limits.RebalanceAbsoluteLimit == 0 {
		return RebalanceResult{Reason: "external: rebalancing is switched off"}, nil
	}
	slots := eligibleSlots(r.Regions)
	flying, at := arrive(slots, r.Budget.InFlight), locate(slots)
	strays, total := straysFrom(slots, flying, func(s Shard) *slot { return at[e.locations.Location(r.Kind, s)] })
	limit := min(e.limits.limit(total)-len(r.Budget.InFlight), r.Budget.Room())
	moves := within(strays, limit, r.Budget.PerRegion, "external: its location is there")
	left := len(strays) - len(moves)
	switch {
	case len(moves) > 0:
		return RebalanceResult{Moves: moves, Reason: fmt.Sprintf("external: %d of %d shards move to their locations, %d more are elsewhere", len(moves), total, left)}, nil
	case left > 0:
		return RebalanceResult{Reason: fmt.Sprintf("external: %d shards are not at their locations, and the budget permits no move beside %d in flight", left, len(r.Budget.InFlight))}, nil
	}
	return RebalanceResult{Reason: fmt.Sprintf("external: of %d shards none has another location that can host it", total)}, nil
}

// clipReason cuts a reason that holds a text of the program to its bound.
func clipReason(s string) string { return strings.ToValidUTF8(s[:min(len(s), MaxReason)], "") }

// LocationTable holds locations in memory. The zero value is empty and ready for use, by several goroutines
// at a time. It must not be copied.
type LocationTable struct {
	mu sync.RWMutex
	at map[string]map[Shard]string // By kind.
}

// Put has a shard of a kind live at an address, as "host:port", and replaces what was said before;
// an empty address withdraws it. It moves nothing by itself: the coordinator looks at the table
// when it next asks the strategy, within the idle check of rebalancing.
func (t *LocationTable) Put(kind string, shard Shard, address string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if address == "" {
		delete(t.at[kind], shard)
		return
	}
	if t.at == nil {
		t.at = make(map[string]map[Shard]string)
	}
	if t.at[kind] == nil {
		t.at[kind] = make(map[Shard]string)
	}
	t.at[kind][shard] = address
}

// Location implements [Locations].
func (t *LocationTable) Location(kind string, shard Shard) string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.at[kind][shard]
}
