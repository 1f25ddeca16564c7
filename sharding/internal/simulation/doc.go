// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package simulation puts sharding into a simulated world with members. Each node has the membership machine, the
// sharding control machine, and the cells and the runtime of production, with virtual ports: lanes that stall, break
// and fill up, workers on the queue of production, and stub entities, which take virtual time to start, to process a
// message and to stop, and sometimes fail.
//
//	clients ──> Cells (service 4) <── messages, acknowledgements ──> other nodes
//	               ^ │ FromShard
//	       ToShard │ v
//	            Control (service 3) <── queries, maps, commands ──> other nodes
//	               ^
//	               │ Changed, Standing, Fenced, Stopping
//	            membership (service 1)
//
// The [Ledger] is told of every message and every instance in the world, and is independent of the machines. It finds
//
//   - an entity that has two live instances on nodes with standing,
//   - a shard whose epochs do not rise from home to home, or that processes a
//     message under a lower epoch after one under a higher,
//   - two coordinators at a time,
//   - a home that is given to a shard while another node hosts it, or given twice
//     in one version of the map, or to a node that is no region,
//   - a shard that is being stopped at two nodes, or for longer than is permitted,
//   - a move that the same coordinator undoes at once, and more moves at a time than
//     are permitted,
//   - a shard that has had no home for longer than it takes to pass over a strategy,
//   - two calls of a coordinator in flight, and anything done because of a late answer,
//   - a message that is passed on by a map that is not newer than the one by which
//     it came,
//   - a message that is processed twice, or out of its sender's order,
//   - a message that is processed although its sender was told that it was not, or
//     after its deadline, by the clock of the node that asked, as far as drift of clocks allows,
//   - a message whose outcome is said to be unknown although it never left its node, or
//     although no lane has had it when its asker gave up,
//   - an instance that is stopped, and told that no other one has its entity, while a
//     successor runs,
//   - an instance that is restored from a memory which is not that of the latest instance before it, as
//     that had it in the end, that another one has had, or after its first message; in a world where
//     nothing is wrong, one that is not restored after a planned move; and a memory that stays on a node which
//     does not host its entity,
//   - any effect of the messages of a hostile peer, see hostile.go: one with a valid
//     certificate that speaks the protocol and lies,
//   - a write of an entity that a [Store] with epochs accepts out of order, and an owner
//     that it refuses for good,
//   - and, once the world is quiet, a message without an outcome, a shard without
//     a home, copies of the map that differ, and a load that is not even.
//
// A run is a pure function of its seed. The tests try a few seeds; the environment has them try more, or one that has
// failed:
//
//	QUORATE_SEEDS=300 go test -v -run 'TestRandomFaults|TestMoves' ./internal/simulation
//	QUORATE_SEED=17 go test -v -run TestMoves ./internal/simulation
//
// One of the tests puts defects into copies of the machines, and demands that the
// seeds find each of them.
package simulation
