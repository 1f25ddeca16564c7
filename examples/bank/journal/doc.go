// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package journal is an append-only record of one account in a directory that
// all processes share. It stands for the database of a real program, and is
// fenced in the way in which a database would be: by the epoch of the owner.
//
// The directory of an account holds one segment an owner, named after the
// owner's epoch:
//
//	acct-0042/seal-<epoch 1>   header  record record record ┊record
//	acct-0042/seal-<epoch 2>   header{prev: epoch 1, length┊}  record …
//
// # Opening
//
// A new owner first creates its segment, which must not exist, and so seals all older
// ones; only then does it read. The header of its segment says how far it read the
// segment of its predecessor. Records behind that point were written by an owner that had
// been replaced, and do not count.
//
// # Appending
//
// An owner appends a record and then looks for a segment with a higher epoch.
// If there is one, [Journal.Append] returns [ErrSealed] and the write must not
// be acknowledged: the new owner may not have read it. If there is none, the
// new owner, if ever there is one, creates its segment after this look and
// therefore reads the record. So an acknowledged record is never lost, however
// long the old owner was frozen between any two of these steps.
//
// # Limits
//
// The page cache outlives a killed process but not a power cut: records are
// not synced to the disk. A Journal belongs to one goroutine.
package journal
