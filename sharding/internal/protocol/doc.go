// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package protocol holds the machines of sharding. Entities of a kind are spread
// over shards by a hash of their id, shards over the nodes of a cluster by a
// coordinator, and messages find their entity wherever it lives.
//
// A node has one [Control], for all kinds, and one [Cell] for each shard of every kind
// that runs there.
//
//	       Control of node A                  Control of node B
//	┌──────────────┬───────────┐       ┌──────────────┬───────────┐
//	│ coordinators │  regions  │<─────>│ coordinators │  regions  │   service 3
//	└──────────────┴───────────┘       └──────────────┴───────────┘
//	   ToShard │        ^ FromShard       ToShard │        ^ FromShard
//	           v        │                         v        │
//	Tell ─> ┌──────────────────┐  Message    ┌──────────────────┐   entity
//	        │ cells of A       │────────────>│ cells of B       │<──────────>
//	Reply<─ │                  │<────────────│                  │
//	        └──────────────────┘  Ack, Need  └──────────────────┘   service 4
//
// # Homes
//
// The coordinator of a kind runs on the oldest member with the role. Its state is
// a versioned map from shards to nodes, of which each region holds a copy. Every
// home has an [Epoch], which only grows: it is the birth of the cluster, the term
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
// the handoff timeout, Resume takes the stop back.
//
// The target is chosen before the move begins, and the shard goes there in the step in
// which Stopped comes, if the target can still take it. Moves even out the load, a few
// at a time, in rounds that follow each other, or hand back what a leaving node hosts,
// in waves. A node that leaves has handed over when the map says that others have what
// it hosted, not before: T may have been lost on its way and is asked for again. What
// it is told to host meanwhile it hands back with the T that came with it. A
// coordinator that leaves lets the moves under way end before it stops.
//
// # Messages
//
// The cell of the node that accepts a message numbers it in a stream, keeps it
// until it is acknowledged, and transmits it to the home. The home delivers each
// stream in order and once each. When a home dies, the streams of the shard begin
// anew: the new home has a new base epoch, messages of a lower base are dropped,
// and every sender is told that the outcome of what was sent and not acknowledged
// or not answered is not known. The base epoch takes the place of a stream number:
// a home can tell old streams from new ones without having seen either.
//
// A full mailbox and a full window let senders of the same node stand in line, see
// cell_waiting.go; a full mailbox holds other nodes back, see [Flow].
//
// # Guarantees
//
// At most one node hosts a shard, as far as membership fences the dead. A message
// is processed at most once, and the messages of one origin to one shard in the
// order in which they were accepted. What is not processed has an error at its
// origin, or a counted drop that is repaired by the origin sending it again.
//
// Not guaranteed: a reply may be lost with a connection; an ask then ends with its
// deadline. Messages of an origin that dies are lost with it.
//
// # Concurrency
//
// A Control belongs to one goroutine at a time, and so does a Cell. No function of the
// package starts a goroutine, locks, reads a clock or does input or output.
package protocol
