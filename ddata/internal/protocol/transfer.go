// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// A replica that may lack something catches up by transfer of state: it takes in the copies of a winning part of the
// homes that reads ask, for each of its buckets, or the copy of one replica that has caught up itself.

// transfer is the part of a group by which this replica catches up.
type transfer struct {
	*known

	passes *passes
	taken  map[ReplicaID]bool // The replicas whose copies were taken in, in this generation.
	whole  map[ReplicaID]bool // Those of taken that had caught up when they were asked.
}

// sourcesAtOnce is from how many replicas a replica takes in at a time.
const sourcesAtOnce = 2

// begin begins anew in another generation, for which copies that were taken in before do not count (see [counts]). It
// reports whether this replica has caught up by its own copy alone.
func (b *transfer) begin() bool {
	b.taken, b.whole = map[ReplicaID]bool{}, map[ReplicaID]bool{}
	b.countOwn()
	b.passes.endAll()
	return b.enough()
}

// countOwn counts the copy that this replica has itself.
func (b *transfer) countOwn() {
	if b.holds() && b.reg.source(b.self, false) {
		b.taken[b.self] = true
	}
}

// needs reports whether this replica has to catch up: it counts, or is to count, and may lack
// something.
func (b *transfer) needs() bool {
	return !b.caught && b.reg != nil && b.member() && b.reg.counted(b.self) && !b.apart()
}

// ask begins passes with replicas whose copies are still needed. If replicas hold every key, one pass with a replica
// that has caught up is enough: a second one would bring the same.
func (b *transfer) ask() (out []peerMessage) {
	b.passes.renew()
	for _, p := range b.sources() {
		if b.caught || b.passes.catching() >= sourcesAtOnce || b.cfg.Copies == 0 && b.passes.going() {
			break
		}
		out = append(out, b.passes.begin(p, true))
	}
	return out
}

// sources returns the replicas to ask. Those that have caught up come first, since one of them is enough alone. Each
// replica that catches up has another order of the rest, so that they do not all ask the same one.
func (b *transfer) sources() []*peer {
	all := slices.DeleteFunc(b.sorted(), func(p *peer) bool {
		return b.taken[p.id] && (b.whole[p.id] || !counts(p.caught, b.gen())) || !b.present(p.id) || b.passes.with(p) || !b.reg.source(p.id, p.caught == b.gen())
	})
	if len(all) > 1 {
		turn := int(uint64(b.self) % uint64(len(all)))
		all = slices.Concat(all[turn:], all[:turn])
	}
	slices.SortStableFunc(all, func(x, y *peer) int {
		switch xc, yc := x.caught == b.gen(), y.caught == b.gen(); {
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

// noteTaken notes that a pass of catching up has ended, and reports whether this replica has caught up. The copy counts
// as whole only if the other replica had caught up when the pass began: what it took in since was not asked for.
func (b *transfer) noteTaken(x *pass) bool {
	if !counts(x.gen, b.gen()) || b.caught {
		return false
	}
	b.taken[x.peer.id] = true
	if x.whole {
		b.whole[x.peer.id] = true
	}
	return b.enough()
}

// enough reports whether this replica had to catch up and has done so: the copies that were taken in are enough.
func (b *transfer) enough() bool {
	taken, whole := func(id ReplicaID) bool { return b.taken[id] }, func(id ReplicaID) bool { return b.whole[id] }
	return b.needs() && b.views.enough(b.self, taken, whole)
}
