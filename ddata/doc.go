// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package ddata has data that every node of a cluster reads and changes, without a
// database: flags, presence, counters, registries. Each node holds a copy in memory, or on
// disk. Values are replicated data types (package crdt), so that two nodes may change one at
// the same time and nothing is lost; and reads and writes that ask a majority see each
// other, whatever minority of the nodes fails.
//
//	r, err := ddata.New(node, ddata.Default())
//
//	online := ddata.NewKey[crdt.ORSet[string]]("online")
//	_, err = ddata.Update(ctx, r, online, ddata.Majority(),
//		func(at crdt.Origin, who crdt.ORSet[string]) (crdt.ORSet[string], error) {
//			return who.Add(at, "ada"), nil
//		})
//	who, err := ddata.Get(ctx, r, online, ddata.Majority())
//
//	changes := ddata.Subscribe(r, online)
//	for {
//		event, err := changes.Next(ctx)
//		...
//	}
//
// # Life cycle
//
// [New] puts a [Replicator] on a node, loads what the disk of the node holds, and returns. It
// is called once, before the node is up: until then the calls wait, for as long as their
// contexts allow. [Replicator.AwaitReady] waits until this node counts as a replica, having
// taken over what the others hold. The replicator ends with the node;
// [Replicator.AwaitEnd] waits for that.
//
//	New ──> (no replica is known) ──> (takes over) ──> ready ──────> ended
//	             calls wait          local calls work,   all work      ErrClosed
//	                                 see what is there
//
// The settings that all nodes must share are compared when a node joins if the program
// passes [Config.Settings] to membership.WithSettings, which it should.
//
// # What the levels guarantee
//
//	level      a write is confirmed when       a read returns
//	Local      it is in the memory of this     what this node holds: it may be old, by the
//	           node; a durable key: on disk    spread interval mostly
//	To, From   n replicas have it              what n replicas hold together
//	Majority   a majority of all has it        everything that a majority write has confirmed
//	                                           and that a majority read has returned before
//	All        all replicas have it            what all replicas hold together
//
// A confirmed write of the level To(n) is lost if all n replicas are lost; one of Majority
// survives every minority, also while nodes join, leave, are removed and come back. A
// majority read that finds replicas to differ brings them up to date before it returns.
// Every write, confirmed or not, goes on to all replicas; the levels only say for how many
// the caller waits. Which replicas count is decided by them alone, one change at a time: a
// node that joins counts when it has taken over everything.
//
// # What an error says
//
// *[NotStoredError], *[TypeError], *[FunctionError] and [ErrDeleted] say that nothing has
// changed; *[UnconfirmedError], *[NoQuorumError] and *[RefusedError] that the write is stored
// somewhere, or perhaps stored, and goes on: an update that counts must not be repeated after
// those. The table at [ErrNotFound] has them all.
//
// # Where keys live
//
// By default every node holds every key in memory. [Config] says otherwise for keys by
// their names: only nodes of a role, only so many nodes, on disk, or until they were not
// changed for long. A node that does not hold a key reads and changes it through those
// that do, one round trip away; [Subscribe] needs a node that holds it.
//
// Durable keys need a store, see [WithStore]. What was confirmed is on the disks of as many
// replicas as the level asks for. A disk that does not write holds up the durable keys of
// its node, and no others. A node that starts with an older copy of its disk, as the others
// remember it, does not count with it: the copy is put aside, and the node begins anew.
//
// # Deleting and expiring
//
// A deleted key refuses updates with [ErrDeleted] until all replicas know of the deletion
// and have agreed to forget it, some sweep intervals if all nodes can be reached; then it
// begins anew. While a replica cannot be reached, tombstones stay. A key that has expired
// begins anew with the next update.
//
// # Limits
//
//   - A value is at most ddata.max-value-bytes, 16 MiB by default, and is in memory as a
//     whole on each replica. Values larger than a frame travel in parts.
//   - The memory of a group of keys is at most ddata.max-bytes; updates beyond it fail with
//     [ErrFull]. What comes from other nodes is taken up to a quarter more.
//   - At most 65,536 operations of a node wait for replicas at a time; further ones fail
//     with [ErrOverloaded].
//   - A subscriber that does not read costs a key name for each key that has changed, at
//     most 65,536, and is then told [Missed].
//   - There are no transactions: each key is for itself, and two keys that are changed
//     together are not seen together.
//
// # What it is not for
//
// Amounts that must never go below zero, unique names, locks, and anything else for which
// one node has to decide before another may: give that to an entity of package sharding.
// A log of events, or data that grows without end, belongs into a database.
//
// # Membership is never delayed
//
// The replicator has a goroutine of its own for its decisions, and merges and decodes
// elsewhere than on the goroutine that answers heartbeats. What the node says of its
// members is kept as the latest only, so that the node never waits.
//
// # Concurrency
//
// Everything is safe for concurrent use, but each subscription is for one goroutine at a
// time. Update functions run on the goroutine of the caller, those for keys of one of
// 4,096 buckets one after the other; one that does not return holds up the updates of its
// bucket. Values are immutable and may be kept.
package ddata
