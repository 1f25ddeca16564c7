// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package protocol is the vocabulary that the two machines of sharding share: the control
// machine of package control, which gives shards their homes, and the cell of package cell,
// which carries the messages of one shard. Entities of a kind are spread over shards by a
// hash of their id, see [ShardOf], shards over the nodes of a cluster by a coordinator, and
// messages find their entity wherever it lives.
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
//	        └──────────────────┘  Ack, Need  └──────────────────┘   service 4
//
// The machines do not import each other. What the control machine tells a cell is a
// [CellInput], what a cell tells the control machine a [CellEvent]; whoever runs the two
// carries one to the other, in order. Here are also the numbers and the limits that both obey
// and that the wire carries: [Epoch], [ShardID], [Position], [Code], and what the cells of
// different nodes say about messages: [Ack], [Need], [Flow] and [Reply].
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
// # Limits
//
// The package has values only: nothing in it decides, remembers or waits.
package protocol
