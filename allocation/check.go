// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package allocation

// The checks of a strategy's answers, for homes and for moves, which trust nothing in
// them; and the validation of requests, for callers that are not sure of their own
// state.

// MaxReason is the greatest length of a reason in bytes. It bounds how much a strategy
// can write into the decision log at a time.
const MaxReason = 1024

// CheckAllocate returns nil if the answer keeps the contract for the request,
// else a [*ContractError] that names the first fault:
//
//	C1  every shard was asked for, and is placed at most once;
//	C2  every region was in the request and is eligible;
//	C3  no reason is longer than MaxReason.
//
// It trusts nothing in res, takes time in proportion to the sizes of both, and
// may be called from any goroutine.
func CheckAllocate(r *AllocateRequest, res *AllocateResult) error {
	if err := checkReason(res.Reason); err != nil {
		return err
	}
	if len(res.Placements) > len(r.Shards) {
		return regionError("", "%d placements for %d shards", len(res.Placements), len(r.Shards))
	}
	regions := index(r.Regions)
	open := make(map[Shard]bool, len(r.Shards))
	for _, p := range r.Shards {
		open[p.Shard] = true
	}
	for i := range res.Placements {
		p := &res.Placements[i]
		waiting, asked := open[p.Shard]
		switch {
		case !asked:
			return shardError(p.Shard, p.Region, "was not asked for")
		case !waiting:
			return shardError(p.Shard, p.Region, "is placed twice")
		}
		open[p.Shard] = false
		if err := checkTarget(regions, p.Shard, p.Region); err != nil {
			return err
		}
		if err := checkReason(p.Reason); err != nil {
			return err
		}
	}
	return nil
}

// CheckRebalance returns nil if the answer keeps the contract for the request,
// else a [*ContractError] that names the first fault:
//
//	C1  every shard is in the list of From, is not in flight, and moves at most once;
//	C2  To was in the request, is eligible and is not From; From is reachable and
//	    not suspended, since it has to confirm that it has stopped;
//	C3  no reason is longer than MaxReason;
//	C4  with the moves in flight, Simultaneous and PerRegion are kept.
//
// It trusts nothing in res, takes time in proportion to the sizes of both, and
// may be called from any goroutine. An unfit cluster forbids nothing here: that
// a strategy should then move nothing is advice.
func CheckRebalance(r *RebalanceRequest, res *RebalanceResult) error {
	if err := checkReason(res.Reason); err != nil {
		return err
	}
	if len(res.Moves) > r.Budget.Room() {
		return regionError("", "%d moves, %d more may begin", len(res.Moves), r.Budget.Room())
	}
	if len(res.Moves) == 0 {
		return nil
	}
	regions := index(r.Regions)
	busy, traffic := inFlight(&r.Budget)
	homes := homesOf(res.Moves, regions)
	for i := range res.Moves {
		m := &res.Moves[i]
		if err := checkMove(m, regions, homes, busy); err != nil {
			return err
		}
		busy[m.Shard] = true
		traffic[m.From]++
		traffic[m.To]++
		if limit := r.Budget.PerRegion; limit > 0 && max(traffic[m.From], traffic[m.To]) > limit {
			return shardError(m.Shard, m.To, "would exceed the moves that a region may take part in")
		}
	}
	return nil
}

// checkMove checks everything about one move except the budget.
func checkMove(m *Move, regions map[Region]*RegionState, homes map[Shard]Region, busy map[Shard]bool) error {
	from := regions[m.From]
	switch {
	case from == nil:
		return shardError(m.Shard, m.From, "moves from a region that was not in the request")
	case homes[m.Shard] != m.From:
		return shardError(m.Shard, m.From, "moves from a region that does not host it")
	case busy[m.Shard]:
		return shardError(m.Shard, m.From, "is already on the move")
	case m.From == m.To:
		return shardError(m.Shard, m.From, "moves to where it is")
	case from.Unreachable || from.Suspended:
		return shardError(m.Shard, m.From, "moves from a region that cannot confirm that it stopped")
	}
	if err := checkTarget(regions, m.Shard, m.To); err != nil {
		return err
	}
	return checkReason(m.Reason)
}

