// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package recall

import (
	"slices"
	"strconv"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// What a giver has open: the index of a kind, and sets of former layouts.

// index is the set of the numbers of shards of which there may be sets that are not empty.
type index struct {
	set

	giver *giver
	known bool // It was read.
}

var _ holder = (*index)(nil)

func textOf(shards uint32) string { return strconv.FormatUint(uint64(shards), 10) }

// numberOf returns the number of shards that an id of the index means; false: it means none.
func numberOf(id string) (uint32, bool) {
	n, err := strconv.ParseUint(id, 10, 32)
	return uint32(n), err == nil && n > 0 && n <= protocol.MaxShards && id == textOf(uint32(n))
}

// writable implements holder.
func (x *index) writable() bool { return true }

// read implements holder. All layouts in force are told of before anything is written to their sets.
func (x *index) read(now machine.Instant, ids []string, out *Outbox) {
	g := x.giver
	there := map[uint32]struct{}{}
	for _, id := range ids {
		if n, ok := numberOf(id); ok {
			there[n] = struct{}{}
		} else {
			g.desk.stats.Foreign++
		}
	}
	for _, l := range g.desk.layouts {
		if _, known := there[l.Shards]; !known {
			x.put(wish{id: textOf(l.Shards), op: opRemember})
			there[l.Shards] = struct{}{}
		}
	}
	if !x.known {
		x.known = true
		for _, n := range sorted(there) {
			g.know(n)
		}
	}
	g.answer(now, out)
}

// wrote implements holder.
func (x *index) wrote(now machine.Instant, done, _ []wish, out *Outbox) {
	for _, w := range done {
		if n, ok := numberOf(w.id); ok && w.op == opForget {
			x.giver.forgo(n)
		}
	}
	x.giver.answer(now, out)
}

// failed implements holder.
func (x *index) failed(machine.Instant, string, *Outbox) {}

// lists reports whether the index tells of all layouts in force.
func (x *index) lists() bool {
	return x.known && !slices.ContainsFunc(x.giver.desk.layouts, func(l protocol.Layout) bool { return x.asked(textOf(l.Shards)) != opNone })
}

// drop takes a number of shards out of the index when nothing is left of its sets.
func (x *index) drop(n *number) {
	if n.left == 0 && !n.inForce {
		x.put(wish{id: textOf(n.of), op: opForget})
		x.giver.desk.want(&x.set)
	}
}

// former is a set of a layout before.
type former struct {
	set

	giver *giver
	known bool                // It was read.
	ids   map[string]struct{} // What it has, as far as is known.
}

var _ holder = (*former)(nil)

// has reports whether an id is still to be given.
func (f *former) has(id string) bool {
	_, there := f.ids[id]
	return there && f.asked(id) == opNone
}

// takeOut has an id taken out, and reports whether the set does not have it any more.
func (f *former) takeOut(id string) (gone bool) {
	if _, there := f.ids[id]; f.known && !there {
		return true
	}
	if f.known && f.asked(id) == opNone {
		f.put(wish{id: id, op: opForget})
		f.giver.desk.want(&f.set)
	}
	return false
}

// writable implements holder.
func (f *former) writable() bool { return true }

// read implements holder. Ids that no entity can have stay where they are.
func (f *former) read(_ machine.Instant, ids []string, _ *Outbox) {
	g, before := f.giver, f.ids
	f.ids = make(map[string]struct{}, len(ids))
	for _, id := range ids {
		if g.desk.cfg.Fault(id) != "" {
			g.desk.stats.Foreign++
			continue
		}
		if f.ids[id] = struct{}{}; f.asked(id) == opForget {
			continue
		}
		if _, queued := before[id]; !queued {
			g.queue(f, id)
		}
	}
	for _, id := range slices.Clone(f.line) { // Those that are gone already.
		if _, there := f.ids[id]; !there {
			f.drop(id)
		}
	}
	if !f.known {
		f.known = true
		g.loading--
	}
	if g.loaded += len(f.ids) - len(before); len(f.ids) == 0 {
		g.finish(f)
	}
}

// wrote implements holder.
func (f *former) wrote(now machine.Instant, done, _ []wish, out *Outbox) {
	for _, w := range done {
		if _, there := f.ids[w.id]; there {
			delete(f.ids, w.id)
			f.giver.loaded--
		}
	}
	if len(f.ids) == 0 {
		f.giver.finish(f)
	}
	f.giver.called(now, f, out)
}

// failed implements holder.
func (f *former) failed(now machine.Instant, _ string, out *Outbox) { f.giver.called(now, f, out) }
