// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//quorate:core

// Package eventlog has what is common to those who keep many small things in a few records of a store of states: a
// record is a page, which is read as a whole and changed by events, and whose events a snapshot replaces when
// they have become many. Package reminder keeps reminders so, and package shardlog the ids of entities; they are of
// two modules, for which the package is public.
//
//	Load ──> record ──Fold──> what the page has ──> a change: an event, and Tail.Add
//	                                        └─ Tail.Due ──> a snapshot, and a Tail that is empty
//
// # Guarantees
//
//   - What is read for a page is at most its snapshot and as many bytes of events, or 32 KiB of them if that is more,
//     and one event, if a snapshot is written whenever [Tail.Due] says so.
//   - A record of another form, or one that cannot be decoded, is an error that says which of the two it is.
//
// # Limits
//
// The packages of Quorate alone are promised anything: the names may change in any release.
//
// # Concurrency
//
// Nothing here is safe for concurrent use. The package has no state.
package eventlog
