// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"errors"
	"slices"

	"github.com/quorate/quorate/machine"
)

// The store of a durable group: what changes is gathered into batches, one of which is
// being written at a time, and no message or answer leaves before everything is written on
// which it depends. A memory group has none of this: its messages leave at once.

// disk is the part of a group that writes its store.
type disk struct {
	group *group
	keys  map[string]bool // The keys that have changed since the last batch.
	meta  bool            // The meta has changed.
	noted bool            // What others have shown is to be written, on which nobody depends.
	wiped bool            // Everything is to be forgotten first.
	aside bool

	writing machine.CallID // The call under way, 0 for none.
	batch   Persist        // What is being written, or has failed and is to be written again.
	batchOf uint64         // The number of that batch.
	last    uint64         // The number of the batch that was begun last.
	failed  error          // Why the store failed last, nil if it works.
	held    []held
}

// held is an effect that waits until a batch is written.
type held struct {
	batch  uint64
	effect machine.Effect
}

// diskTimer is due when a batch that has failed is to be written again, or one that is
// being written has had its time.
type diskTimer struct{ Group uint8 }

// errOverdue says that a write has not returned in its time.
var errOverdue = errors.New("the store has not answered in time")

func newDisk(g *group) disk { return disk{group: g, keys: map[string]bool{}} }

func (d *disk) used() bool { return d.group.cfg.Durable && d.group.member() }

// changed notes keys that have changed.
func (d *disk) changed(keys []string) {
	if !d.used() {
		return
	}
	for _, key := range keys {
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

// take takes the keys that have changed from the table, and tells the subscribers.
func (d *disk) take() []string {
	g := d.group
	keys := g.table.Changed(1 << 16)
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
	d.held = append(d.held, held{batch, e})
}

// flush begins to write what has changed, unless a batch is being written.
func (d *disk) flush() {
	g := d.group
	if d.writing != 0 || d.failed != nil || !d.dirty() {
		return
	}
	if d.counts() {
		g.age.number()
	}
	d.last++
	d.batchOf = d.last
	d.batch = Persist{Group: g.cfg.Name, Meta: d.metaNow(), Wipe: d.wiped, Aside: d.aside}
	keys := make([]string, 0, len(d.keys))
	for key := range d.keys { //quorate:unordered sorted below
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		if e, ok := g.table.Get(key); ok {
			d.batch.Entries = append(d.batch.Entries, e)
		} else {
			d.batch.Drop = append(d.batch.Drop, key)
		}
	}
	clear(d.keys)
	d.meta, d.noted, d.wiped, d.aside, g.age.news = false, false, false, false, false
	d.write()
}

// write writes the batch.
func (d *disk) write() {
	d.group.m.call++
	d.writing = d.group.m.call
	d.group.m.arm(diskTimer{d.group.index}, d.group.m.cfg.Timing.Store)
	d.group.m.out.Add(machine.Call{ID: d.writing, Port: StorePort, Key: d.group.cfg.Name, Request: d.batch, Limit: d.group.m.cfg.Timing.Store})
}

// metaNow is what is to be remembered beside the entries.
func (d *disk) metaNow() Meta {
	g, older := d.group, ReplicaID(0)
	if g.age.older != 0 {
		older = g.self
	}
	return Meta{
		Register: g.reg, Caught: g.caught, Promised: g.change.promised, Accepted: g.change.accepted, Value: g.change.value,
		Confirmed: g.sweep.marks(), Written: g.age.written, Older: older, Shown: g.age.remembered(),
	}
}

// written takes the answer of the store. A batch that has failed may have been written or
// not: it is written again.
func (d *disk) written(in machine.Called) {
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
	d.batch = Persist{}
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
