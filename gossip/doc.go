// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package gossip is the state that the members of a cluster agree upon, as
// immutable values: who is a member, who reaches whom, who votes, and who is
// known to have heard of it. It starts no goroutine, reads no clock, does no
// input or output and knows no wire format. The protocol that exchanges these
// values is built upon it.
//
// # A state and its life
//
// Each node holds a [State]. It changes it by [State.Edit], which counts one
// step of the node's entry in the vector clock, and takes in what others know
// by [State.Merge] or [State.Apply]. A state that a node has made its own it
// marks by [State.See]; when every member has seen one state, it has
// converged ([State.Convergence]), and the one node that [State.Leader] names
// may decide what needs agreement.
//
//	        Edit(self)             Delta(clock)            Apply
//	State ────────────> State' ─────────────────> Delta ─────────> State'
//	  ^                   │         DigestFor                        │
//	  └───── Restamp <── See  <──────────────────────────────────────┘
//
// What a node does with news, in this order: Apply (or Merge), See, Restamp,
// then send on.
//
// # Guarantees
//
//   - Merge is associative, commutative, idempotent and monotone over all
//     values, as long as nothing was pruned that somebody still believes to
//     be a member (see [Edit.SetPrunedBefore]).
//   - A status never goes backwards. A removed incarnation never is a member
//     again in a state that has its tombstone.
//   - For states that were made by edits, merges and deltas, restamped as
//     said above: equal clocks mean equal members, rows and registers, and
//     applying a delta is merging the state that it was made of.
//   - Every list is sorted; nothing depends on the order of a map.
//
// # What is not guaranteed
//
// A state does not know whether a rule that needs agreement was kept: that
// only the leader gives up-numbers, changes the voters or prunes, and only
// under convergence, is the caller's part. Nor does it know who sent it.
// Hashes find accidents, not forgeries.
//
// # Concurrency
//
// All values are immutable once returned and safe for use by any number of
// goroutines. An [Edit] belongs to the call that it was made for.
package gossip
