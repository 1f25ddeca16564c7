// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package store is the port behind which a replica keeps durable keys: what the disk of a
// node must promise, and nothing about how.
//
// # Use
//
// A program opens a store, loads each group once, and from then on only writes. The
// values are opaque here: the replicator encodes them.
//
//	for _, group := range s.Groups() {
//		err := s.Load(ctx, group, register, record) // streaming, ordered by key
//	}
//	err := s.Apply(ctx, []store.Batch{{Group: "all", Put: []store.Record{{Key: "k", Value: v}}}})
//	// Nil: synced. Many writers share one Apply, which costs one sync.
//
// # Names of a disk
//
// [Store.ID] names the disk: it is drawn when the store is created, so that a replica
// that has lost its disk is another replica. [Store.Starts] counts how often the store
// was opened: with the first start there is nothing that the disk could have forgotten. A
// replica numbers its batches in the Meta of the group, and its peers remember the numbers
// that it has shown. So they notice a disk that was put back to an older state; what is on it
// is put aside then ([Store.Asides]), and [Store.NewID] makes it another replica.
//
// # Guarantees
//
// They are checked by storetest for every implementation.
//
//   - D1: what Apply has acknowledged is there at the next start, or opening or loading
//     fails with an [Error] that names the file and what to do. Never is there silently less.
//   - D2: a batch is there whole or not at all, whatever ends the process.
//   - D3: records of a group are loaded in the order of their keys, each once.
//   - D4: a store is opened by one process at a time, and for one cluster only.
//
// Not promised: that the store itself notices an older copy of a whole disk. The replicas do.
//
// A Store is safe for concurrent use. [Memory] is a disk in memory for tests, with faults.
package store
