// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package downing decides which members must be removed when members of a cluster
// cannot reach each other.
//
// A node that does not answer may be dead, or may be alive on the other side of
// a network partition and think the same of this side. If both sides went on,
// everything that must exist once would exist twice. So each side asks a
// [Provider] what to do, with nothing but its own view, and the provider must
// decide such that at most one side survives although the sides cannot talk.
//
//	monitors ─▶ view unchanged for the stability margin ─▶ leader of the side
//	        ─▶ Provider.Decide(View) ─▶ Check ─▶ the named members become Down
//
// # Sides
//
// The view lists which member complains about which, and which members have seen the
// present state of the cluster. The side ([View.Side]) is every member that is not down
// and about which no member complains, or that has seen that very state, complaints
// included: a member that has seen it is connected, perhaps only through others. The
// side is computed from the view alone, whichever node asks, so that all nodes that
// hold equal views see the same side.
//
// # Keep majority
//
// [KeepMajority] keeps the side that holds a majority of the voters: more than half,
// or exactly half with the lowest node id. A majority is needed in every set of
// voters of the view's base, because while a change of the voters is under way
// one side may count by the old set and the other by both. Two sets of nodes
// that both win in one common set of voters have a voter in common, so two
// sides with no node in common never both survive. That holds for every pair of
// views whose bases share a set of voters, however wrong or late the views are.
//
// Members that can reach each other only through others would make work
// unreliable for ever: of each such pair one goes, as soon as the rest is a majority
// without it.
//
// # Other strategies
//
// [StaticQuorum] keeps the side with a fixed number of members, [KeepOldest] the side with
// the oldest member, which may be a minority, [All] no side, and [Manual] leaves it to an
// operator. [LeaseMajority] is the decision of a strategy that asks a store outside of the
// cluster for a lease; package downing/lease/majority asks.
//
// # Lifecycle and concurrency
//
// Nothing here starts a goroutine, reads a clock or does I/O. Views and
// decisions are plain values that nobody modifies once they are made. The
// built-in providers have no state and are safe for concurrent use.
//
// # Guarantees
//
//   - A decision that passes [Check] with the class [Class.MajorityOnly] leaves
//     either nobody of its side, or a majority in every set of the base.
//   - The built-in providers decide alike for equal views, whoever asks.
//
// # Non-guarantees
//
//   - A decision is about the view. The caller judges when the view is stable
//     enough, and waits for [StableAfter].
//   - That the losing side stops working before the winning side takes over is
//     not decided here: each node must stop by its own clock.
//   - An operator who downs a majority by hand overrules the majority: the rest
//     goes on, whether the downed ones are dead or not.
//   - If no side has a majority, because more than half have died at once,
//     nobody survives.
package downing
