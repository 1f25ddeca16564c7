// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//quorate:core

// Package remind has the decisions of package reminder, without any input or output. A [Bucket] holds
// the reminders of one part of all entities: which are due, which are being delivered, what the store
// must have before anybody is told, and which page of the store is read and written when. Package
// reminder carries that out; the world of package simulation does so in virtual time.
//
//	Ask (set, cancel, list)          ┌────────┐  Open, Save ──> store ──> Opened, Saved
//	Tick, when Wake says so  ──────> │ Bucket │  Fire ────────> entity ─> Delivered
//	Close                            └────────┘  Answer ──────> whoever asked
//
// # Pages
//
// A bucket keeps its reminders in some records of the store, its pages; all reminders of one entity are
// in one page. A page is loaded as a whole and changed by events, each with the changes that waited at
// one moment; when the events have become many, a snapshot takes their place.
//
//	closed ──> opening ──> open ──> (a save fails) ──> closed
//	  ^  after a pause │ the store fails, or the page cannot be read
//	  └────────────────┘
//
// A page fails alone: the others go on. When a later owner has a page, the whole bucket has ended.
//
// # Life of a reminder
//
//	(set) ──saved──> waiting ──due──> firing ──acknowledged──> settling ──saved──> (gone), or waiting
//	                    ^   after a pause │ not acknowledged       the next time is saved, if it repeats
//	                    └─────────────────┘
//
// Memory follows the store: a change is made in memory when the store has it. A reminder that is to be
// replaced or canceled does not fire while that is saved.
//
// # Invariants
//
//   - R1: what is in memory of an open page is what the store has of it.
//   - R2: a reminder begins to fire when the wall clock shows its time or later, and not before.
//   - R3: an answer to a change comes after the store has the change.
//   - R4: of one reminder one delivery is under way, and of the bucket [Config.InFlight] at most, of
//     which half are repetitions.
//   - R5: each reminder of an open page is under way, or in one of the two queues, or waits for a save.
//
// # Memory
//
// Reminders take what pages may have, [PageBytes] encoded for each. What is under way is bounded by
// R4, and what waits for a page by [WaitingMost].
//
// Nothing here is safe for concurrent use. Nothing reads a clock.
package remind
