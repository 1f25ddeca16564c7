// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package store

import "context"

// Record is one key of one group with its encoded value.
type Record struct {
	Key   string
	Value []byte
}

// Batch is a change of one group that is applied whole or not at all, in the order of the
// fields below: Wipe, Meta, Put, Drop. A key that is in Put and in Drop is dropped.
type Batch struct {
	// Group is the name of the group, any text. The first batch that names a group makes
	// it; a group never vanishes.
	Group string
	// Meta replaces what the store keeps beside the records of the group. Nil leaves
	// it unchanged, an empty slice makes it empty.
	Meta []byte
	// Put are the records to write, over those with the same keys.
	Put []Record
	// Drop are keys to forget; a key that is not there is no fault.
	Drop []string
	// Wipe forgets all records of the group first, but not its Meta.
	Wipe bool
	// Aside keeps a copy of the records that Wipe forgets, under a name that
	// nothing loads, for a person to look at. It means nothing without Wipe.
	Aside bool
}

// Store keeps records on the disk of one node. The replicator's disk driver calls its
// methods, any of which may block for as long as the disk does. They are safe for
// concurrent use.
type Store interface {
	// ID names the disk: random, never zero, drawn when the store was created or by NewID.
	ID() uint64
	// Starts is how often the store was opened, this time included. The number is on
	// disk when the store is open.
	Starts() uint64
	// Groups lists the groups in the order of their names. The slice is the caller's.
	Groups() []string
	// Load reads a group as it is at one moment: it calls meta once if there is a
	// Meta, and then record for each record in the order of the keys. A group that is
	// not there has neither. The bytes given to the functions are valid until they return
	// and must not be changed. The functions may not call the store. Load ends with the
	// first error of a function, which it returns as it is, with that of the context,
	// or with an [Error].
	Load(ctx context.Context, group string, meta func([]byte) error, record func(Record) error) error
	// Apply applies the batches in their order. They are synced when it returns nil. After
	// an error it is unknown which of the batches are there, each whole or not at all.
	// A context that has ended before the call applies nothing. The batches are the
	// caller's again when Apply has returned. After an error that wraps [ErrFull], or
	// that of the context, the store goes on working; after any other it has to be closed.
	Apply(ctx context.Context, batches []Batch) error
	// Asides lists the files that hold what was put aside, in the order in which that was
	// done. The slice is the caller's.
	Asides() []string
	// NewID draws a new ID, which is on disk when NewID returns nil. Records and Starts
	// stay.
	NewID(ctx context.Context) error
	// Close waits for calls that run and gives the disk back. It may be called again. The
	// other methods that return an error return [ErrClosed] afterwards.
	Close() error
}
