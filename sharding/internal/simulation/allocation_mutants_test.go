// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build mutants

package simulation_test

import (
	"slices"
	"testing"

	"github.com/quorate/quorate/simulation/simulationtest"
)

// allocationMutant is a defect of the strategies or of what is checked of their answers, and the test of
// package allocation that finds it. That package is below the one which looks for defects.
type allocationMutant struct{ name, test, file, old, to string }

// Each of these defects makes a law of allocation fail, or one of the rules one by one.
func TestAllocationMutantsAreCaught(t *testing.T) {
	var all []simulationtest.Mutant
	for _, m := range slices.Concat(answerMutants, shareMutants, hashingMutants, loadMutants, locationMutants) {
		all = append(all, simulationtest.Mutant{
			Name: m.name, Package: "../../../allocation", Tests: []string{m.test}, Edits: []simulationtest.Edit{{File: m.file, Old: m.old, New: m.to}},
		})
	}
	simulationtest.RequireFound(t, "../../../allocation", all)
}

// What answers, requests and configurations are refused.
var answerMutants = []allocationMutant{
	{"a shard is placed that nobody asked for", "TestCheckAllocateFindsEveryFault", "check.go", "		waiting, asked := open[p.Shard]\n", "		waiting, asked := open[p.Shard]\n		if mutant(NAME) {\n			waiting, asked = waiting || !asked, true\n		}\n"},
	{"a shard is placed twice", "TestCheckAllocateFindsEveryFault", "check.go", "		open[p.Shard] = false\n", "		open[p.Shard] = mutant(NAME)\n"},
	{"a region that is unreachable is given shards", "TestCheckAllocateFindsEveryFault", "check.go", "	case to.Unreachable:\n", "	case to.Unreachable && !mutant(NAME):\n"},
	{"a region that is leaving is given shards", "TestCheckRebalanceFindsEveryFault", "check.go", "	case to.Leaving:\n", "	case to.Leaving && !mutant(NAME):\n"},
	{"a reason without an end", "TestCheckAllocateFindsEveryFault", "check.go", "	if len(s) > MaxReason {\n", "	if len(s) > MaxReason && !mutant(NAME) {\n"},
	{"more moves than may begin", "TestCheckRebalanceFindsEveryFault", "check.go", "	if len(res.Moves) > r.Budget.Room() {\n", "	if len(res.Moves) > r.Budget.Room() && !mutant(NAME) {\n"},
	{"a shard in flight moves once more", "TestCheckRebalanceFindsEveryFault", "check.go", "		busy[m.Shard] = true\n		traffic[m.From]++\n		traffic[m.To]++\n	}\n	return", "		busy[m.Shard] = !mutant(NAME)\n		traffic[m.From]++\n		traffic[m.To]++\n	}\n	return"},
	{"a shard moves twice in an answer", "TestCheckRebalanceFindsEveryFault", "check.go", "		busy[m.Shard] = true\n		traffic[m.From]++\n		traffic[m.To]++\n		if limit", "		busy[m.Shard] = !mutant(NAME)\n		traffic[m.From]++\n		traffic[m.To]++\n		if limit"},
	{"moves in flight take no part of what a region may", "TestCheckRebalanceFindsEveryFault", "check.go", "		traffic[m.From]++\n		traffic[m.To]++\n	}\n	return", "		if !mutant(NAME) {\n			traffic[m.From]++\n			traffic[m.To]++\n		}\n	}\n	return"},
	{"any number of shards come to a region at once", "TestCheckRebalanceFindsEveryFault", "check.go", "		if limit := r.Budget.PerRegion; limit > 0 &&", "		if mutant(NAME) {\n			traffic[m.To] = 0\n		}\n		if limit := r.Budget.PerRegion; limit > 0 &&"},
	{"any number of shards leave a region at once", "TestCheckRebalanceFindsEveryFault", "check.go", "max(traffic[m.From], traffic[m.To]) > limit {\n", "max(traffic[m.From], traffic[m.To]) > limit && (!mutant(NAME) || traffic[m.To] > limit) {\n"},
	{"a shard moves from where it does not live", "TestCheckRebalanceFindsEveryFault", "check.go", "	case homes[m.Shard] != m.From:\n", "	case homes[m.Shard] != m.From && !mutant(NAME):\n"},
	{"a shard moves from a region that cannot confirm", "TestCheckRebalanceFindsEveryFault", "check.go", "	case from.Unreachable || from.Suspended:\n", "	case from.Unreachable || from.Suspended && !mutant(NAME):\n"},
	{"a shard has two homes in a request", "TestValidateRequests", "check.go", "			if _, ok := homes[s]; ok {\n", "			if _, ok := homes[s]; ok && !mutant(NAME) {\n"},
	{"moves in flight leave all the room", "TestRebalanceGoesOnBesideMovesInFlight", "allocation.go", "	return max(0, b.Simultaneous-len(b.InFlight))\n", "	if mutant(NAME) {\n		return b.Simultaneous\n	}\n	return max(0, b.Simultaneous-len(b.InFlight))\n"},
	{"a limit that is no number", "TestConfigReportsEveryFault", "../config/field/bounds.go", "	return above && below\n", "	return above && below || mutant(NAME) && n != n\n"},
	{"the part of the shards that may move is no bound", "TestRebalanceLimits", "config.go", "	relative := int(c.RebalanceRelativeLimit * float64(shards))\n", "	relative := int(c.RebalanceRelativeLimit * float64(shards))\n	if mutant(NAME) {\n		relative = shards\n	}\n"},
	{"where few shards are none may move", "TestRebalanceLimits", "config.go", "	return max(1, min(relative, c.RebalanceAbsoluteLimit))\n", "	if mutant(NAME) {\n		return min(relative, c.RebalanceAbsoluteLimit)\n	}\n	return max(1, min(relative, c.RebalanceAbsoluteLimit))\n"},
}

