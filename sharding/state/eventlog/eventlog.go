// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"errors"
	"fmt"

	"github.com/quorate/quorate/machine/wire"
	"github.com/quorate/quorate/sharding/state/store"
)

const (
	// EventBytes bounds the changes of one event, but for one change that is larger.
	EventBytes = 64 << 10
	// MaxEvents is after how many events a snapshot takes their place, or when they have as many
	// bytes as the snapshot, and eventsWorth at least.
	MaxEvents   = 128
	eventsWorth = 32 << 10
)

// Why a page cannot be read, though the store has answered.
var (
	// ErrNewerForm: a newer program has written the page.
	ErrNewerForm = errors.New("written in a newer form")
	// ErrUnreadable: the bytes of the page are not what was written.
	ErrUnreadable = errors.New("cannot be decoded")
)

// Tail is what of a page follows its last snapshot.
type Tail struct {
	Events int // How many there are.
	Bytes  int // Of all of them.
}

// TailOf returns the tail of a record.
func TailOf(r store.Record) (t Tail) {
	for _, e := range r.Events {
		t.Add(len(e.Bytes))
	}
	return t
}

// Add notes another event.
func (t *Tail) Add(size int) {
	t.Events++
	t.Bytes += size
}

// Due reports whether a snapshot of so many bytes should take the place of the events.
func (t Tail) Due(snapshot int) bool {
	return t.Events >= MaxEvents || t.Bytes >= max(snapshot, eventsWorth)
}

// Fold feeds the fields of the snapshot and of all events of a record, in their order, to apply. The error wraps
// [ErrNewerForm] or [ErrUnreadable].
func Fold(r store.Record, form uint32, apply func(*wire.Field) error) error {
	values := r.Events
	if r.Snapshot.Form > 0 {
		values = append([]store.Value{r.Snapshot}, r.Events...)
	}
	for n, v := range values {
		switch v.Form {
		case form:
		case 0:
			return fmt.Errorf("%w: value %d has no form", ErrUnreadable, n)
		default:
			return fmt.Errorf("%w: value %d has form %d, this program reads form %d", ErrNewerForm, n, v.Form, form)
		}
		if err := wire.Each(v.Bytes, apply); err != nil {
			return fmt.Errorf("%w: value %d: %w", ErrUnreadable, n, err)
		}
	}
	return nil
}
