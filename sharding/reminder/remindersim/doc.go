// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package remindersim names runs of simulated reminders, so that a program can run them and repeat a failure by name,
// seed and number of nodes. It is what `quorate soak` runs of reminders.
//
// A run has buckets of reminders, with the decisions of production, on nodes that freeze, crash and are replaced
// without knowing it; a store that loses calls and answers, is late, or is down; entities that do not acknowledge;
// and wall clocks that jump. It is checked that a reminder that was acknowledged fires at its time or later, not
// after it was canceled, and is not forgotten. A run is a function of its scenario, its seed and its number of
// nodes: it takes virtual time, no real clock and one goroutine, that of the caller.
//
// # Life cycle and concurrency
//
// The package has no state, and its functions may be called by several goroutines.
//
// # Limits
//
// The names of the scenarios and what happens in them may change in any release, and with that what a seed stands for.
package remindersim