// checkTarget checks that the shard may be placed on the region.
func checkTarget(regions map[Region]*RegionState, s Shard, id Region) error {
	to := regions[id]
	switch {
	case to == nil:
		return shardError(s, id, "goes to a region that was not in the request")
	case to.Leaving:
		return shardError(s, id, "goes to a region that is leaving")
	case to.Suspended:
		return shardError(s, id, "goes to a region that is suspended")
	case to.Unreachable:
		return shardError(s, id, "goes to a region that is unreachable")
	}
	return nil
}

func checkReason(s string) error {
	if len(s) > MaxReason {
		return regionError("", "a reason has %d bytes, the limit is %d", len(s), MaxReason)
	}
	return nil
}

// index returns the regions by id.
func index(regions []RegionState) map[Region]*RegionState {
	m := make(map[Region]*RegionState, len(regions))
	for i := range regions {
		m[regions[i].ID] = &regions[i]
	}
	return m
}

// inFlight returns the moving shards, and for each region the number of moves in which
// it takes part.
func inFlight(b *Budget) (map[Shard]bool, map[Region]int) {
	busy := make(map[Shard]bool, len(b.InFlight))
	traffic := make(map[Region]int, 2*len(b.InFlight))
	for i := range b.InFlight {
		m := &b.InFlight[i]
		busy[m.Shard] = true
		traffic[m.From]++
		traffic[m.To]++
	}
	return busy, traffic
}

// homesOf returns the region of each shard in the lists of those regions from which
// shards are to move. Other lists need not be read.
func homesOf(moves []Move, regions map[Region]*RegionState) map[Shard]Region {
	homes := make(map[Shard]Region)
	read := make(map[Region]bool)
	for i := range moves {
		id := moves[i].From
		if r := regions[id]; r != nil && !read[id] {
			read[id] = true
			for _, s := range r.Shards {
				homes[s] = id
			}
		}
	}
	return homes
}

// Validate returns nil if the request is well formed, otherwise a [*ContractError]:
// regions must have ids, each once, and no shard may have two homes, or be requested
// twice or although it has a home. A caller that builds a request from a state that
// may be wrong, or reads it from a wire, validates it before it asks a strategy.
func (r *AllocateRequest) Validate() error {
	homes, err := validateRegions(r.Regions)
	if err != nil {
		return err
	}
	for _, p := range r.Shards {
		if home, ok := homes[p.Shard]; ok {
			return shardError(p.Shard, home, "is asked for twice, or has a home")
		}
		homes[p.Shard] = p.Requester
	}
	return nil
}

// Validate returns nil if the request is well formed, otherwise a [*ContractError]:
// regions must have ids, each once, no shard may have two homes, and no limit may be
// negative.
func (r *RebalanceRequest) Validate() error {
	if r.Budget.Simultaneous < 0 || r.Budget.PerRegion < 0 {
		return regionError("", "a limit of the budget is negative")
	}
	_, err := validateRegions(r.Regions)
	return err
}

// validateRegions checks what both requests have in common and returns the home
// of each shard.
func validateRegions(regions []RegionState) (map[Shard]Region, error) {
	seen := make(map[Region]bool, len(regions))
	homes := make(map[Shard]Region)
	for i := range regions {
		r := &regions[i]
		if r.ID == "" {
			return nil, regionError("", "a region has no id")
		}
		if seen[r.ID] {
			return nil, regionError(r.ID, "is listed twice")
		}
		seen[r.ID] = true
		for _, s := range r.Shards {
			if _, ok := homes[s]; ok {
				return nil, shardError(s, r.ID, "has two homes, or is listed twice")
			}
			homes[s] = r.ID
		}
	}
	return homes, nil
}
