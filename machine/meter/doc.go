// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package meter makes the instruments of one part of a node: named after the
// part, told apart by node, and read from counters that exist anyway. A [Tracer] is the same for its spans.
//
// A part declares its instruments in a table: a [Row] for each one has its name, its
// unit, its meaning, and how it is read from what the part has counted. [Observe] makes
// the instruments of a table. Nothing happens until somebody collects; then what the part
// has counted is read once, and each row observes the points of its instrument:
//
//	callback ── read ──> S, the counters as they are ──┬─ row ──> its points
//	                                                   └─ row ──> its points
//
// So a new metric is a row, and the counting itself. What cannot be counted and read
// later, since each value matters, is recorded as it happens: [Meter.Seconds].
//
// A [Meter] collects what goes wrong while instruments are made, so that its
// user checks once. A Meter is for one goroutine while instruments are made; the
// instruments are safe for concurrent use.
package meter
