// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package allocation

import (
	"math"
	"strconv"
)

// The arithmetic of load-aware. newBalance weighs the regions and their shards; place gives a new
// shard a home; moves brings the regions into the band by the fewest moves, where relieve takes
// from the regions above it, and supply brings to those below. All is in integers: uses are
// millionths of what a region can bear, and loads are uses times capacities, which sums of 4,096
// regions keep within 64 bits.

// full is the use of a region that can bear no more. The ballast of all shards, what they weigh
// beyond their load, brings the mean use to half; it is a tenth at least. Without it idle shards
// would have no weight, and with more of it numbers would count beside a load.
const (
	full       = 1_000_000
	ballastMin = full / 10
)

// ballast returns what all shards weigh beyond their load.
func ballast(load, capacity uint64) uint64 {
	half := full / 2 * capacity
	return max(half-min(load, half), ballastMin*capacity)
}

// millionths returns a part as whole millionths within 0 and 1; what is no number is 0.
func millionths(part float64) uint64 {
	if !(part > 0) {
		return 0
	}
	return uint64(math.Round(min(part, 1) * full))
}

// parts says a number of millionths in words, as a part of 1 with two digits.
func parts(n uint64) string { return strconv.FormatFloat(float64(n)/full, 'f', 2, 64) }

// share is a region on the balance.
type share struct {
	*slot
	load  uint64 // What the shards weigh that the region has, with those decided so far.
	each  uint64 // What one of its shards weighs, 0 if it has none.
	stuck bool   // No move helps the region any more in this round.
	given bool   // A shard has left the region in this round.
	taken bool   // A shard has come to the region in this round.
}

// use is the load in millionths of what the region can bear.
func (p *share) use() uint64 { return p.load / p.weight }

// useWith is the use with a further load.
func (p *share) useWith(load uint64) uint64 { return (p.load + load) / p.weight }

// balance is what a decision knows of the regions.
type balance struct {
	shares    []*share
	flying    map[Shard]bool
	shards    int    // How many the regions have.
	added     uint64 // What a new shard weighs.
	mean      uint64
	tolerance uint64
}

// newBalance weighs the regions, the moves in flight counted as if they had ended, with so many
// shards to come.
func newBalance(slots []*slot, inFlight []Move, coming int, tolerance uint64) *balance {
	b := &balance{tolerance: tolerance, flying: make(map[Shard]bool, len(inFlight))}
	capacity, load := uint64(0), uint64(0)
	for _, s := range slots {
		b.shards += len(s.region.Shards)
		capacity += s.weight
		load += millionths(s.region.Load) * s.weight
	}
	extra := uint64(0) // The ballast of a shard.
	if n := uint64(b.shards + coming); n > 0 {
		extra = ballast(load, capacity) / n
	}
	byID := make(map[Region]*share, len(slots))
	for _, s := range slots {
		p := &share{slot: s, load: millionths(s.region.Load) * s.weight}
		if n := uint64(len(s.region.Shards)); n > 0 {
			p.each = p.load/n + extra
			p.load = p.each * n
		}
		b.shares = append(b.shares, p)
		byID[s.region.ID] = p
	}
	if b.added = extra; b.shards > 0 {
		b.added += load / uint64(b.shards)
	}
	b.arrive(byID, inFlight)
	load = b.added * uint64(coming)
	for _, p := range b.shares {
		load += p.load
	}
	if capacity > 0 {
		b.mean = load / capacity
	}
	return b
}

// arrive counts the moves in flight as if they had ended. A shard that comes from a region that is
// not on the balance weighs what a new one does.
func (b *balance) arrive(byID map[Region]*share, inFlight []Move) {
	for _, m := range inFlight {
		b.flying[m.Shard] = true
		weight := b.added
		if p := byID[m.From]; p != nil {
			weight = p.each
			p.load -= min(p.load, weight)
			p.count--
			p.moves++
		}
		if p := byID[m.To]; p != nil {
			p.load += weight
			p.moves++
		}
	}
}

// tolerates reports whether all regions are within the tolerance of the mean, and no moves are under
// way that are to bring them into the band.
func (b *balance) tolerates() bool { return len(b.flying) == 0 && b.outside(b.tolerance) == 0 }

// top and bottom are the ends of the band: half of the tolerance around the mean, so that a region
// that has been brought into it is not at once outside of the tolerance again.
func (b *balance) top() uint64    { return b.mean + b.tolerance/2 }
func (b *balance) bottom() uint64 { return b.mean - min(b.mean, b.tolerance/2) }

func (b *balance) isAbove(p *share) bool { return p.use() > b.top() }
func (b *balance) isBelow(p *share) bool { return p.use() < b.bottom() }

