// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package shardlog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/quorate/quorate/machine/wire"
	"github.com/quorate/quorate/sharding/epoch"
	"github.com/quorate/quorate/sharding/remember"
	"github.com/quorate/quorate/sharding/state"
	"github.com/quorate/quorate/sharding/state/eventlog"
	"github.com/quorate/quorate/sharding/state/store"
)

// A page is one record: the ids that it has, each a field of the snapshot or of an event.

// Form is the form of snapshots and events.
const Form = 1

type op uint8

// The numbers of the fields.
const (
	opRemember op = 1
	opForget   op = 2
)

// page is one record of the store, in the hands of one owner. It is used by one goroutine at a time.
type page struct {
	handle *state.Handle
	ids    map[string]struct{}
	bytes  int // Of a snapshot of the ids.
	most   int // Of the snapshot.
	tail   eventlog.Tail
	queued []change
}

// maxIDBytes bounds an id, by sharding.CheckEntityID.
const maxIDBytes = 512

// change is a change that is to be written.
type change struct {
	id string
	op op
}

// open claims and reads the page.
func (p *page) open(ctx context.Context, k *state.Keeper, key store.Key, under epoch.Epoch, most int) error {
	handle, record, err := k.Open(ctx, key, under)
	if err != nil {
		return publicly(err)
	}
	p.handle, p.ids, p.tail, p.most = handle, map[string]struct{}{}, eventlog.TailOf(record), most
	if err := eventlog.Fold(record, Form, p.apply); err != nil {
		return fmt.Errorf("%v: %w", key, publicly(err))
	}
	return nil
}

// apply makes one stored change.
func (p *page) apply(f *wire.Field) error {
	o := op(min(f.Number, 255))
	if o != opRemember && o != opForget {
		return wire.Malformed("there is no operation %d", f.Number)
	}
	id, err := f.Text(maxIDBytes)
	if err == nil && id == "" {
		err = wire.Malformed("an id is empty")
	}
	if err == nil {
		p.make(change{id, o})
	}
	return err
}

// make makes a change in memory.
func (p *page) make(c change) {
	_, there := p.ids[c.id]
	switch {
	case c.op == opRemember && !there:
		p.ids[c.id] = struct{}{}
		p.bytes += c.size()
	case c.op == opForget && there:
		delete(p.ids, c.id)
		p.bytes -= c.size()
	}
}

func (c change) size() int { return wire.SizeBytes(wire.Number(opRemember), len(c.id)) }

// queue has a change written by the next save.
func (p *page) queue(id string, o op) { p.queued = append(p.queued, change{id, o}) }

// maxSave bounds the bytes of the events of one call, but for a change that is larger.
const maxSave = 4 * eventlog.EventBytes

// save writes the queued changes, and returns the ids for which there is no room. What is to be forgotten makes room
// first. What changes nothing in memory is written too: an owner that was replaced hears of that.
func (p *page) save(ctx context.Context) (full []string, err error) {
	queued := p.queued
	p.queued = nil
	slices.SortStableFunc(queued, func(a, b change) int { return int(b.op) - int(a.op) })
	for len(queued) > 0 {
		if p.tail.Due(p.bytes) {
			if err := p.handle.SaveSnapshot(ctx, p.snapshot(), 1); err != nil {
				return nil, publicly(err)
			}
			p.tail = eventlog.Tail{}
		}
		var events []store.Value
		for size := 0; len(queued) > 0 && size < maxSave; {
			var b []byte
			b, queued, full = p.event(queued, full)
			if size += len(b); len(b) > 0 {
				events = append(events, store.Value{Form: Form, Bytes: b})
				p.tail.Add(len(b))
			}
		}
		if err := p.handle.SaveEvents(ctx, events); err != nil {
			return nil, publicly(err)
		}
	}
	return full, nil
}

// event makes the first of some changes in memory, and returns the event that says so, and what is left. A
// page whose save fails is of no more use, so memory may be ahead of the store.
func (p *page) event(queued []change, full []string) (b []byte, rest []change, over []string) {
	for len(queued) > 0 && len(b) < eventlog.EventBytes {
		c := queued[0]
		queued = queued[1:]
		if _, there := p.ids[c.id]; c.op == opRemember && !there && p.bytes+c.size() > p.most {
			full = append(full, c.id)
			continue
		}
		p.make(c)
		b = wire.AppendString(b, wire.Number(c.op), c.id)
	}
	return b, queued, full
}

// snapshot returns the encoded ids; of an empty page the value that leaves nothing.
func (p *page) snapshot() store.Value {
	if len(p.ids) == 0 {
		return store.Value{}
	}
	b := make([]byte, 0, p.bytes)
	for _, id := range slices.Sorted(maps.Keys(p.ids)) {
		b = wire.AppendString(b, wire.Number(opRemember), id)
	}
	return store.Value{Form: Form, Bytes: b}
}

// publicly makes the errors of package state, and of pages, those of package remember.
func publicly(err error) error {
	for _, is := range []struct{ inner, outer error }{
		{state.ErrFenced, remember.ErrFenced}, {eventlog.ErrUnreadable, remember.ErrUnreadable}, {eventlog.ErrNewerForm, remember.ErrNewerForm},
	} {
		if errors.Is(err, is.inner) {
			return fmt.Errorf("%w: %w", is.outer, err)
		}
	}
	return err
}
