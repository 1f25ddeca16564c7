// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package crdt has replicated data types: values that any replica may change without asking another one, and that are
// equal everywhere once all replicas have merged the same changes, in whatever order and however often.
//
// A value is changed by mutators, which return the new value and remember in it what they
// have added, its delta. A replica keeps the settled value and sends the delta to others,
// which merge it into theirs; where deltas were lost, whole values are merged.
//
//	old ── s.Add(at, "x") ──▶ new ── new.Delta() ──▶ delta ──▶ other replicas: theirs.Merge(delta)
//	                           └─── new.Settled() ─▶ what this replica keeps
//
// # Types
//
//	counters    GCounter, PNCounter, PNCounterMap
//	sets        GSet, ORSet (adding wins)
//	maps        ORMap of any values, ORMultiMap, LWWMap, PNCounterMap
//	registers   LWWRegister (last or first write wins), MVRegister (keeps all)
//	others      Flag (on wins), VersionVector
//
// A type of a user's own implements [Value], and [Differ], [Retirer] and [Sizer] where it
// can; package crdttest checks it. [TypeOf] gives the handle by which a replicator treats
// values of all types alike.
//
// # Life cycle
//
// The zero value of each type is bottom, ready for use. Each process that changes values has an [Origin] of its own,
// which no later process uses again. A process also takes another origin for a value that it has dropped and begins
// again while another replica may still have the old one: under the same origin, new events would be numbered like old
// ones and taken for them. When an origin will never change anything again, and all replicas hold the same of it,
// Retire folds it into origin zero, so that values do not grow with the number of processes that there have ever been.
//
// # Concurrency
//
// Values are immutable: methods return new ones that share what has not changed. They may
// be read, merged and changed by many goroutines at once without a lock. Nothing here
// starts a goroutine, reads a clock or does I/O.
//
// # Guarantees
//
//   - Merge is commutative, associative and idempotent, and mutators only go up in the order of values. So replicas
//     that have merged the same changes hold equal values, byte for byte when encoded.
//   - Deltas may be merged in any order, twice, and with others missing between them: the causal order that the papers
//     ask for is not needed. A replica that has missed a delta reads a value that may lack it, and merges later ones
//     rightly. The join of deltas is a delta.
//   - A decoder takes any bytes. It refuses all but canonical encodings with an error that wraps [ErrMalformed], and
//     takes memory in proportion to the bytes.
//   - A change to a large value copies a path of a tree, not the value: an element is added
//     to ten thousand for some 2 KB, and its delta is what the element takes and some ten
//     bytes.
//
// # Non-guarantees
//
//   - Nothing here is a lock, a limit or a unique name: replicas that cannot reach each other both go on. A counter
//     that must stay above zero needs more than a PNCounter.
//   - The delta of a removal names what it removes by the numbers of events, and not by elements. So merging it reads
//     the whole value, once, however many removals it holds.
//   - What a removal does to a counter in a map, and to values of a user's own, is weaker
//     than what it does to sets, see [ORMap] and [PNCounterMap].
//   - Merge drops pending deltas: the delta of a merged value has only what mutators do to it afterwards.
//   - A decoder checks the form of a value, and cannot tell whether a peer lies about what an origin has counted.
package crdt
