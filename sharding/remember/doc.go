// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package remember is the port behind which the ids of entities are kept that are to run without a message,
// see [Kind.Remember]: for each shard of a kind a set of ids, which the node that hosts the shard changes.
//
// # Stores
//
//	shardlog     below module sharding/state: a log of each shard on a store of states, in memory, in a file,
//	             in PostgreSQL, in etcd. Only the home of a shard has its ids in memory.
//	remembered   below module cluster: the replicated data of the cluster, without a database. Every
//	             replica has all ids.
//
// # One owner
//
// Who hosts a shard opens its set under the epoch of its home, and locks out whoever opened it before: what an
// earlier owner asks for takes no effect any more, whatever paused it. So the set is changed by one node at a
// time, and the order of its changes is that in which that node makes them.
//
//	Open (epoch 1) ──> Change ──> Change ─ ─ ─ ─ ─ ─> Change: refused, ErrFenced
//	                        Open (epoch 2) ──> the ids ──> Change ──> ...
//
// A change is repeated until the store has answered, and after any error the set is opened anew, which locks out
// the calls that may still be on their way. So a store needs to know nothing of attempts: to remember an
// id twice is to remember it once.
//
// # Another number of shards
//
// A set belongs to a shard under a number of shards. When that number changes, sharding takes the ids of the former
// sets over into the present ones, each written there before it is taken out here; the former sets are opened by one
// node, under an epoch that locks out whoever served their shards. Which numbers there may be sets of has the index, a
// set like the others, which the node with the first shard owns.
//
// Package remembertest checks a store. The package has no state.
//
// [Kind.Remember]: https://pkg.go.dev/github.com/quorate/quorate/sharding#Kind
package remember
