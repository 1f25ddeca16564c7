// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package remembering

import (
	"slices"
	"strconv"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// The sets that an exporter has open: the index of a kind, and sets of former layouts.

// indexSet is the set of the numbers of shards of which there may be sets that are not empty.
type indexSet struct {
	set

	exporter *exporter
	known    bool // It was read.
}

var _ holder = (*indexSet)(nil)

func textOf(shards uint32) string { return strconv.FormatUint(uint64(shards), 10) }

// numberOf returns the number of shards that an id of the index means; false: it means none.
func numberOf(id string) (uint32, bool) {
	n, err := strconv.ParseUint(id, 10, 32)
	return uint32(n), err == nil && n > 0 && n <= protocol.MaxShards && id == textOf(uint32(n))
}

// writable implements holder.
func (x *indexSet) writable() bool { return true }

// read implements holder. All layouts in force are told of before anything is written to their sets.
func (x *indexSet) read(now machine.Instant, ids []string, out *Outbox) {
	e := x.exporter
	there := map[uint32]struct{}{}
	for _, id := range ids {
		if n, ok := numberOf(id); ok {
			there[n] = struct{}{}
		} else {
			e.machine.stats.Foreign++
		}
	}
	for _, l := range e.machine.layouts {
		if _, known := there[l.Shards]; !known {
			x.put(request{id: textOf(l.Shards), op: opRemember})
			there[l.Shards] = struct{}{}
		}
	}
	if !x.known {
		x.known = true
		for _, n := range sorted(there) {
			e.addFormer(n)
		}
	}
	e.answer(now, out)
}

// wrote implements holder.
func (x *indexSet) wrote(now machine.Instant, done, _ []request, out *Outbox) {
	for _, w := range done {
		if n, ok := numberOf(w.id); ok && w.op == opForget {
			x.exporter.removeFormer(n)
		}
	}
	x.exporter.answer(now, out)
}

// failed implements holder.
func (x *indexSet) failed(machine.Instant, string, *Outbox) {}

// lists reports whether the index tells of all layouts in force.
func (x *indexSet) lists() bool {
	return x.known && !slices.ContainsFunc(x.exporter.machine.layouts, func(l protocol.Layout) bool { return x.asked(textOf(l.Shards)) != opNone })
}

// drop takes a number of shards out of the index when nothing is left of its sets.
func (x *indexSet) drop(n *formerNumber) {
	if n.left == 0 && !n.inForce {
		x.put(request{id: textOf(n.of), op: opForget})
		x.exporter.machine.want(&x.set)
	}
}

// formerSet is a set of a former layout that is open for export.
type formerSet struct {
	set

	exporter *exporter
	known    bool                // It was read.
	ids      map[string]struct{} // What it has, as far as is known.
}

var _ holder = (*formerSet)(nil)

// has reports whether an id is still to be given.
func (f *formerSet) has(id string) bool {
	_, there := f.ids[id]
	return there && f.asked(id) == opNone
}

// takeOut requests the removal of an id, and reports whether the set does not have it any more.
func (f *formerSet) takeOut(id string) (gone bool) {
	if _, there := f.ids[id]; f.known && !there {
		return true
	}
	if f.known && f.asked(id) == opNone {
		f.put(request{id: id, op: opForget})
		f.exporter.machine.want(&f.set)
	}
	return false
}

// writable implements holder.
func (f *formerSet) writable() bool { return true }

// read implements holder. Ids that no entity can have stay where they are.
func (f *formerSet) read(_ machine.Instant, ids []string, _ *Outbox) {
	e, before := f.exporter, f.ids
	f.ids = make(map[string]struct{}, len(ids))
	for _, id := range ids {
		if e.machine.cfg.Fault(id) != "" {
			e.machine.stats.Foreign++
			continue
		}
		if f.ids[id] = struct{}{}; f.asked(id) == opForget {
			continue
		}
		if _, queued := before[id]; !queued {
			e.queue(f, id)
		}
	}
	for _, id := range slices.Clone(f.line) { // Those that are gone already.
		if _, there := f.ids[id]; !there {
			f.drop(id)
		}
	}
	if !f.known {
		f.known = true
		e.loading--
	}
	if e.loaded += len(f.ids) - len(before); len(f.ids) == 0 {
		e.finish(f)
	}
}

// wrote implements holder.
func (f *formerSet) wrote(now machine.Instant, done, _ []request, out *Outbox) {
	for _, w := range done {
		if _, there := f.ids[w.id]; there {
			delete(f.ids, w.id)
			f.exporter.loaded--
		}
	}
	if len(f.ids) == 0 {
		f.exporter.finish(f)
	}
	f.exporter.called(now, f, out)
}

// failed implements holder.
func (f *formerSet) failed(now machine.Instant, _ string, out *Outbox) {
	f.exporter.called(now, f, out)
}
