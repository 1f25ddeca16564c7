// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"errors"
	"maps"
	"math"
	"slices"

	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// The store of a durable group: what changes is gathered into batches, of which one is being written at a time, and a
// message or an answer is held until everything on which it depends is written. In a group in memory, messages are sent
// at once.
//
// In a group that writes behind, messages that depend on entries alone are sent before these are written
// ([disk.ahead]), and entries alone are written after an interval ([disk.mayWait]). Every batch holds all that has
// changed, so that the store always holds the whole state of some earlier moment.

// disk is the part of a group that writes its store. Its methods are told whether this replica takes part.
type disk struct {
	m     *env
	index uint8
	cfg   Group
	used  bool // The group is durable, and this node holds it.

	keys  map[string]bool // The keys that have changed since the last batch.
	meta  bool            // The meta has changed.
	noted bool            // The versions of the stores of others are to be written; no message depends on that.
	wiped bool            // The store is to be emptied before the next batch.
	aside bool            // A copy is kept of what is removed.

	writing machine.CallID // The call under way, 0 for none.
	batch   WriteBatch     // What is being written, or has failed and is to be written again.
	batchOf uint64         // The number of batch, counted from the start of this node, as is last.
	last    uint64         // The number of the batch that was begun last.
	loaded  uint64         // As others are told: the number of the last batch that was in the store at the start,
	written uint64         // of the last one that was begun on which others may depend,
	kept    uint64         // and of the last one that is known to be in the store.
	failed  error          // Why the store failed last, nil if it works.
	held    []held         // What waits for batches, in order.

	// For writing behind: since is when the first of keys changed, bytes about how many bytes their entries take;
	// sinceOf and bytesOf are the same for batch. metaOf says that batch holds more than entries, wanted that something
	// in held waits for the batch after it.
	since, sinceOf machine.Instant
	bytes, bytesOf int64
	metaOf, wanted bool
}

// held is an effect that waits until a batch is written.
type held struct {
	batch  uint64
	effect machine.Effect
}

// diskTimer is due when a batch that has failed is to be written again, or when the store has taken too long for one.
type diskTimer struct{ Group uint8 }

// behindTimer is due when changes have waited to be written for as long as they may.
type behindTimer struct{ Group uint8 }

// errOverdue says that a write has not returned in its time.
var errOverdue = errors.New("the store has not answered in time")

func newDisk(m *env, index uint8, cfg Group) disk {
	last := cfg.Meta.Written
	return disk{m: m, index: index, cfg: cfg, used: cfg.Durable && cfg.Replica != 0, keys: map[string]bool{}, loaded: last, written: last, kept: last}
}

// changed notes keys that have changed.
func (d *disk) changed(keys []string) {
	if len(keys) > 0 && len(d.keys) == 0 {
		d.since = d.m.now.Mono
	}
	for _, key := range keys {
		if d.cfg.WriteBehind.Interval > 0 && !d.keys[key] {
			if e, ok := d.cfg.Table.Get(key); ok {
				d.bytes += int64(table.SizeOf(e))
			}
		}
		d.keys[key] = true
	}
}

func (d *disk) metaChanged() { d.meta = d.used }

// wipe has everything removed from the store with the next batch. With aside, a copy is kept.
func (d *disk) wipe(aside bool) {
	if d.used {
		clear(d.keys)
		d.wiped, d.aside = true, d.aside || aside
	}
}

// dirty reports whether something has to be written that is in no batch yet.
func (d *disk) dirty() bool { return d.noted || d.counts() }

// counts reports whether something is in no batch yet on which messages may depend.
func (d *disk) counts() bool { return d.meta || d.wiped || len(d.keys) > 0 }

// dependsOn is the number of the batch on which a message depends that is sent now.
func (d *disk) dependsOn(of participation) uint64 {
	if of.compared() && d.counts() {
		return d.written + 1
	}
	return d.written
}

// announced is the number that others are told of when nothing else is sent to them.
func (d *disk) announced(of participation) uint64 {
	if d.cfg.WriteBehind.Interval > 0 {
		return d.kept
	}
	return d.dependsOn(of)
}

// send sends a message as soon as everything is written on which it may depend; changed are keys that have changed
// since the last call. The envelope is given the numbers of these batches, of which send returns the last.
func (d *disk) send(to gossip.NodeID, e Envelope, of participation, changed []string) uint64 {
	d.changed(changed)
	e.Loaded, e.Written = d.loaded, d.dependsOn(of)
	ahead := d.ahead(e.Body, of)
	if ahead {
		e.Written = d.kept
	}
	d.emit(machine.Send{To: to, Lane: laneOf(e.Body), Message: e}, ahead)
	return e.Written
}

// answer ends an operation as soon as everything is written on which its answer may depend; changed are keys that have
// changed since the last call.
func (d *disk) answer(done Done, of participation, changed []string) {
	d.changed(changed)
	d.emit(done, d.ahead(done, of))
}

// emit adds an effect, or holds it until the batch is written on which it depends. With ahead, it need not wait.
func (d *disk) emit(e machine.Effect, ahead bool) {
	switch {
	case ahead:
		d.m.out.Add(e)
	case d.dirty():
		d.hold(d.last+1, e)
	case d.writing != 0 || d.failed != nil:
		d.hold(d.batchOf, e)
	default:
		d.m.out.Add(e)
	}
}

