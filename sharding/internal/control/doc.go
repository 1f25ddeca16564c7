// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//quorate:core

// Package control holds the machine that gives shards their homes. A node has one [Control],
// for all kinds: the regions, which know the map and host shards, and the coordinators of
// those kinds that this node coordinates, since it is the oldest member with their role.
// The messages of a shard are the business of its cell, package cell, to which a Control
// speaks by [ToShard] and which speaks to it by [FromShard].
//
// A Control is made by [New], is told the kinds by [AddKind], follows what membership
// publishes, and ends with component.Stopping; the inputs after that are ignored.
//
// # Homes
//
// The coordinator of a kind runs on the oldest member with the role. Its state is
// a versioned map from shards to nodes, of which each region holds a copy. Every
// home has an [protocol.Epoch], which only grows: it is the birth of the cluster, the term
// of the coordinator and the version of its map.
//
//	1  A coordinator starts under the singleton rule, with a term of its own.
//	2  The coordinator asks every member that runs sharding, repeatedly. A member
//	   that is down is waited for until it is removed and fenced.
//	3  A node that is asked promises to obey no lower term, and reports what it
//	   hosts. If it promised a higher term already, it refuses, and the
//	   coordinator retires.
//	4  A shard whose host reported it is known. The others are open: nothing is
//	   decided about them
//	5  until every member has answered or is fenced.
//	6  If two nodes report a shard, the higher epoch stays, the other is told to
//	   stop, and a [Violation] is published. There must be none.
//	7  The map is published whole as version 1 of the term, then as changes. A
//	   region whose copy has a gap asks for the whole.
//
// A region hosts a shard only when told so in a term not below its promise, with
// an epoch above every one that it knows for the shard. What a region's copy of
// the map says is a hint for routing and never makes it a host.
//
// # Moves
//
// A planned move loses nothing, doubles nothing and keeps the order of each
// sender. Only the old home, the new home and the coordinator take part:
//
//	coordinator ── Stop(s, e) ──> X    delivers no more, mailboxes run out
//	coordinator <─ Stopped(s, e, T) ── X
//	coordinator ── Host(s, e', T) ──> Y    and the changed map to all
//
// T tells for each stream how far it was delivered. X keeps what arrives in the
// meantime and passes it on along the new map. When Stopped does not come within
// the handoff timeout, Resume takes the stop back. X says Stopped again until it knows of another home: an order to
// stop may have come after it was taken back, and then nobody asks.
//
// The target is chosen before the move begins, and the shard goes there in the step in
// which Stopped comes, if the target can still take it. Moves even out the load, a few
// at a time, in rounds that follow each other, or hand back what a leaving node hosts,
// in waves. A node that leaves has handed over when the map says that others have what
// it hosted, not before: T may have been lost on its way and is asked for again. What
// it is told to host meanwhile it hands back with the T that came with it. A
// coordinator that leaves lets the moves under way end before it stops.
//
// # Guarantees
//
// At most one node hosts a shard, as far as membership fences the dead, and the epochs of
// its homes rise. A node obeys no coordinator whose term is below its promise.
//
// # Limits
//
// A Control keeps promises for [protocol.MaxKinds] kinds that its node does not run, as many shards in all kinds
// as [Config] says, and the last 256 moves of a kind that it coordinates. One step gives homes to some thousands of
// shards at most. A kind that no node has run for a minute is forgotten. A strategy that does not answer in time is
// passed over for once.
//
// # Concurrency
//
// A Control belongs to one goroutine at a time. No function of the package starts a
// goroutine, locks, reads a clock or does input or output.
package control
