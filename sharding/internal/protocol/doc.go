// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package protocol has the values that the two machines of sharding share: the control machine of package control,
// which gives shards their homes, and the cell of package cell, which carries the messages of one shard. Entities of a
// kind are spread over shards by a hash of their id, see [ShardOf], and shards over the nodes of a cluster by a
// coordinator; messages are sent to the home of the shard of their entity.
//
// A node has one Control, for all kinds, and one Cell for each shard of every kind that runs
// there.
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
//	        └──────────────────┘  Ack, Nack  └──────────────────┘   service 4
//
// The machines do not import each other. What the control machine tells a cell is a [CellInput], and what a cell tells
// the control machine is a [CellEvent]; the runtime carries both, in order. Here are also the numbers and limits that
// both machines and the wire have: [Epoch], [ShardID], [Position] and [Code]; and the messages by which cells of
// different nodes answer messages to entities: [Ack], [Nack], [Flow] and [Reply].
//
// # Guarantees
//
// At most one node hosts a shard, as far as membership fences nodes that were removed. A message is processed at most
// once, and the messages of one origin to one shard in the order in which they were accepted. For a message that is not
// processed there is an error at its origin, or it is counted as dropped and the origin sends it again.
//
// Not guaranteed: a reply may be lost with a connection; an ask then ends with its deadline. Messages whose origin ends
// are lost with it.
//
// # Limits
//
// The package has values only, without state or decisions.
package protocol
