// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package bolt keeps the state of entities in one file, with bbolt: for a cluster whose nodes live in
// one process, and for programs of one node that shall keep their entities over restarts.
//
//	states, err := bolt.Open("/var/lib/bank/states", bolt.Options{})
//	...
//	defer states.Close() // After the node has ended.
//	keeper, err := state.NewKeeper(states, state.Default())
//
// The file is open in one process at a time: [ErrInUse] says that another has it. Nodes on several hosts
// need a store that all of them reach.
//
// # Guarantees
//
//   - What was saved is on the disk: each call of Save or Load that changes something is one transaction,
//     and ends with fsync. Calls wait for each other, so that large batches cost little more than small.
//   - A record is checked by a sum when it is read: [ErrDamaged] names it. Other records stay usable.
//
// # Non-guarantees
//
// A disk that hangs holds a call beyond its context: nothing interrupts an fsync.
//
// A Store is safe for concurrent use, and has no goroutines. Close waits for the calls under way.
package bolt
