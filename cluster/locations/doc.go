// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package locations keeps where the shards of a cluster should live, in a replicated map, for the
// allocation strategy "external": a program on any node says on which node shards of a kind should
// live, and the coordinator moves them there.
//
//	sharding: {allocation: {strategy: external}}
//	ddata: {durable: ["sharding/locations/*"]}
//
//	where := node.Locations()
//	err := where.Set(ctx, "order", map[allocation.Shard]string{7: "10.0.0.3:7946"})
//
// Operators have the same by the quorate command, and a controller in another process by HTTP.
//
// # Life cycle
//
// A [Map] belongs to a node, holds nothing and starts nothing: each call reads or writes the
// replicated data of the node, and ends with it.
//
// # Guarantees
//
// What [Map.Set] and [Map.Clear] have returned without an error a majority of the replicas holds: each later [Map.Get]
// on any node returns it, until another call changes it. Of two calls about one shard that have not seen each other the
// later one wins, by the clocks of their nodes. What was not confirmed may come through later, but by those clocks wins
// over no later call. A shard is not at its location at once: the coordinator looks when it next asks the strategy,
// within sharding.rebalance.idle-check, and moves a bounded number of shards at one time.
//
// Locations outlive a restart of the whole cluster if their keys, which begin with [Prefix], are
// durable (see the lines above); otherwise they are gone with the last node. The start of a node and
// quorate config check warn of that.
//
// A location names an address. While no node with that address can host the kind, the shard lives
// where it would without a location, and moves when such a node comes: a node that has restarted
// gets its shards back. Nothing forgets the locations of a node that is gone for good, since nobody but the
// program knows that it is: set others, or clear them.
//
// # Limits
//
// A kind has at most 65,536 locations, one for each shard, in keys of up to [PartShards] of them each, so that a change
// sends what it changes and no value is above 400 KiB. 50,000 locations take some 5 MB on each node that holds data;
// one that was withdrawn keeps its place. Several shards that are set by one call are not seen at one moment.
//
// # Concurrency
//
// A Map and its strategy are safe for concurrent use.
package locations
