// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package remind

import (
	"iter"
	"math"
	"slices"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/wire"
	"github.com/quorate/quorate/sharding/state/eventlog"
	"github.com/quorate/quorate/sharding/state/store"
)

// A page of a bucket: first what the bucket knows of it, then the changes and how they are encoded as
// an event, the snapshot, and how a record of the store becomes the content of a page.

// Bounds of a page.
const (
	// PageBytes bounds the encoded reminders of a page.
	PageBytes = 256 << 10
	// EventsMost is after how many events a snapshot takes their place at the latest.
	EventsMost = eventlog.EventsMost
	// PerEntity bounds the reminders of one entity.
	PerEntity = 256
	// WaitingMost bounds the questions that wait for one page to be read.
	WaitingMost = 64
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
	coming   int      // Bytes of the reminders in both.
	asked    int      // Of the changes in both, those that somebody waits for.

	waiting []Ask           // What waits for the page to be read.
	failed  int             // Attempts to open it since it was last open.
	again   machine.Instant // When a closed page is opened anew.
	why     error           // Why it is closed.
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
	of    *entry   // The delivered entry of opRemove and opAdvance; nil for what was asked for.
	asked uint64   // The question to answer when the change is saved; zero: none.
	found bool     // What the answer says.
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

// due reports whether a snapshot should take the place of the events.
func (p *page) due() bool {
	return p.tail.Due(p.bytes)
}

// next returns what is to be saved next, and notes that it is.
func (p *page) next() Save {
	p.saving = true
	if p.due() {
		p.snapshot = true
		return Save{Page: p.number, Snapshot: p.encode()}
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
	return Save{Page: p.number, Events: []store.Value{{Form: Form, Bytes: b}}}
}

// asking returns the changes of a reminder that were asked for and are not saved, in their order.
func (p *page) asking(key Key) iter.Seq[change] {
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

// encode returns the snapshot; of an empty page the value that leaves nothing.
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

// content makes the reminders of a record of the store.
func content(r store.Record) (map[Key]Reminder, error) {
	all := map[Key]Reminder{}
	if err := eventlog.Fold(r, Form, func(f *wire.Field) error { return apply(all, f) }); err != nil {
		return nil, err
	}
	return all, nil
}

// apply makes one stored change.
func apply(all map[Key]Reminder, f *wire.Field) error {
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
