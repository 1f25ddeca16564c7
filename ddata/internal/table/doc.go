// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package table has the [Table] of one replica for one group of keys: for each key a value with the versions of the
// updates in it, or a tombstone; the hashes by which two replicas compare their tables; and what has changed and was
// not sent to others, or stored, yet.
//
// # Use
//
//	t := table.New(table.Config{Self: origin, MaxValueBytes: 1 << 20, MaxBytes: 1 << 30})
//	change, err := t.Update("visits", visits, func(at crdt.Origin, v any) (any, error) {
//		return v.(crdt.GCounter).Add(at, 1), nil
//	})
//	outcome, err := other.Apply(change) // table.Applied
//
// # Concurrency
//
// Get, Update, Delete, Len, Bytes, Stats and the functions of the package may be called from any goroutine, also while
// the goroutine of the replica's machine calls the other methods, which are for that one only. Those wait for short
// critical sections, and neither for an update function nor for the merge of a value by another goroutine.
//
// # Guarantees
//
//   - T1: the value of an entry is the join of exactly the updates that its Versions mean.
//   - T2: tables that exchange entries and changes, in any order, lost or twice, are equal
//     when they have exchanged everything, and no update that is beyond every Floor is lost.
//   - T3: entries with equal hashes are equal, but for a probability of 2^-64.
//   - T4: a sweep drops exactly the tombstones that were confirmed for it.
//   - T5: with the same calls in the same order everything that is returned is the same,
//     in the same order.
package table