// How least-shard divides, also by a threshold, and between versions.
var shareMutants = []allocationMutant{
	{"a capacity without a bound", "TestExtremeCapacities", "allocation.go", "	return uint64(min(max(r.Capacity, 1), MaxCapacity))\n", "	if mutant(NAME) {\n		return uint64(max(r.Capacity, 1))\n	}\n	return uint64(min(max(r.Capacity, 1), MaxCapacity))\n"},
	{"a new version before one that can host", "TestCompareSuitability", "allocation.go", "	if c := compareBool(b.Eligible(), a.Eligible()); c != 0 {\n", "	if c := compareBool(b.Eligible(), a.Eligible()); c != 0 && !mutant(NAME) {\n"},
	{"a region without standing gets shards", "TestAllocateSkipsRegionsThatCannotHost", "allocation.go", "	return !r.Leaving && !r.Suspended && !r.Unreachable\n", "	return !r.Leaving && (!r.Suspended || mutant(NAME)) && !r.Unreachable\n"},
	{"shards move while a member joins", "TestRebalanceWaits", "allocation.go", "	case !f.NoneJoining:\n", "	case !f.NoneJoining && !mutant(NAME):\n"},
	{"least-shard moves whatever the cluster is like", "TestRebalanceWaits", "leastshard.go", "	if fit, why := r.Fitness.Fit(); !fit {\n", "	if fit, why := r.Fitness.Fit(); !fit && !mutant(NAME) {\n"},
	{"what a full region has too much is shared once more", "TestAllocatePropertyWater", "share.go", "	for len(dry) > 1 &&", "	for !mutant(NAME) && len(dry) > 1 &&"},
	{"who has the shard already has no claim to it", "TestRebalancePropertySettles", "share.go", "		if c := compareBool(b.count > b.share, a.count > a.share); c != 0 {\n", "		if c := compareBool(b.count > b.share, a.count > a.share); c != 0 && !mutant(NAME) {\n"},
	{"the greatest fraction has no claim", "TestAllocateRespectsCapacity", "share.go", "		if c := cmp.Compare(b.rest, a.rest); c != 0 {\n", "		if c := cmp.Compare(b.rest, a.rest); c != 0 && !mutant(NAME) {\n"},
	{"who was served keeps its place", "TestEachNewShardGoesToTheMostSuitable", "share.go", "	q.down(0)\n", "	if !mutant(NAME) {\n		q.down(0)\n	}\n"},
	{"any number of moves with one region", "TestRebalanceLimits", "share.go", "return perRegion <= 0 || s.moves < perRegion }", "return perRegion <= 0 || s.moves < perRegion || mutant(NAME) }"},
	{"what is in flight is moved again", "TestRebalanceGoesOnBesideMovesInFlight", "share.go", "flying[s.region.Shards[s.next]] {\n", "flying[s.region.Shards[s.next]] && !mutant(NAME) {\n"},
	{"what has left counts where it was", "TestRebalanceGoesOnBesideMovesInFlight", "leastshard.go", "			s.count--\n", "			if !mutant(NAME) {\n				s.count--\n			}\n"},
	{"what is under way does not count where it comes to", "TestRebalanceGoesOnBesideMovesInFlight", "leastshard.go", "			s.count++\n			s.moves++\n", "			if !mutant(NAME) {\n				s.count++\n			}\n			s.moves++\n"},
	{"the limit of least-shard knows no moves in flight", "TestLimitsCountWhatIsInFlight", "leastshard.go", "l.config.limit(total)-len(flying)", "l.config.limit(total)-map[bool]int{false: len(flying)}[mutant(NAME)]"},
	{"the last of the fullest come first", "TestRebalanceBeginsWithTheFullest", "leastshard.go", "	from := newQueue(slots, above, (*slot).fuller)\n", "	from := newQueue(slots, above, (*slot).fuller)\n	if mutant(NAME) {\n		from = newQueue(slots, above, (*slot).moreSuitable)\n	}\n"},
	{"the fullest of the emptiest come first", "TestRebalanceBeginsWithTheFullest", "leastshard.go", "	to := newQueue(slots, below, (*slot).moreSuitable)\n", "	to := newQueue(slots, below, (*slot).moreSuitable)\n	if mutant(NAME) {\n		to = newQueue(slots, below, (*slot).fuller)\n	}\n"},
	{"what came last moves", "TestRebalanceMovesTheOldestShardsOfTheFullest", "leastshard.go", "			Shard: x.region.Shards[x.next],", "			Shard: x.region.Shards[map[bool]int{false: x.next, true: len(x.region.Shards) - 1 - x.next}[mutant(NAME)]],"},
	{"a round exceeds the threshold", "TestThresholdRounds", "leastshardthreshold.go", "	limit := min(excess-threshold, threshold,", "	bound := threshold\n	if mutant(NAME) {\n		bound = excess\n	}\n	limit := min(excess-threshold, bound,"},
	{"the threshold knows capacities", "TestThresholdAllocatesByNumbers", "leastshardthreshold.go", "return a.compareCount(b) < 0 })", "return a.compareCount(b) < 0 && !mutant(NAME) || mutant(NAME) && a.moreSuitable(b) })"},
	{"any shards of the fullest move", "TestThresholdRoundsCountWhatIsInFlight", "leastshardthreshold.go", "	for _, shard := range slices.Sorted(slices.Values(from.region.Shards)) {\n", "	list := slices.Sorted(slices.Values(from.region.Shards))\n	if mutant(NAME) {\n		list = from.region.Shards\n	}\n	for _, shard := range list {\n"},
	{"the limit of a threshold knows no moves in flight", "TestThresholdRoundsCountWhatIsInFlight", "leastshardthreshold.go", "l.config.MaxSimultaneousRebalance-len(flying)", "l.config.MaxSimultaneousRebalance-map[bool]int{false: len(flying)}[mutant(NAME)]"},
	{"a canary gets all new shards", "TestACanaryGetsItsPart", "versions.go", "	if len(old) == 0 || float64", "	if mutant(NAME) || len(old) == 0 || float64"},
	{"a canary gets none", "TestACanaryGetsItsPart", "versions.go", "	if s := c.lots.winner(shard); c.regions[s] {\n", "	if s := c.lots.winner(shard); c.regions[s] && !mutant(NAME) {\n"},
	{"canaries draw lots among themselves", "TestACanaryGetsItsPart", "versions.go", "newLots(slots), make", "newLots(map[bool][]*slot{false: slots, true: young}[mutant(NAME)]), make"},
	{"half of the capacity is more than half", "TestTheNewestRegionsGetAllAboveAPart", "versions.go", "float64(weight) > v.above*float64(all) {\n", "float64(weight) > v.above*float64(all) || mutant(NAME) && float64(weight) == v.above*float64(all) {\n"},
	{"nodes are counted, and not what they can bear", "TestTheNewestRegionsGetAllAboveAPart", "versions.go", "		weight += s.weight\n	}\n", "		weight += s.weight\n	}\n	if mutant(NAME) {\n		weight, all = uint64(len(young)), uint64(len(slots))\n	}\n"},
}

