// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package statesim names runs of simulated owners of states, so that a program can run them and repeat a failure by
// name, seed and number of nodes. It is what `quorate soak` runs of states.
//
// A run has owners of records, with the decisions of production, on nodes that freeze, crash and are replaced without
// knowing it, and a store that loses calls and answers, is late, or is down. It is checked that a change that was
// acknowledged is kept, once and in order, and that no owner that was replaced writes. A run is a function of its
// scenario, its seed and its number of nodes: it takes virtual time, no real clock and one goroutine, that of the
// caller.
//
// # Life cycle and concurrency
//
// The package has no state, and its functions may be called by several goroutines.
//
// # Limits
//
// The names of the scenarios and what happens in them may change in any release, and with that what a seed stands for.
package statesim
