// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package simulation is a world in virtual time for shards that live where a replicated map says. Each node runs the
// machines of production: membership, a replica of the map on a disk, sharding with its cells. Operators write
// locations at random nodes, as package locations does; coordinators ask a strategy that reads the replica of their own
// node. Nodes crash, leave, stand still and come back, links break, messages are lost, disks fail. Given a seed a run
// repeats to the byte.
//
//	operators ──> replica (service of the data) <── deltas, passes ──> other nodes
//	                 ^ reads its own
//	              strategy
//	                 ^ asks
//	              coordinator (service of sharding) ──> homes of shards
//
// # What must hold
//
//   - L1: a location that was read by a majority, or that a replica has in the end, was written, and no write that was
//     acknowledged has taken its place. A write takes the place of what ended before it began; where the clocks of
//     nodes differ, only of what was acknowledged.
//   - L2: when faults are over, all replicas say the same within a bounded time, each shard lives at its location if a
//     node runs there, and somewhere if not, and then nothing moves.
//   - L3: when faults are over, every write is acknowledged.
//   - all that is checked in the worlds of sharding, such as that no shard has two homes.
//
// How package locations waits for its calls is not part of the world: the order of its reads and writes, and of how
// many replicas each asks, is written down here again.
package simulation
