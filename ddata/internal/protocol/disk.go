// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"errors"
	"maps"
	"math"
	"slices"

	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/machine"
)

// The store of a durable group: what changes is gathered into batches, one of which is
// being written at a time, and no message or answer leaves before everything is written on
// which it depends. A memory group has none of this: its messages leave at once.
//
// In a group that writes behind, what depends on entries alone leaves before they are written
// ([disk.ahead]), and entries alone are written after an interval ([disk.rests]). Every batch
// holds all that has changed, so that the store always shows a whole earlier moment.

// disk is the part of a group that writes its store.
type disk struct {
	group *group
	keys  map[string]bool // The keys that have changed since the last batch.
	meta  bool            // The meta has changed.
	noted bool            // The numbers that others have shown are to be written; no message depends on that.
	wiped bool            // The store is to be emptied before the next batch.
	aside bool

	writing machine.CallID // The call under way, 0 for none.
	batch   Persist        // What is being written, or has failed and is to be written again.
	batchOf uint64         // The number of batch.
	last    uint64         // The number of the batch that was begun last.
	loaded  uint64         // The number of the last batch that was in the store at the start,
	written uint64         // of the last one that was begun on which others may depend,
	kept    uint64         // and of the last one that is known to be in the store.
	failed  error          // Why the store failed last, nil if it works.
	held    []held

	// For writing behind. since is when the first of keys has changed, bytes about how much their
	// entries take; sinceOf and bytesOf are the same of batch. metaOf says that batch holds more
	// than entries, wanted that a message waits for the batch after it.
	since, sinceOf machine.Instant
	bytes, bytesOf int64
	metaOf, wanted bool
}

// held is an effect that waits until a batch is written.
type held struct {
	batch  uint64
	effect machine.Effect
}

// diskTimer is due when a batch that has failed is to be written again, or one that is
// being written has had its time.
type diskTimer struct{ Group uint8 }

// behindTimer is due when changes have waited for as long as they may.
type behindTimer struct{ Group uint8 }

// errOverdue says that a write has not returned in its time.
var errOverdue = errors.New("the store has not answered in time")

func newDisk(g *group) disk {
	last := g.cfg.Meta.Written
	return disk{group: g, keys: map[string]bool{}, loaded: last, written: last, kept: last}
}

func (d *disk) used() bool { return d.group.cfg.Durable && d.group.member() }

// changed notes keys that have changed.
func (d *disk) changed(keys []string) {
	if !d.used() {
		return
	}
	if len(keys) > 0 && len(d.keys) == 0 {
		d.since = d.group.m.now.Mono
	}
	for _, key := range keys {
		if d.group.cfg.Behind.Interval > 0 && !d.keys[key] {
			if e, ok := d.group.table.Get(key); ok {
				d.bytes += int64(table.SizeOf(e))
			}
		}
		d.keys[key] = true
	}
}

func (d *disk) metaChanged() { d.meta = d.used() }

// wipe forgets everything that was written.
func (d *disk) wipe(aside bool) {
	if d.used() {
		clear(d.keys)
		d.wiped, d.aside = true, d.aside || aside
	}
}

// dirty reports whether something is not in any batch yet.
func (d *disk) dirty() bool { return d.noted || d.counts() }

// counts reports whether others may come to depend on what is not in any batch yet.
func (d *disk) counts() bool { return d.meta || d.wiped || len(d.keys) > 0 }

// shows is the number on which a message depends that is sent now.
func (d *disk) shows() uint64 {
	if d.group.integrity.compared() && d.counts() {
		return d.written + 1
	}
	return d.written
}

// stands is the number that others are to hear of while this replica is at rest.
func (d *disk) stands() uint64 {
	if d.group.cfg.Behind.Interval > 0 {
		return d.kept
	}
	return d.shows()
}

// after has an effect carried out as soon as everything is written on which it may depend.
func (d *disk) after(e machine.Effect) {
	g := d.group
	if !d.used() {
		g.m.out.Add(e)
		return
	}
	d.changed(d.take())
	switch {
	case d.dirty():
		d.hold(d.last+1, e)
	case d.writing != 0 || d.failed != nil:
		d.hold(d.batchOf, e)
	default:
		g.m.out.Add(e)
	}
}

// changedAtOnce is how many keys are taken from the table at a time.
const changedAtOnce = 1 << 16

// take takes all keys that have changed from the table, and tells the subscribers.
func (d *disk) take() []string {
	g := d.group
	var keys []string
	for more := true; more; {
		some := g.table.Changed(changedAtOnce)
		keys, more = append(keys, some...), len(some) == changedAtOnce
	}
	if len(keys) > 0 {
		g.sweep.changed(keys)
		g.m.out.Add(Notify{Group: g.index, Keys: keys})
	}
	return keys
}

// hold keeps an effect. Messages beyond the bound are dropped: the protocol repeats them.
func (d *disk) hold(batch uint64, e machine.Effect) {
	if _, message := e.(machine.Send); message && len(d.held) >= d.group.m.cfg.Bounds.Held {
		d.group.m.counts.Unsent++
		return
	}
	d.wanted = d.wanted || batch > d.last
	d.held = append(d.held, held{batch, e})
}

