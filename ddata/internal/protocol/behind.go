// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"

	"github.com/quorate/quorate/machine"
)

// A replica that may lack something catches up: it takes in what a winning part of the old
// homes of each of its buckets holds, or what one replica holds that has done so.

// behind is the part of a replica that catches up.
type behind struct {
	group *group
	got   map[ReplicaID]bool // The replicas whose copies were taken in, in this generation.
	whole map[ReplicaID]bool // The replicas in got that had caught up when they were asked.
	taken uint64             // How many answers have come of passes,
	moved machine.Instant    // and when the last of them came.
}

// sourcesAtOnce is from how many replicas a replica takes in at a time.
const sourcesAtOnce = 2

// begin begins anew in another generation: an answer of an earlier one is no fence.
func (b *behind) begin() {
	b.got, b.whole = map[ReplicaID]bool{}, map[ReplicaID]bool{}
	b.own()
	b.group.passes.endAll()
	b.look()
}

// own counts what this replica holds itself.
func (b *behind) own() {
	if g := b.group; g.holds() && g.reg.source(g.self, false) {
		b.got[g.self] = true
	}
}

// needs reports whether this replica has to catch up: it counts, or is to count, and may lack
// something.
func (b *behind) needs() bool {
	g := b.group
	return !g.caught && g.reg != nil && g.member() && g.reg.counted(g.self) && !g.apart()
}

// tick begins passes with those whose copy is still needed. One replica that has caught up
// is enough if it holds every key: two would send the same.
func (b *behind) tick() {
	g := b.group
	if !b.needs() {
		return
	}
	b.look()
	g.passes.renew()
	for _, p := range b.sources() {
		if g.caught || g.passes.catching() >= sourcesAtOnce || g.cfg.Copies == 0 && g.passes.going() {
			return
		}
		g.passes.begin(p, true)
	}
}

// sources returns the replicas from which to take in, those first that have caught up,
// each of which is enough alone. The others are in an order of each replica's own, so that
// not all ask the same one.
func (b *behind) sources() []*peer {
	g := b.group
	all := slices.DeleteFunc(g.sorted(), func(p *peer) bool {
		return b.got[p.id] && (b.whole[p.id] || !counts(p.caught, g.gen())) || !g.present(p.id) || g.passes.with(p) || !g.reg.source(p.id, p.caught == g.gen())
	})
	if len(all) > 1 {
		turn := int(uint64(g.self) % uint64(len(all)))
		all = slices.Concat(all[turn:], all[:turn])
	}
	slices.SortStableFunc(all, func(x, y *peer) int {
		switch xc, yc := x.caught == g.gen(), y.caught == g.gen(); {
		case xc == yc:
			return 0
		case xc:
			return -1
		default:
			return 1
		}
	})
	return all
}

// took notes that everything was taken in that a replica held when it was asked. It may
// have caught up since: what came to it that way was not asked for.
func (b *behind) took(x *pass) {
	g := b.group
	if !counts(x.gen, g.gen()) || g.caught {
		return
	}
	b.got[x.peer.id] = true
	if x.whole {
		b.whole[x.peer.id] = true
	}
	b.look()
}

// look looks whether enough was taken in.
func (b *behind) look() {
	g := b.group
	if !b.needs() {
		return
	}
	taken, whole := func(id ReplicaID) bool { return b.got[id] }, func(id ReplicaID) bool { return b.whole[id] }
	if g.views.enough(g.self, taken, whole) {
		b.done()
	}
}

// done notes that this replica has caught up, and tells the others.
func (b *behind) done() {
	g := b.group
	g.caught = true
	g.disk.metaChanged()
	for _, p := range g.sorted() {
		if g.reg.In(p.id) || p.node == g.leader() {
			g.send(p, Hello{})
		}
	}
	g.ops.caughtUp()
}
