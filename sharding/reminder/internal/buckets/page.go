// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package buckets

import (
	"iter"
	"math"
	"slices"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/wire"
	"github.com/quorate/quorate/sharding/state/eventlog"
	"github.com/quorate/quorate/sharding/state/store"
)

// A page of a bucket: first its state, then its changes and how they are encoded as an event, then the snapshot, and
// how a record of the store is decoded.

// Bounds of a page.
const (
	// MaxPageBytes bounds the encoded reminders of a page.
	MaxPageBytes = 256 << 10
	// MaxEvents is the number of events after which a snapshot takes their place at the latest.
	MaxEvents = eventlog.MaxEvents
	// MaxPerEntity bounds the reminders of one entity.
	MaxPerEntity = 256
	// MaxWaiting bounds the questions that wait for one page to be read.
	MaxWaiting = 64
)

// Form is that of snapshots and events.
const Form = 1

// Why a page cannot be read, though the store has answered.
var (
	// ErrNewerForm: a newer program has written the page.
	ErrNewerForm = eventlog.ErrNewerForm
	// ErrUnreadable: the bytes of the page are not what was written.
	ErrUnreadable = eventlog.ErrUnreadable
)

type pageState uint8

const (
	closed pageState = iota
	opening
	open
)

// page is one record of the store.
type page struct {
	number int
	state  pageState

	entries map[Key]*entry
	bytes   int           // Of the encoded reminders.
	tail    eventlog.Tail // In the store, after the last snapshot.

	saving   bool
	snapshot bool     // What is being saved is a snapshot, and no change.
	inFlight []change // What is being saved.
	queued   []change // What is saved next.
	coming   int      // Bytes of the reminders in inFlight and queued.
	asked    int      // How many changes in both are to be answered.

	waiting  []Ask           // What waits for the page to be read.
	failed   int             // How often it has failed since it was last open.
	reopenAt machine.Instant // When a closed page is opened again.
	why      error           // Why it is closed.
}

type changeOp uint8

const (
	opPut     changeOp = iota + 1 // A reminder is set, in the place of one with its key.
	opRemove                      // A reminder is canceled, or has been delivered.
	opAdvance                     // A reminder has been delivered, and is due again later.
)

// change is one change of a page.
type change struct {
	op    changeOp
	key   Key      // Of opRemove and opAdvance.
	due   int64    // Of opAdvance: the next time.
	put   Reminder // Of opPut.
	size  int      // Of opPut: its encoded size.
	of    *entry   // Of opRemove and opAdvance after a delivery: its entry; else nil.
	asked uint64   // The question to answer when the change is saved; zero: none.
	found bool     // For [Answer.Found].
}

// append appends the encoding: a field with the number of the operation.
func (c change) append(b []byte) []byte {
	b, at := wire.Begin(b, wire.Number(c.op))
	if c.op == opPut {
		b = AppendReminder(b, c.put)
	} else {
		b = appendKey(b, c.key)
		if c.op == opAdvance {
			b = wire.AppendUint(b, fieldDue, zigzag(c.due))
		}
	}
	return wire.End(b, at)
}

// due reports whether a snapshot is to take the place of the events.
func (p *page) due() bool {
	return p.tail.Due(p.bytes)
}

// next returns what is to be saved next, and notes that it is being saved.
func (p *page) next() SavePage {
	p.saving = true
	if p.due() {
		p.snapshot = true
		return SavePage{Page: p.number, Snapshot: p.encode()}
	}
	var b []byte
	n := 0
	for n < len(p.queued) && (n == 0 || len(b) < eventlog.EventBytes) {
		b = p.queued[n].append(b)
		n++
	}
	p.inFlight = p.queued[:n:n]
	p.queued = p.queued[n:]
	if len(p.queued) == 0 {
		p.queued = nil
	}
	p.tail.Add(len(b))
	return SavePage{Page: p.number, Events: []store.Value{{Form: Form, Bytes: b}}}
}

// unsaved returns the changes of a reminder that were asked for and are not saved, in their order.
func (p *page) unsaved(key Key) iter.Seq[change] {
	return func(yield func(change) bool) {
		for _, changes := range [][]change{p.inFlight, p.queued} {
			for _, c := range changes {
				if c.key == key && c.of == nil && !yield(c) {
					return
				}
			}
		}
	}
}

// encode returns the snapshot of the page; if that is empty, the value by which nothing is stored.
func (p *page) encode() store.Value {
	if len(p.entries) == 0 {
		return store.Value{}
	}
	b := make([]byte, 0, p.bytes+8*len(p.entries))
	for _, e := range p.sorted(nil) {
		b = change{op: opPut, put: e.Reminder}.append(b)
	}
	return store.Value{Form: Form, Bytes: b}
}

// sorted returns the entries in the order of their keys: all, or those that are wanted.
func (p *page) sorted(want func(Key) bool) []*entry {
	all := make([]*entry, 0, len(p.entries))
	for k, e := range p.entries { //quorate:unordered They are sorted.
		if want == nil || want(k) {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b *entry) int { return a.Compare(b.Key) })
	return all
}

// content returns the reminders in a record of the store.
func content(r store.Record) (map[Key]Reminder, error) {
	all := map[Key]Reminder{}
	if err := eventlog.Fold(r, Form, func(f *wire.Field) error { return applyField(all, f) }); err != nil {
		return nil, err
	}
	return all, nil
}

// applyField makes the stored change of a field.
func applyField(all map[Key]Reminder, f *wire.Field) error {
	op := changeOp(min(f.Number, math.MaxUint8))
	if op < opPut || op > opAdvance {
		return wire.Malformed("there is no operation %d", f.Number)
	}
	b, err := f.Data(math.MaxInt)
	if err != nil {
		return err
	}
	r, err := DecodeReminder(b)
	if err != nil {
		return err
	}
	if fault := r.Check(); fault != "" {
		return wire.Malformed("a reminder: %s", fault)
	}
	before, there := all[r.Key]
	switch {
	case op == opPut:
		all[r.Key] = r
	case op == opRemove:
		delete(all, r.Key)
	case there:
		before.Due = r.Due
		all[r.Key] = before
	}
	return nil
}