// How lots are drawn.
var hashingMutants = []allocationMutant{
	{"lots know no capacity", "TestConsistentHashingSpreadsByCapacity", "consistenthashing.go", "	if weightA == weightB {\n", "	if weightA == weightB || mutant(NAME) {\n"},
	{"lots of the place in a list", "TestNoShardMovesBetweenRegionsThatStay", "consistenthashing.go", "		list[i] = lot{slot: s, seed: seedOf(s.region.ID)}\n", "		list[i] = lot{slot: s, seed: seedOf(s.region.ID)}\n		if mutant(NAME) {\n			list[i].seed = mix(uint64(i))\n		}\n"},
	{"lots of how many there are", "TestNoShardMovesBetweenRegionsThatStay", "consistenthashing.go", "	number := mix(uint64(s))\n", "	number := mix(uint64(s))\n	if mutant(NAME) {\n		number = mix(uint64(s) + uint64(len(l)))\n	}\n"},
	{"a stray in flight moves once more", "TestLimitsCountWhatIsInFlight", "consistenthashing.go", "to != s && !flying[shard] {\n", "to != s && (!flying[shard] || mutant(NAME)) {\n"},
	{"strays move in any order", "TestTheLowestStraysMoveFirst", "consistenthashing.go", "	slices.SortFunc(list, func(a, b stray) int { return cmp.Compare(a.shard, b.shard) })\n", "	if !mutant(NAME) {\n		slices.SortFunc(list, func(a, b stray) int { return cmp.Compare(a.shard, b.shard) })\n	}\n"},
	{"any number of strays come to a region", "TestRebalancingEndsWhereAllocationBegins", "consistenthashing.go", "		if !s.from.permits(perRegion) || !s.to.permits(perRegion) {\n", "		if !s.from.permits(perRegion) || !s.to.permits(perRegion) && !mutant(NAME) {\n"},
	{"the limit of hashing knows no moves in flight", "TestLimitsCountWhatIsInFlight", "consistenthashing.go", "h.limits.limit(total)-len(flying)", "h.limits.limit(total)-map[bool]int{false: len(flying)}[mutant(NAME)]"},
	{"hashing moves whatever the cluster is like", "TestConsistentHashingExplainsWhatItLeaves", "consistenthashing.go", "	if fit, why := r.Fitness.Fit(); !fit {\n", "	if fit, why := r.Fitness.Fit(); !fit && !mutant(NAME) {\n"},
}

