// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"slices"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// The layouts of the table, while the number of shards changes: relayout begins a change, or learn and
// learnRetired take over one that an earlier coordinator had begun; retire ends a former shard, spread notes
// that all regions know, and forgo drops the former layout. add and tell put all that into the map.

// maxPast bounds the numbers of shards of the past that are remembered.
const maxPast = 32

// changes is what a table knows of changes of the number of shards. Invariants, between steps:
//
//	N1  one layout is in force, or two of which the numbers follow each other: then the lower one is the
//	    former layout, whose shards get no home any more;
//	N2  the epochs of homes in the next layout are above those of the former one, since no former shard
//	    gets a home once the change has begun: so the epochs of an entity grow from one to the other;
//	N3  a retired shard stays so, under one epoch, which is above those of its homes; it has its
//	    positions until every region has heard of it.
type changes struct {
	began  bool     // The number of shards was changed since the cluster formed.
	open   bool     // The coordinator knows of all changes: it may tell of them.
	untold bool     // The layouts have changed since the last version.
	past   []uint32 // Numbers of shards that the kind has had.
	at     uint64   // The version by which the regions were told of the present layouts; 0: not yet.
}

// isChanging reports whether two layouts are in force, former and next return them, and isFormer whether a
// shard is of the former one.
func (t *table) isChanging() bool { return len(t.shards.parts) > 1 }

func (t *table) former() protocol.Layout { return t.shards.parts[0].Layout }

func (t *table) isFormer(id protocol.ShardID) bool {
	return t.isChanging() && id.Layout() == t.former().Number
}

// relayout begins a change to a number of shards.
func (t *table) relayout(shards uint32) {
	t.changes.began, t.changes.open = true, true
	t.rememberShardCounts(t.present().Shards, shards)
	t.shards.add(protocol.Layout{Number: t.present().Number + 1, Shards: shards})
	t.recount()
	t.changes.untold = true
}

// rememberShardCounts notes how many shards the kind has had, or is to have: the last maxPast counts.
func (t *table) rememberShardCounts(numbers ...uint32) {
	for _, n := range numbers {
		if !slices.Contains(t.changes.past, n) {
			t.changes.past = append(t.changes.past, n)
		}
	}
	t.changes.past = t.changes.past[max(0, len(t.changes.past)-maxPast):]
}

// present returns the layout with the highest number.
func (t *table) present() protocol.Layout { return t.shards.parts[len(t.shards.parts)-1].Layout }

// learn takes over what a region knows of layouts. Those below the first of a region are in force no
// more: a layout is dropped when all regions know that its shards are retired.
func (t *table) learn(layouts []protocol.Layout, past []uint32) {
	if len(layouts) == 0 {
		return
	}
	t.rememberShardCounts(past...)
	first := layouts[0].Number
	if t.changes.began {
		first = max(first, t.former().Number)
	} else { // The layout so far is what this node is configured for.
		t.shards.keep(func(l protocol.Layout) bool { return slices.Contains(layouts, l) })
	}
	t.changes.began = true
	for _, l := range layouts {
		t.shards.add(l)
	}
	t.shards.keep(func(l protocol.Layout) bool { return l.Number >= first })
	t.recount()
}

// learnRetired takes over that a shard is retired, from a region that was told so by an earlier coordinator.
func (t *table) learnRetired(r Retirement) {
	s := t.shards.at(r.Shard)
	if s == nil || !t.isFormer(r.Shard) {
		return
	}
	known := r.Known || s.phase == PhaseRetired && s.travelling
	if s.phase == PhaseRetired && s.travelling || r.Epoch.Less(s.epoch) {
		return
	}
	t.put(s, shard{
		epoch: r.Epoch, base: r.Base, positions: r.Positions, travelling: known, phase: PhaseRetired,
		since: t.control().now.Wall, decision: "reported as retired to a new coordinator",
	})
	t.snapshots.drop(r.Shard)
	t.changed[r.Shard] = true
}

// tellAll has the regions told of all changes, since the coordinator knows of them now. They hear of all
// homes once more: a region that did not know of a layout has passed over the homes in it.
func (t *table) tellAll() {
	t.changes.open = true
	if !t.changes.began {
		return
	}
	t.changes.untold = true
	for id, s := range t.shards.all() {
		if s.phase != PhaseOpen {
			t.changed[id] = true
		}
	}
}

