// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package figure has what a benchmark shows: a [Figure] selects a value of the [Outcome] of
// each run, and names its unit, its target and the floors beside which it stands.
// [Summarize] turns the outcomes of all runs into records, which are written as lines of
// JSON, for programs ([Lines]), and as a table, for people ([Table]).
//
// The value of a [Record] is the median of its runs. It has a ratio to each of its floors
// that was measured too, and is marked as unstable when the first of them moved by more
// than [MaxMoved] between its runs: the machine was busy then. A record knows whether a
// message was lost, doubled or overtaken in any of its runs.
//
// Nothing here measures anything, and nothing knows the toolkit.
package figure
