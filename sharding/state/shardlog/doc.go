// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package shardlog remembers entities in a store of states: each shard has some records there, its pages, to
// which the changes of its ids are appended, and whose events a snapshot replaces when they have become many.
// Only the node that hosts a shard has the ids of the shard in memory.
//
//	ids, err := shardlog.New(postgres, shardlog.Default())
//	region, err := sharding.Start(node, sharding.Kind[*pb.Command]{Name: "meter", Remember: ids, ...})
//
// # Life cycle
//
// [New] returns a [Store], which has no goroutines of its own. A process needs one, for all of its kinds; the store of
// states that is below it is closed after the node has ended.
//
// # Guarantees
//
// Those of [remember.Store]: the store of states looks at the epoch of the writer in the statement that writes,
// so an owner that was replaced cannot change anything, whatever paused it.
//
// # Limits
//
// A page has as many bytes as [state.Config.MaxBytes] says, so a shard with the default has room for some 100,000
// ids of 36 bytes: a hundred million for a thousand shards. Ids beyond that are not remembered, which the error and
// the metrics say.
//
// # Bad input
//
// A page with bytes that mean nothing, or of a newer program, is not read: its shard begins no entity without a message
// until that is mended, the entities of all other shards do, and the explanation of the shard says why. What is asked
// for meanwhile waits, and nothing is overwritten.
//
// A [Store] is safe for concurrent use.
package shardlog
