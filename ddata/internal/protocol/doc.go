// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package protocol decides how the replicas of distributed data work together: which of
// them count, when a read or a write is confirmed, what is sent to whom, and when
// tombstones and the traces of removed nodes may go. It is a machine of package machine.
//
// # Parts
//
// A [Machine] has a group for each group of keys; the parts of a group are
//
//	rules   are what holds reads and writes together while the set changes
//	change  decides the next generation of the register of sets (Paxos)
//	lead    says which change is wanted, on one node
//	behind  catches up
//	passes  compare two tables, and take in what differs
//	spread  sends and takes in deltas
//	ops     are reads, writes and deletes that wait for replicas
//	remote  is reading and writing from a node that holds nothing
//	sweep   drops tombstones and retires the origins of nodes that are gone
//	sender  says things to others, with what it knows of the register
//	disk    lets nothing leave before it is written, for a durable group
//
// They decide by what is [known] of the register, of the other replicas, and of their stores and this one's: whether
// those hold what they should is a part too ([storeCheck]), since a replica whose store was put back, or had not
// everything in it when its node ended, must not count. No part calls the group: what one causes in another is
// returned, and the group carries it out.
//
// # Reads and writes
//
// The register of a group names the sets of replicas that count, and changes one step at a
// time:
//
//	stable ──> joint ──> ended ──(sealed)──> stable
//	             └──────────── back ───────────^
//
// In the joint phase every replica of the new set catches up; see levels.go for which sets
// a read and a write need in each phase. Two sets in use always have a replica in common
// that has what was acknowledged.
//
// # Invariants
//
//	D1  each generation of a register has one value
//	D2  what a majority has acknowledged is in the answer of every later majority read
//	D3  what a read has returned is in the answer of every later majority read
//	D4  nothing that was deleted comes back, and nothing of a retired origin
//	D5  of a durable group, nothing is acknowledged, promised or accepted before it is
//	    written
//	D6  replicas that can reach each other become equal
//	D7  a replica with an older store than another one remembers is in no majority
//	D8  of a group that writes behind, nothing acknowledged is lost while the sure replicas
//	    win in each set
//	D9  a message says that its sender has caught up with a generation only if it has
//
// The values themselves are opaque: package table holds them.
package protocol