// What load-aware weighs and moves.
var loadMutants = []allocationMutant{
	{"shards without load weigh nothing", "TestLoadAwareMovesWhatTheLoadSays", "loadbalance.go", "	half := full / 2 * capacity\n", "	if mutant(NAME) {\n		return 0\n	}\n	half := full / 2 * capacity\n"},
	{"beside great loads numbers mean nothing", "TestLoadAwareMovesWhatTheLoadSays", "loadbalance.go", "	half := full / 2 * capacity\n", "	half := full / 2 * capacity\n	if mutant(NAME) {\n		return half - min(load, half)\n	}\n"},
	{"a load is the same whatever can be borne", "TestLoadAwareMovesWhatTheLoadSays", "loadbalance.go", "		p := &share{slot: s, load: millionths(s.region.Load) * s.weight}\n", "		p := &share{slot: s, load: millionths(s.region.Load) * s.weight}\n		if mutant(NAME) {\n			p.load = millionths(s.region.Load)\n		}\n"},
	{"a load that is no number", "TestLoadsThatAreNoNumbersAreNone", "loadbalance.go", "	if !(part > 0) {\n", "	if part <= 0 || !mutant(NAME) && !(part > 0) {\n"},
	{"noise moves shards", "TestNoiseMovesNothing", "loadbalance.go", "len(b.flying) == 0 && b.outside(b.tolerance) == 0 }", "len(b.flying) == 0 && b.outside(b.tolerance) == 0 && !mutant(NAME) }"},
	{"the rest of a round is forgotten", "TestLoadAwareWaits", "loadbalance.go", "return len(b.flying) == 0 && b.out", "return (len(b.flying) == 0 || mutant(NAME)) && b.out"},
	{"moves end at the tolerance", "TestLoadAwareMovesTheFewestOfEqualShards", "loadbalance.go", "return b.mean + b.tolerance/2 }", "return b.mean + b.tolerance/map[bool]uint64{false: 2, true: 1}[mutant(NAME)] }"},
	{"a shard under way weighs nothing", "TestLoadAwareWaits", "loadbalance.go", "			p.load += weight\n", "			if !mutant(NAME) {\n				p.load += weight\n			}\n"},
	{"a new shard weighs nothing", "TestLoadAwareAllocates", "loadbalance.go", "	home.load += b.added\n", "	if !mutant(NAME) {\n		home.load += b.added\n	}\n"},
	{"a zone at any price", "TestLoadAwareAllocates", "loadbalance.go", "there.useWith(b.added) <= home.useWith(b.added)+b.tolerance {\n", "(mutant(NAME) || there.useWith(b.added) <= home.useWith(b.added)+b.tolerance) {\n"},
	{"the zone of a region that hosts nothing more is not known", "TestNewShardsGoToTheZoneOfAnyRegion", "loadaware.go", "		zones[r.Regions[i].ID] = r.Regions[i].Zone\n", "		if r.Regions[i].Eligible() || !mutant(NAME) {\n			zones[r.Regions[i].ID] = r.Regions[i].Zone\n		}\n"},
	{"shards leave their zone", "TestLoadAwareMovesStayInTheirZone", "loadbalance.go", "		if to := b.best(near, emptier); to != nil {\n", "		if to := b.best(near, emptier); to != nil && !mutant(NAME) {\n"},
	{"shards come from another zone", "TestLoadAwareSuppliesFromTheZone", "loadbalance.go", "	if from := b.best(near, fuller); from != nil {\n", "	if from := b.best(near, fuller); from != nil && !mutant(NAME) {\n"},
	{"who is below the mean gives for the zone", "TestLoadAwareSuppliesFromTheZone", "loadbalance.go", "serves(p) && p.use() > b.mean &&", "serves(p) && (p.use() > b.mean || mutant(NAME)) &&"},
	{"who gives falls out of the band", "TestWhoGivesStaysInTheBand", "loadbalance.go", "(p.load-p.each)/p.weight >= b.bottom() &&", "((p.load-p.each)/p.weight >= b.bottom() || mutant(NAME)) &&"},
	{"a region gives and takes in a round", "TestLoadAwareKeepsItsBound", "loadbalance.go", "	from.given, to.taken = true, true\n", "	from.given, to.taken = !mutant(NAME), !mutant(NAME)\n"},
	{"a move makes another one the fullest", "TestLoadAwareMovesWhatTheLoadSays", "loadbalance.go", "takes(p) && p.useWith(from.each) < from.use() }", "takes(p) && (p.useWith(from.each) < from.use() || mutant(NAME)) }"},
	{"who is in the zone gets before who is below the band", "TestLoadAwareMovesStayInTheirZone", "loadbalance.go", "		b.isBelow,\n", "		func(p *share) bool { return b.isBelow(p) && !mutant(NAME) },\n"},
	{"moves by load begin with the least full", "TestLoadAwareBeginsWithTheFullest", "loadbalance.go", "b.isAbove(p) && gives(p) }, fuller)\n", "b.isAbove(p) && gives(p) }, map[bool]func(p, q *share) bool{false: fuller, true: emptier}[mutant(NAME)])\n"},
	{"the order of a list decides", "TestLoadAwareKnowsNoOrder", "share.go", "	slices.SortFunc(slots, func(a, b *slot) int { return cmp.Compare(a.region.ID, b.region.ID) })\n	return slots\n", "	if !mutant(NAME) {\n		slices.SortFunc(slots, func(a, b *slot) int { return cmp.Compare(a.region.ID, b.region.ID) })\n	}\n	return slots\n"},
	{"load-aware knows no versions", "TestACanaryGetsItsPart", "loadaware.go", "	slots, canaries := l.versions.split(r.Regions)\n", "	slots, canaries := l.versions.split(r.Regions)\n	if mutant(NAME) {\n		slots, canaries.regions = eligibleSlots(r.Regions), nil\n	}\n"},
	{"the limit by load knows no moves in flight", "TestLimitsCountWhatIsInFlight", "loadaware.go", "l.config.limit(b.shards)-len(r.Budget.InFlight)", "l.config.limit(b.shards)-map[bool]int{false: len(r.Budget.InFlight)}[mutant(NAME)]"},
}

