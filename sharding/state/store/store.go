// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"fmt"

	"github.com/quorate/quorate/sharding/epoch"
)

// First the interface, then the names of records and owners, then what is read and written.

// Store keeps the records of entities. Its methods are called from many goroutines at once. They return soon after
// their context has ended, and keep none of the bytes that they are passed or have returned.
//
// After an error, any part of the call may have taken effect, or may take effect later; the caller repeats it. Without
// an error there is an answer for each argument, in their order. A call has each key at most once.
type Store interface {
	// Load gives each record to the owner of the claim, unless a later owner has it, and returns the records. A record
	// that is not there is made. Of a record that a later owner has, only the head need be right.
	Load(ctx context.Context, claims []Claim) ([]Record, error)

	// Save writes each record that has the expected head, and returns the heads of all as they are then. A write that
	// is refused does not affect the others.
	Save(ctx context.Context, writes []Write) ([]Head, error)
}

// Key names a record: by its entity and the kind of that. Both are valid UTF-8; an id has 1 to 1,024 bytes, a kind 1 to
// 128.
type Key struct {
	Kind string
	ID   string
}

// String returns the kind and the quoted id.
func (k Key) String() string { return fmt.Sprintf("%s %q", k.Kind, k.ID) }

// Compare orders keys by kind, then by id.
func (k Key) Compare(o Key) int {
	return cmp.Or(cmp.Compare(k.Kind, o.Kind), cmp.Compare(k.ID, o.ID))
}

// Owner is one instance of an entity. Owners are totally ordered: by the epoch of the home of the shard, and in one
// home by the number of the instance. Each is above all that were started before it. The zero value is no owner, and
// below all others.
type Owner struct {
	Epoch    epoch.Epoch
	Instance uint64 // From 1; below 2^63.
}

// Compare returns -1, 0 or +1 when o is below, equal to or above p.
func (o Owner) Compare(p Owner) int {
	return cmp.Or(o.Epoch.Compare(p.Epoch), cmp.Compare(o.Instance, p.Instance))
}

// Less reports whether o is below p.
func (o Owner) Less(p Owner) bool { return o.Compare(p) < 0 }

// String returns the text of the epoch and the number of the instance.
func (o Owner) String() string { return fmt.Sprintf("%v/%d", o.Epoch, o.Instance) }

// Head says who owns a record, and how often it has changed.
type Head struct {
	Owner Owner
	// Version counts the changes, and rises by one with each event. Zero: nothing was saved. Below 2^63.
	Version uint64
}

// Value is an encoded state or an encoded event.
type Value struct {
	// Form is the number of the encoding, which its writer chooses, from 1. Zero: there is no value.
	Form  uint32
	Bytes []byte
}

// Record is what a store has of an entity. The events follow the snapshot; the last has the version
// of the head.
type Record struct {
	Head
	Snapshot Value
	Events   []Value
}

// Claim asks that an owner gets a record.
type Claim struct {
	Key   Key
	Owner Owner
}

// Write changes a record that has the owner and the version Expected.
type Write struct {
	Key      Key
	Owner    Owner
	Expected uint64

	// Version is the version of the record afterwards, above Expected. With events it is Expected plus their number.
	Version uint64

	// Events are added to the record. If there are none, Snapshot takes the place of all that the
	// record has; the zero Snapshot leaves only the head.
	Events   []Value
	Snapshot Value
}

// Before returns the head that the write expects.
func (w Write) Before() Head { return Head{w.Owner, w.Expected} }

// After returns the head that the write leaves.
func (w Write) After() Head { return Head{w.Owner, w.Version} }