// outside returns how many regions are not within a distance of the mean.
func (b *balance) outside(distance uint64) int {
	n := 0
	for _, p := range b.shares {
		if use := p.use(); use > b.mean+distance || use+distance < b.mean {
			n++
		}
	}
	return n
}

// best returns the share for which keep holds that comes first in an order, nil if there is none; of
// equal ones the lowest id, by which the shares are sorted.
func (b *balance) best(keep func(*share) bool, before func(p, q *share) bool) *share {
	var first *share
	for _, p := range b.shares {
		if keep(p) && (first == nil || before(p, first)) {
			first = p
		}
	}
	return first
}

// place puts a new shard on the region whose use is the lowest with it, or on the lowest in a zone
// if that is near enough, and reports whether the zone decided.
func (b *balance) place(zone string) (home *share, near bool) {
	lower := func(p, q *share) bool { return p.useWith(b.added) < q.useWith(b.added) }
	home = b.best(func(*share) bool { return true }, lower)
	if zone != "" && home.region.Zone != zone {
		there := b.best(func(p *share) bool { return p.region.Zone == zone }, lower)
		if there != nil && there.useWith(b.added) <= home.useWith(b.added)+b.tolerance {
			home, near = there, true
		}
	}
	home.load += b.added
	return home, near
}

// moves returns the moves that bring the regions into the band, as far as the limits permit. No
// region gives and takes in one round: to exchange a heavy shard for a light one is two moves
// for an effect that rests on the estimate of both.
func (b *balance) moves(limit, perRegion int) []Move {
	gives := func(p *share) bool { return !p.taken && p.permits(perRegion) && p.ready(b.flying) }
	takes := func(p *share) bool { return !p.given && p.permits(perRegion) }
	var list []Move
	for len(list) < limit {
		from := b.best(func(p *share) bool { return !p.stuck && b.isAbove(p) && gives(p) }, fuller)
		if from != nil {
			to := b.relieve(from, takes)
			if from.stuck = to == nil; !from.stuck {
				list = append(list, b.move(from, to))
			}
			continue
		}
		to := b.best(func(p *share) bool { return !p.stuck && b.isBelow(p) && takes(p) }, emptier)
		if to == nil {
			break
		}
		from = b.supply(to, gives)
		if to.stuck = from == nil; !to.stuck {
			list = append(list, b.move(from, to))
		}
	}
	return list
}

// fuller and emptier order by use, then by id.
func fuller(p, q *share) bool  { return p.use() > q.use() }
func emptier(p, q *share) bool { return p.use() < q.use() }

// relieve returns the region to which a shard of one above the band goes: one below the band if
// there is any, else one that stays in it; of these one of the same zone if there is any, and of
// these the emptiest. Its use must become lower than that of the other was, so that every move
// is a step towards the end.
func (b *balance) relieve(from *share, takes func(*share) bool) *share {
	fits := func(p *share) bool { return p != from && takes(p) && p.useWith(from.each) < from.use() }
	for _, serves := range []func(*share) bool{
		b.isBelow,
		func(p *share) bool { return p.useWith(from.each) <= b.top() },
	} {
		serving := func(p *share) bool { return fits(p) && serves(p) }
		near := func(p *share) bool { return serving(p) && p.region.Zone == from.region.Zone }
		if to := b.best(near, emptier); to != nil {
			return to
		}
		if to := b.best(serving, emptier); to != nil {
			return to
		}
	}
	return nil
}

// supply returns the region from which a shard goes to one below the band, when none is above it:
// one that stays in the band; one of the same zone if that is above the mean, else the fullest.
func (b *balance) supply(to *share, gives func(*share) bool) *share {
	serves := func(p *share) bool {
		return p != to && gives(p) && p.load >= p.each && (p.load-p.each)/p.weight >= b.bottom() && to.useWith(p.each) < p.use()
	}
	near := func(p *share) bool { return serves(p) && p.use() > b.mean && p.region.Zone == to.region.Zone }
	if from := b.best(near, fuller); from != nil {
		return from
	}
	return b.best(serves, fuller)
}

// move carries the next shard of a region to another.
func (b *balance) move(from, to *share) Move {
	m := Move{
		Shard: from.region.Shards[from.next], From: from.region.ID, To: to.region.ID,
		Reason: "load-aware: " + parts(from.use()) + " of its part is in use here, " + parts(to.use()) + " there; the mean is " + parts(b.mean),
	}
	from.load -= min(from.load, from.each)
	to.load += from.each
	from.next++
	from.given, to.taken = true, true
	from.moves++
	to.moves++
	return m
}
