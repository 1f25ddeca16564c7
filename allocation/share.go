// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package allocation

import (
	"cmp"
	"slices"
)

// The computation of shares. A slot is a region with its counts; fill sets shares for
// new shards, apportion for those that exist; both round by divide. The queue at the
// end serves slots in order while their counts change.

// slot is a region while shares are computed and shards assigned.
type slot struct {
	region *RegionState
	weight uint64
	// count is how many shards the region has, including those decided so far.
	count int
	// share is how many shards the region should have.
	share int
	// rest is the numerator of the fraction that was cut off when the share was
	// rounded down; the denominator is the same for all slots.
	rest uint64
	// moves is how many moves the region takes part in.
	moves int
	// next is the index in the region's list of the next shard to consider.
	next int
}

// below reports whether the slot has room for another shard.
func (s *slot) below() bool { return s.count < s.share }

// permits reports whether the slot may take part in another move.
func (s *slot) permits(perRegion int) bool { return perRegion <= 0 || s.moves < perRegion }

// ready reports whether the slot has a shard that is neither in flight nor taken, and
// sets next to the one that the region has had the longest.
func (s *slot) ready(flying map[Shard]bool) bool {
	for s.next < len(s.region.Shards) && flying[s.region.Shards[s.next]] {
		s.next++
	}
	return s.next < len(s.region.Shards)
}

// moreSuitable orders by fewer shards relative to the capacity, then by id. Competing
// slots are all eligible and of one version, so that this is the order of
// CompareSuitability.
func (s *slot) moreSuitable(o *slot) bool {
	if c := compareRatio(s.count, s.weight, o.count, o.weight); c != 0 {
		return c < 0
	}
	return s.region.ID < o.region.ID
}

// fuller orders by more shards relative to the capacity, then by id.
func (s *slot) fuller(o *slot) bool {
	if c := compareRatio(s.count, s.weight, o.count, o.weight); c != 0 {
		return c > 0
	}
	return s.region.ID < o.region.ID
}

// eligibleSlots returns a slot for each eligible region, sorted by id.
func eligibleSlots(regions []RegionState) []*slot {
	slots := make([]*slot, 0, len(regions))
	for i := range regions {
		if r := &regions[i]; r.Eligible() {
			slots = append(slots, &slot{region: r, weight: r.weight(), count: len(r.Shards)})
		}
	}
	slices.SortFunc(slots, func(a, b *slot) int { return cmp.Compare(a.region.ID, b.region.ID) })
	return slots
}

// fill sets the shares for adding n shards without taking any away, and returns how
// many shards there will be on all slots. A slot that has more than its part of the
// total keeps what it has, and the others share the rest, like water that is poured
// over uneven ground.
func fill(slots []*slot, n int) int {
	total, weights := uint64(n), uint64(0)
	for _, s := range slots {
		total += uint64(s.count)
		weights += s.weight
	}
	all := int(total)
	dry := slices.Clone(slots)
	slices.SortFunc(dry, func(a, b *slot) int {
		if c := compareRatio(b.count, b.weight, a.count, a.weight); c != 0 {
			return c
		}
		return cmp.Compare(a.region.ID, b.region.ID)
	})
	// Removing a slot above the level lowers the level, so one pass from the fullest
	// on finds all slots that stay dry. The emptiest slot is never above the level.
	for len(dry) > 1 && uint64(dry[0].count)*weights > total*dry[0].weight {
		top := dry[0]
		top.share = top.count
		total -= uint64(top.count)
		weights -= top.weight
		dry = dry[1:]
	}
	divide(dry, total, weights)
	return all
}

// apportion sets the shares for the shards that the slots already have, and returns
// their number. Among the ways of rounding it chooses one that needs the fewest moves,
// so that balanced slots are left alone.
func apportion(slots []*slot) int {
	total, weights := uint64(0), uint64(0)
	for _, s := range slots {
		total += uint64(s.count)
		weights += s.weight
	}
	divide(slots, total, weights)
	return int(total)
}

// divide rounds total·weight/weights down for each slot, and gives the remaining
// shards to slots with a fraction, one each: first to slots that have the shard
// already, then by the greatest fraction (largest remainder, Hamilton 1792), then by
// suitability. There are always fewer remaining shards than slots with a fraction, so
// no slot is a whole shard away from its exact part.
func divide(slots []*slot, total, weights uint64) {
	left := total
	var fractions []*slot
	for _, s := range slots {
		exact := total * s.weight
		s.share, s.rest = int(exact/weights), exact%weights
		left -= uint64(s.share)
		if s.rest > 0 {
			fractions = append(fractions, s)
		}
	}
	slices.SortFunc(fractions, func(a, b *slot) int {
		if c := compareBool(b.count > b.share, a.count > a.share); c != 0 {
			return c
		}
		if c := cmp.Compare(b.rest, a.rest); c != 0 {
			return c
		}
		if a.moreSuitable(b) {
			return -1
		}
		return 1
	})
	for _, s := range fractions[:left] {
		s.share++
	}
}

// queue is a binary heap of slots whose first element is served next.
type queue struct {
	slots []*slot
	less  func(a, b *slot) bool
}

// newQueue returns a queue of the slots for which keep returns true.
func newQueue(slots []*slot, keep func(*slot) bool, less func(a, b *slot) bool) *queue {
	q := &queue{less: less}
	for _, s := range slots {
		if keep(s) {
			q.slots = append(q.slots, s)
		}
	}
	for i := len(q.slots)/2 - 1; i >= 0; i-- {
		q.down(i)
	}
	return q
}

func (q *queue) empty() bool { return len(q.slots) == 0 }

// first returns the next slot; the queue must not be empty.
func (q *queue) first() *slot { return q.slots[0] }

// settle moves the first slot, which has changed, to its new place, or removes it when
// keep returns false.
func (q *queue) settle(keep func(*slot) bool) {
	if !keep(q.slots[0]) {
		last := len(q.slots) - 1
		q.slots[0] = q.slots[last]
		q.slots = q.slots[:last]
	}
	q.down(0)
}

// down restores the order below i.
func (q *queue) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(q.slots) {
			return
		}
		if right := child + 1; right < len(q.slots) && q.less(q.slots[right], q.slots[child]) {
			child = right
		}
		if !q.less(q.slots[child], q.slots[i]) {
			return
		}
		q.slots[i], q.slots[child] = q.slots[child], q.slots[i]
		i = child
	}
}
