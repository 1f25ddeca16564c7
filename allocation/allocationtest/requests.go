// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package allocationtest

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/quorate/quorate/allocation"
)

// newRand returns a source of randomness determined by the seed.
func newRand(seed uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, 0x5ba4d))
}

// RandomAllocateRequest draws a well-formed request: up to 8 regions in all
// states, and up to 60 shards of which some have homes.
func RandomAllocateRequest(rnd *rand.Rand) allocation.AllocateRequest {
	regions, homeless := randomRegions(rnd)
	r := allocation.AllocateRequest{Kind: "test", Regions: regions, Fitness: randomFitness(rnd)}
	for _, s := range homeless {
		p := allocation.Pending{Shard: s}
		if len(regions) > 0 && rnd.IntN(2) == 0 {
			p.Requester = regions[rnd.IntN(len(regions))].ID
		}
		r.Shards = append(r.Shards, p)
	}
	return r
}

// RandomRebalanceRequest draws a well-formed request like [RandomAllocateRequest],
// with a budget that is often tight and of which a part is sometimes in use.
func RandomRebalanceRequest(rnd *rand.Rand) allocation.RebalanceRequest {
	regions, _ := randomRegions(rnd)
	r := allocation.RebalanceRequest{
		Kind: "test", Regions: regions, Fitness: randomFitness(rnd),
		Budget: allocation.Budget{Simultaneous: rnd.IntN(12), PerRegion: rnd.IntN(4)},
	}
	if rnd.IntN(3) > 0 || len(regions) < 2 {
		return r
	}
	for i := range regions {
		if len(regions[i].Shards) > 0 && len(r.Budget.InFlight) < r.Budget.Simultaneous {
			r.Budget.InFlight = append(r.Budget.InFlight, allocation.Move{
				Shard: regions[i].Shards[0], From: regions[i].ID, To: regions[(i+1)%len(regions)].ID,
			})
		}
	}
	return r
}

// Apply returns the regions after the moves have been carried out. The argument is not
// modified.
func Apply(regions []allocation.RegionState, moves []allocation.Move) []allocation.RegionState {
	out := slices.Clone(regions)
	at := make(map[allocation.Region]int, len(out))
	for i := range out {
		out[i].Shards = slices.Clone(out[i].Shards)
		at[out[i].ID] = i
	}
	for _, m := range moves {
		from, to := &out[at[m.From]], &out[at[m.To]]
		from.Shards = slices.DeleteFunc(from.Shards, func(s allocation.Shard) bool { return s == m.Shard })
		to.Shards = append(to.Shards, m.Shard)
	}
	return out
}

// randomFitness draws a fitness that is fit in three of four cases.
func randomFitness(rnd *rand.Rand) allocation.Fitness {
	f := allocation.Fitness{OneVersion: true, NoneUnreachable: true, NoneJoining: true}
	switch rnd.IntN(12) {
	case 0:
		f.OneVersion = false
	case 1:
		f.NoneUnreachable = false
	case 2:
		f.NoneJoining = false
	}
	return f
}

// randomRegions draws regions sorted by id, and the shards without a home.
func randomRegions(rnd *rand.Rand) ([]allocation.RegionState, []allocation.Shard) {
	regions := make([]allocation.RegionState, rnd.IntN(9))
	for i := range regions {
		regions[i] = allocation.RegionState{
			ID:          allocation.Region(fmt.Sprintf("10.0.0.%d:7946#%x", i+1, rnd.Uint32())),
			Zone:        "zone-" + string(rune('a'+rnd.IntN(2))),
			Roles:       []string{"backend"},
			Version:     []string{"", "1.0.0", "1.0.1-RC1", "1.0.1"}[rnd.IntN(4)],
			Leaving:     rnd.IntN(8) == 0,
			Suspended:   rnd.IntN(12) == 0,
			Unreachable: rnd.IntN(12) == 0,
			Capacity:    rnd.Uint32N(5),
			Load:        rnd.Float64(),
		}
	}
	var homeless []allocation.Shard
	skew := 1 + rnd.IntN(8)
	for s := range allocation.Shard(rnd.Uint32N(60)) {
		// Some draws hit no region; a small skew puts the others on few regions.
		if i := rnd.IntN(skew + 1); i < len(regions) {
			regions[i].Shards = append(regions[i].Shards, s)
		} else {
			homeless = append(homeless, s)
		}
	}
	for i := range regions {
		own := regions[i].Shards
		rnd.Shuffle(len(own), func(a, b int) { own[a], own[b] = own[b], own[a] })
	}
	return regions, homeless
}
