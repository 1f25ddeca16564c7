// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"fmt"

	"github.com/quorate/quorate/sharding/epoch"
)

// First the port itself, then the names of records and owners, then what is read and written.

// Store keeps the records of entities. Its calls come from many goroutines at once, end soon after
// their context, and keep none of the bytes that they are given or have returned.
//
// An error says nothing about what was done: any part of the call may have taken effect, or still
// will. The caller repeats it. Without an error there is an answer for each argument, in their order.
// A call has each key once.
type Store interface {
	// Load makes each record that of the claim's owner, unless a later owner has it, and returns the
	// records. Of one that a later owner has only the head counts. A record that is not there is made.
	Load(ctx context.Context, claims []Claim) ([]Record, error)

	// Save writes each record that has the expected head, and returns the heads of all as they are
	// then. What refuses one write does nothing to the others.
	Save(ctx context.Context, writes []Write) ([]Head, error)
}

// Key names a record: an entity of a kind. Both are valid UTF-8, of 1 to 1,024 bytes and of 1 to 128.
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

// Owner is one instance of an entity. Owners are totally ordered, and each is above all that were
// started before it: first by the epoch of the shard's home, then, of one home, by the number of the
// instance. The zero value is nobody, and below all others.
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
	// Form is the number of the form in which it is encoded, from 1. Zero: there is no value.
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

// Claim asks for a record on behalf of an owner.
type Claim struct {
	Key   Key
	Owner Owner
}

// Write changes a record that has the owner and the version Expected.
type Write struct {
	Key      Key
	Owner    Owner
	Expected uint64

	// Version is that of the record afterwards, above Expected. With events it is Expected and their
	// number.
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