// hold keeps an effect until a batch is written. Messages beyond the bound are dropped: the protocol repeats them.
func (d *disk) hold(batch uint64, e machine.Effect) {
	if _, message := e.(machine.Send); message && len(d.held) >= d.m.cfg.Bounds.Held {
		d.m.counts.Unsent++
		return
	}
	d.wanted = d.wanted || batch > d.last
	d.held = append(d.held, held{batch, e})
}

// due reports whether a batch is to be begun: none is being written, and what has changed may not wait. Changed are
// keys that have changed since the last call.
func (d *disk) due(of participation, changed []string) bool {
	d.changed(changed)
	return d.writing == 0 && d.failed == nil && d.dirty() && !d.mayWait(of)
}

// begin begins to write what has changed, with a meta.
func (d *disk) begin(meta Meta, of participation) {
	d.last++
	d.batchOf, d.batch = d.last, d.gather(meta, of)
	clear(d.keys)
	d.metaOf, d.sinceOf, d.bytesOf = d.meta || d.wiped, d.since, d.bytes
	d.meta, d.noted, d.wiped, d.aside, d.wanted, d.bytes = false, false, false, false, false, 0
	d.write()
}

// gather makes a batch of everything that has changed.
func (d *disk) gather(meta Meta, of participation) WriteBatch {
	if d.counts() && of.compared() {
		// Otherwise nobody depends on the batch, and the number stays: with a greater one, others could not see that
		// the store lacks batches which it had before.
		d.written++
	}
	meta.Written = d.written
	p := WriteBatch{Group: d.cfg.Name, Meta: meta, Wipe: d.wiped, Aside: d.aside}
	for _, key := range slices.Sorted(maps.Keys(d.keys)) {
		if e, ok := d.cfg.Table.Get(key); ok {
			p.Entries = append(p.Entries, e)
		} else {
			p.Drop = append(p.Drop, key)
		}
	}
	return p
}

// write writes the batch.
func (d *disk) write() {
	d.m.call++
	d.writing = d.m.call
	d.m.arm(diskTimer{d.index}, d.m.cfg.Timing.Store)
	d.m.out.Add(machine.Call{ID: d.writing, Port: StorePort, Key: d.cfg.Name, Request: d.batch, Limit: d.m.cfg.Timing.Store})
}

// mayWait reports whether what has changed may wait to be written, and arms the timer if so.
func (d *disk) mayWait(of participation) bool {
	interval := d.cfg.WriteBehind.Interval
	if interval == 0 || of != takesPart || d.meta || d.noted || d.wiped || d.wanted || d.bytes >= d.cfg.WriteBehind.Bytes/2 {
		return false
	}
	if d.m.now.Mono.Sub(d.since) >= interval {
		return false
	}
	d.m.out.Arm(behindTimer{d.index}, d.since.Add(interval))
	return true
}

// ahead reports whether an answer, or a message with a body, may be sent before the entries are written on which it
// depends. Promises, acceptances and replies to a sweep wait; and everything waits while the store fails, or is so slow
// that a crash would lose more than the bounds of writing behind allow.
func (d *disk) ahead(body any, of participation) bool {
	if d.cfg.WriteBehind.Interval == 0 || of != takesPart || d.failed != nil {
		return false
	}
	switch body.(type) {
	case SweepReply, Promise, Accepted:
		return false
	}
	if d.meta || d.wiped || d.writing != 0 && d.metaOf || d.bytes+d.bytesOf > d.cfg.WriteBehind.Bytes {
		return false
	}
	oldest := d.m.now.Mono
	if len(d.keys) > 0 {
		oldest = d.since
	}
	if d.writing != 0 {
		oldest = min(oldest, d.sinceOf)
	}
	return d.m.now.Mono.Sub(oldest) <= 2*d.cfg.WriteBehind.Interval
}

// answered takes the answer of the store. A batch whose call has failed may have been written or not: it is written
// again.
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
	d.m.out.Disarm(diskTimer{d.index})
	d.kept = d.batch.Meta.Written
	d.batch, d.bytesOf = WriteBatch{}, 0
	n := 0
	for n < len(d.held) && d.held[n].batch <= d.batchOf {
		d.m.out.Add(d.held[n].effect)
		n++
	}
	d.held = slices.Delete(d.held, 0, n)
}

// fail notes that the store has failed, and has the batch written again after a tick.
func (d *disk) fail(err error) {
	d.writing, d.failed = 0, err
	d.m.counts.StoreFailures++
	d.m.arm(diskTimer{d.index}, d.m.cfg.Timing.Tick)
}

// again is called when [diskTimer] is due: it writes the failed batch again, or gives up waiting for one that is
// overdue.
func (d *disk) again() {
	switch {
	case d.writing != 0:
		d.fail(errOverdue)
	case d.failed != nil:
		d.write()
	}
}

// final returns the last batch of a node that ends, with everything in it that may be missing in the store.
func (d *disk) final(meta Meta, of participation) WriteBatch {
	d.keys = d.unwritten()
	d.wiped, d.aside = d.wiped || d.batch.Wipe, d.aside || d.batch.Aside
	d.meta = true
	return d.gather(meta, of)
}

// unwritten returns the keys that have changed, and those of the batch that may not have been written.
func (d *disk) unwritten() map[string]bool {
	all := maps.Clone(d.keys)
	for _, key := range d.cfg.Table.Changed(math.MaxInt) {
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