// retire ends a former shard, which no node hosts: its home has confirmed that it stopped, or is fenced.
func (t *table) retire(id protocol.ShardID, why string) {
	s := t.shards.at(id)
	epoch := protocol.Epoch{Born: t.born, Term: t.term, N: t.version + 1}
	if s.base.IsZero() {
		s.base = epoch // Nothing was ever sent.
	}
	t.put(s, shard{
		epoch: epoch, base: s.base,
		positions: s.positions, travelling: s.travelling, phase: PhaseRetired, since: t.control().now.Wall, decision: why,
	})
	t.snapshots.drop(id)
	delete(t.wanted, id)
	t.changed[id] = true
}

// retirable returns the former shards that no node hosts and that are not retired.
func (t *table) retirable() (ids []protocol.ShardID) {
	for id, s := range t.shards.all() {
		if t.isFormer(id) && s.phase == PhaseOpen {
			ids = append(ids, id)
		}
	}
	return ids
}

// spread notes up to which version every region holds the map: the positions of what was retired
// before have done their work. It returns how many retirements some region has not heard of.
func (t *table) spread(version uint64) (untold int) {
	if !t.isChanging() {
		return 0
	}
	for _, s := range t.shards.all() {
		switch {
		case s.phase != PhaseRetired:
		case s.told == 0 || s.told > version:
			untold++
		default:
			s.positions, s.travelling = nil, false
		}
	}
	return untold
}

// remaining returns how many former shards are not retired.
func (t *table) remaining() (n int) {
	for id, s := range t.shards.all() {
		if t.isFormer(id) && s.phase != PhaseRetired {
			n++
		}
	}
	return n
}

// forgo drops the former layout.
func (t *table) forgo() {
	gone := t.former().Number
	t.shards.keep(func(l protocol.Layout) bool { return l.Number != gone })
	t.recount()
	for id := range t.changed { //quorate:unordered each entry by itself
		if !t.has(id) {
			delete(t.changed, id)
		}
	}
	t.changes.untold = true
}

// tell puts into a map what is to be told of layouts.
func (t *table) tell(m *Map) {
	if !t.changes.began || !t.changes.open {
		return
	}
	m.Layouts, m.Past = t.shards.layouts(), slices.Clone(t.changes.past)
	if m.Settled = t.settled(); t.changes.untold {
		t.changes.at, t.changes.untold = m.To, false
	}
}

// settled returns an epoch up to which every region knows of all retirements.
func (t *table) settled() (known protocol.Epoch) {
	var first protocol.Epoch // The lowest epoch of which that is not so.
	for _, s := range t.shards.all() {
		if s.phase == PhaseRetired && s.travelling && (first.IsZero() || s.epoch.Less(first)) {
			first = s.epoch
		}
	}
	for _, s := range t.shards.all() {
		if s.phase == PhaseRetired && known.Less(s.epoch) && (first.IsZero() || s.epoch.Less(first)) {
			known = s.epoch
		}
	}
	return known
}

// add puts the entry of a shard into a map.
func (t *table) add(m *Map, id protocol.ShardID, s *shard) {
	switch {
	case s.phase == PhaseRetired && t.changes.open:
		m.Retired = append(m.Retired, Retirement{Shard: id, Epoch: s.epoch, Base: s.base, Positions: s.positions, Known: s.travelling})
	case !s.home.IsZero():
		m.Homes = append(m.Homes, s.entry(id))
	}
}

// accepts reports whether a region may be configured for a number of shards: for one that the kind has
// or has had, or for any if it goes by a map.
func (t *table) accepts(shards uint32, goesByMap bool) bool {
	return t.changes.began && (goesByMap || slices.Contains(t.changes.past, shards))
}

// holds notes which version of the map of this coordinator a region holds.
func (r *regions) holds(node gossip.NodeID, version uint64) {
	r.held[node] = max(r.held[node], version)
}

// heldByAll returns the lowest version of the map that a region holds.
func (r *regions) heldByAll() uint64 {
	least := ^uint64(0)
	for node := range r.registrations { //quorate:unordered a minimum
		least = min(least, r.held[node])
	}
	return least
}