// flush begins to write what has changed, unless a batch is being written.
func (d *disk) flush() {
	g := d.group
	if d.writing != 0 || d.failed != nil || !d.dirty() || d.rests() {
		return
	}
	d.last++
	d.batchOf, d.batch = d.last, d.gather()
	clear(d.keys)
	d.metaOf, d.sinceOf, d.bytesOf = d.meta || d.wiped, d.since, d.bytes
	d.meta, d.noted, d.wiped, d.aside, g.integrity.news, d.wanted, d.bytes = false, false, false, false, false, false, 0
	d.write()
}

// gather makes a batch of everything that has changed.
func (d *disk) gather() Persist {
	g := d.group
	if d.counts() && g.integrity.compared() {
		// While the replica is apart nobody depends on the batch, and the number stays: a greater one would hide what
		// is missing below it.
		d.written++
	}
	p := Persist{Group: g.cfg.Name, Meta: d.metaNow(), Wipe: d.wiped, Aside: d.aside}
	for _, key := range slices.Sorted(maps.Keys(d.keys)) {
		if e, ok := g.table.Get(key); ok {
			p.Entries = append(p.Entries, e)
		} else {
			p.Drop = append(p.Drop, key)
		}
	}
	return p
}

// write writes the batch.
func (d *disk) write() {
	d.group.m.call++
	d.writing = d.group.m.call
	d.group.m.arm(diskTimer{d.group.index}, d.group.m.cfg.Timing.Store)
	d.group.m.out.Add(machine.Call{ID: d.writing, Port: StorePort, Key: d.group.cfg.Name, Request: d.batch, Limit: d.group.m.cfg.Timing.Store})
}

// rests reports whether what has changed may wait to be written, and sets the timer then.
func (d *disk) rests() bool {
	g := d.group
	interval := g.cfg.Behind.Interval
	if interval == 0 || g.apart() || d.meta || d.noted || d.wiped || d.wanted || d.bytes >= g.cfg.Behind.Bytes/2 {
		return false
	}
	if g.m.now.Mono.Sub(d.since) >= interval {
		return false
	}
	g.m.out.Arm(behindTimer{g.index}, d.since.Add(interval))
	return true
}

// ahead reports whether an answer, or a message with a body, may leave before the entries are
// written on which it depends. Votes and the word for a sweep wait, and so does everything while
// the store fails, or is so slow that more would be lost than was promised.
func (d *disk) ahead(body any) bool {
	g := d.group
	if g.cfg.Behind.Interval == 0 || !d.used() || g.apart() || d.failed != nil {
		return false
	}
	switch body.(type) {
	case Swept, Promise, Accepted:
		return false
	}
	d.changed(d.take())
	if d.meta || d.wiped || d.writing != 0 && d.metaOf || d.bytes+d.bytesOf > g.cfg.Behind.Bytes {
		return false
	}
	oldest := g.m.now.Mono
	if len(d.keys) > 0 {
		oldest = d.since
	}
	if d.writing != 0 {
		oldest = min(oldest, d.sinceOf)
	}
	return g.m.now.Mono.Sub(oldest) <= 2*g.cfg.Behind.Interval
}

// metaNow is what is to be remembered beside the entries.
func (d *disk) metaNow() Meta {
	g, was := d.group, ReplicaID(0)
	if g.integrity.count == older {
		was = g.self
	}
	return Meta{
		Register: g.reg, Caught: g.caught, Promised: g.change.promised, Accepted: g.change.accepted, Value: g.change.value,
		Confirmed: g.sweep.marks(), Written: d.written, Older: was, Shown: g.integrity.remembered(), Behind: g.behindStore(), Restarts: g.integrity.restarts,
	}
}

// answered takes the answer of the store. A batch that has failed may have been written or
// not: it is written again.
func (d *disk) answered(in machine.Called) {
	if in.ID != d.writing || d.writing == 0 {
		return
	}
	d.writing = 0
	if in.Err != nil {
		d.fail(in.Err)
		return
	}
	d.failed = nil
	d.group.m.out.Disarm(diskTimer{d.group.index})
	d.kept = d.batch.Meta.Written
	d.batch, d.bytesOf = Persist{}, 0
	n := 0
	for n < len(d.held) && d.held[n].batch <= d.batchOf {
		d.group.m.out.Add(d.held[n].effect)
		n++
	}
	d.held = slices.Delete(d.held, 0, n)
}

// fail has the batch written again a little later.
func (d *disk) fail(err error) {
	d.writing, d.failed = 0, err
	d.group.m.counts.StoreFailures++
	d.group.m.arm(diskTimer{d.group.index}, d.group.m.cfg.Timing.Tick)
}

// again writes the failed batch again, and gives up waiting for one that is overdue.
func (d *disk) again() {
	switch {
	case d.writing != 0:
		d.fail(errOverdue)
	case d.failed != nil:
		d.write()
	}
}

// final is the last batch, with everything in it that may be missing.
func (d *disk) final() Persist {
	d.keys = d.unwritten()
	d.wiped, d.aside = d.wiped || d.batch.Wipe, d.aside || d.batch.Aside
	d.meta = true
	p := d.gather()
	p.Meta.Behind = d.group.integrity.unclean
	return p
}

// unwritten returns the keys that have changed, with those of the batch of which nothing is known.
func (d *disk) unwritten() map[string]bool {
	all := maps.Clone(d.keys)
	for _, key := range d.group.table.Changed(math.MaxInt) {
		all[key] = true
	}
	for _, e := range d.batch.Entries {
		all[e.Key] = true
	}
	for _, key := range d.batch.Drop {
		all[key] = true
	}
	return all
}
