// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package acceptance runs whole nodes, as a program starts them from its files, in virtual time, and judges what
// happened by what programs and operators were told.
//
//	what a user sees                                what is real                     what is simulated
//	programs, clients ──ask, update, remind──> cluster.Start, drivers, retries,  ──> network, disks,
//	an operator       ──restart, reshard ...─> readiness, health, machines           stores of states
//
// The other worlds step machines on one thread: they are faster, and repeat to the byte. Here lies what they leave
// out: goroutines and drivers, readiness, the retries of clients, and several components beside
// each other.
//
// # A run
//
// [Run] starts some machines, a node on each, and programs on all of them ([program]): counters and sets in
// replicated data, accounts whose states are saved by a store that is slow and fails, with clients that are no
// members among their users, deliveries, reminders, remembered entities, a singleton that writes to a register
// outside, a chat over topics among registered places. While these work, an [operator] does what operators do and
// what happens to them: single nodes fail, restart and are cut off, all nodes end, in order or at one moment, disks
// and stores come back as they were, a second operator acts at the same time, others deploy beside. Each event ends
// when the cluster is whole again. At the end everything is healed, and each program judges.
//
// # Oracles
//
// A program knows what it has asked for and what it was told, and nothing else: an acknowledged change is there once,
// what was refused is nowhere, what has an unknown outcome is there once or not at all. No oracle is
// widened without a sentence of the public documentation, which the comment beside it names.
//
// # Limits
//
// The seed decides what is done and when. In what order goroutines run at one moment is that of the Go scheduler, so a
// run with the same seed is the same test, not the same trace. A node that does not run for a while is
// only to be had in processes of their own, and so are clocks that differ.
package acceptance