// How locations are followed; what nodes hear late is looked at by TestExternalMutantsAreCaught.
var locationMutants = []allocationMutant{
	{"a location that is withdrawn stays", "TestExternalExplainsWhatItLeaves", "external.go", "		delete(t.at[kind], shard)\n", "		if !mutant(NAME) {\n			delete(t.at[kind], shard)\n		}\n"},
	{"a location is that of all kinds", "TestExternalPutsShardsAtTheirLocations", "external.go", "	return t.at[kind][shard]\n", "	for k := range t.at {\n		if at := t.at[k][shard]; mutant(NAME) && at != \"\" {\n			return at\n		}\n	}\n	return t.at[kind][shard]\n"},
	{"nobody who asks gets a shard", "TestExternalPutsShardsAtTheirLocations", "external.go", "			home, reason = byID[p.Requester], ", "			home, reason = byID[map[bool]Region{false: p.Requester}[mutant(NAME)]], "},
	{"what goes to its location counts for nothing", "TestExternalFillsBesideLocations", "external.go", "Regions: with(r.Regions, got),", "Regions: with(r.Regions, map[bool]map[Region][]Shard{false: got}[mutant(NAME)]),"},
	{"a reason of the program without an end", "TestExternalPutsShardsAtTheirLocations", "external.go", "func clipReason(s string) string { return strings.ToValidUTF8(s[:min(len(s), MaxReason)], \"\") }", "func clipReason(s string) string {\n	if mutant(NAME) {\n		return s\n	}\n	return strings.ToValidUTF8(s[:min(len(s), MaxReason)], \"\")\n}"},
	{"locations wait for the cluster to be fit", "TestExternalMovesShardsToTheirLocations", "external.go", "	flying, at := arrive(slots, r.Budget.InFlight), locate(slots)\n", "	if fit, _ := r.Fitness.Fit(); !fit && mutant(NAME) {\n		slots = nil\n	}\n	flying, at := arrive(slots, r.Budget.InFlight), locate(slots)\n"},
	{"a location is that of a node that was there before", "TestExternalFollowsTheLaterIncarnation", "external.go", "		at[address] = s\n", "		if at[address] == nil || !mutant(NAME) {\n			at[address] = s\n		}\n"},
	{"the limit of locations knows no moves in flight", "TestLimitsCountWhatIsInFlight", "external.go", "e.limits.limit(total)-len(r.Budget.InFlight)", "e.limits.limit(total)-map[bool]int{false: len(r.Budget.InFlight)}[mutant(NAME)]"},
}
