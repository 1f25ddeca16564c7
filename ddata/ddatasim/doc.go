// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package ddatasim names runs of simulated replicas of distributed data, so that a program
// can run them and repeat a failure by name, seed and number of nodes. It is what
// `quorate soak` runs of distributed data.
//
// Every scenario starts replicas with the machines of production, and clients that read,
// change, delete and count at once, while members join, leave, crash and are removed behind
// a cut, and messages are lost, late and doubled. All the time it is checked that what was
// acknowledged is read, that nothing deleted comes back, and that each set of replicas is
// decided once; in the end all replicas have to be equal. A run is a function of its
// scenario, its seed and its number of nodes: it takes virtual time, no real clock and one
// goroutine, that of the caller.
//
// The package has no state, and its functions may be called by several goroutines. The
// names of the scenarios and what happens in them may change in any release, and with
// that what a seed stands for.
package ddatasim
