// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//quorate:core

// Package buckets has the decisions of package reminder, without any input or output. A [Bucket] holds the reminders of
// a part of all entities: it decides which are due, which are being delivered, what must be in the store before a
// question is answered, and which page of the store is read and written when. Package reminder carries that out;
// package simulation does so in virtual time.
//
//	Ask (set, cancel, list)          ┌────────┐  Open, SavePage ──> store ──> OpenResult, SaveResult
//	Tick, when Wake says so  ──────> │ Bucket │  Deliver ─────────> entity ─> Delivered
//	Close                            └────────┘  Answer ──────────> who has asked
//
// # Pages
//
// A bucket keeps its reminders in some records of the store, its pages; all reminders of one entity are
// in one page. A page is loaded as a whole and changed by events, each of which has all changes that waited; when there
// are many events, a snapshot takes their place.
//
//	closed ──> opening ──> open ──> (a save fails) ──> closed
//	  ^  after a pause │ the store fails, or the page cannot be read
//	  └────────────────┘
//
// When a page fails, the others go on. When a later owner has a page, the whole bucket has ended.
//
// # Life of a reminder
//
//	(set) ──saved──> waiting ──due──> firing ──acknowledged──> settling ──saved──> (gone), or waiting
//	                    ^   after a pause │ not acknowledged       the next time is saved, if it repeats
//	                    └─────────────────┘
//
// A change is made in memory once the store has it. A reminder that is to be replaced or canceled is not delivered
// while that is saved.
//
// # Invariants
//
//   - R1: an open page has the same reminders in memory and in the store.
//   - R2: the delivery of a reminder begins when the wall clock shows its time or later, and not before.
//   - R3: a change is answered after the store has it.
//   - R4: of one reminder at most one delivery is under way, and of the bucket at most [Config.InFlight], of which at
//     most half are repetitions.
//   - R5: each reminder of an open page is being delivered, or in one of the two queues, or waits for a save.
//
// # Memory
//
// Reminders take up to [MaxPageBytes], encoded, for each page. Deliveries are bounded by R4, and questions that wait
// for a page by [MaxWaiting].
//
// The package is not safe for concurrent use, and reads no clock.
package buckets
