// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package deliverysim names runs of simulated deliveries, so that a program can run them and repeat a failure by name,
// seed and number of entities. It is what `quorate soak` runs of deliveries.
//
// A run has producers and entities with the parts of production over a network that loses, doubles and delays
// messages; entities and producers begin anew with their memory and without, and disks fail. It is checked that
// what was accepted is handled, in order, once for as long as an entity remembers. A run is a function of its scenario,
// its seed and its number of entities: it takes virtual time, no real clock and one goroutine, that of the caller.
//
// # Life cycle and concurrency
//
// The package has no state, and its functions may be called by several goroutines.
//
// # Limits
//
// The names of the scenarios and what happens in them may change in any release, and with that what a seed stands for.
package deliverysim
