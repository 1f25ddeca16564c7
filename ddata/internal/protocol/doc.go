// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package protocol decides how the replicas of distributed data work together: which of them count, when a read or a
// write is confirmed, what is sent to whom, and when tombstones, and what values hold of removed nodes, may be
// dropped. Its [Machine] is one of package machine: it does no I/O, and belongs to one goroutine.
//
// # Parts
//
// A [Machine] has a group for each group of keys; the parts of a group are
//
//	rules        which answers count, and when a change of the replicas may go on
//	change       decides the next generation of the register of replicas (Paxos)
//	proposer     proposes changes of the register, on the node that leads
//	majorities   sees the loss of majorities, and goes on without them in memory
//	transfer     brings a replica up to what the others hold
//	passes       compare two tables, and take in what differs
//	propagation  sends and takes in deltas
//	ops          are reads, writes and deletes that wait for replicas
//	remote       is writing from a node that does not hold the key
//	sweep        drops tombstones and retires the origins of nodes that are gone
//	sender       sends messages and answers, with what is known of the register
//	disk         has a durable group written before anything that depends on it is sent
//	storeCheck   knows whether stores hold what they should
//	explainer    answers questions of people about keys
//
// They decide by what is [known] of the register, of the other replicas, and of the stores of all of them. No part
// calls the group: what one causes in another is returned, and the group carries it out.
//
// # Reads and writes
//
// The register of a group names the sets of replicas that count, and changes one step at a
// time:
//
//	stable ──> joint ──> ended ──(sealed)──> stable
//	             └──────────── back ───────────^
//
// In the joint phase every replica of the new set catches up; levels.go says which sets a read and a write need in
// each phase. Whichever two sets are used for a write and a later read, they have a replica in common that holds what
// was acknowledged.
//
// # Invariants
//
//	D1  each generation of a register has one value
//	D2  what a majority has acknowledged is in the answer of every later majority read
//	D3  what a read has returned is in the answer of every later majority read
//	D4  no deleted key and no update of a retired origin comes back
//	D5  of a durable group, nothing is acknowledged, promised or accepted before it is
//	    written
//	D6  replicas that can reach each other become equal
//	D7  a replica with an older store than another one remembers is in no majority
//	D8  of a group that writes behind, nothing acknowledged is lost while the replicas that know of
//	    no loss of their own ("sure") win in each set
//	D9  a message says that its sender has caught up with a generation only if it has
//
// The values themselves are opaque: package table holds them.
package protocol
