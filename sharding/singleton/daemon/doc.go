// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package daemon runs a number of instances of a function, spread evenly over a cluster, each
// once: consumers of the partitions of a queue, or workers that share a job by number.
//
//	err := daemon.Start(node, daemon.Config{
//		Name: "projections", Instances: 8,
//		Run: func(ctx context.Context, number int, epoch sharding.Epoch) error {
//			return project(ctx, partitions[number], epoch)
//		},
//	})
//
// Every node that may run instances calls it, with the same configuration. It is what Akka calls a sharded daemon
// process. [Rescale] changes the number while they run. Package singleton runs one instance, on the oldest node.
//
// # Life cycle
//
//	the instance lives here      the context ends, and Run is waited for
//	(not here) ───────> running ───────> (not here)
//	     here again ^     │ an error, a panic
//	                └── resting: first not at all, then 1 s, doubling up to 30 s
//
// Instances are the entities of a kind, each in a shard of its own. So they are spread by the
// configured allocation strategy, move when nodes come and go, and appear in all explanations, metrics and
// commands under the name of the kind. There is nothing to close: they end with the node.
//
// # Guarantees
//
//   - The context of an instance has ended before another node starts it: a call of its Err or Done that begins later
//     finds it ended, as package singleton says.
//   - A node that takes an instance over has an epoch above those of all that had the instance before. A
//     storage that refuses lower epochs than it has seen cannot be written by an instance that was replaced.
//   - Instances of two revisions never run at one time, wherever their nodes are, and one revision is one number.
//   - Every instance runs while a node can run it: at once after a move, after the fence when its node
//     is gone.
//
// # Limits
//
// [Config.Max] is the same on all nodes: a node with another one is refused, and says so. The number that [Rescale] has
// set is kept by the nodes in memory, by each of them: it outlives any of them, and when all have ended at one time
// [Config.Instances] counts again. A function that goes on after its context has ended runs beside its successor, and
// nothing but the epoch tells the two apart.
//
// # Concurrency
//
// Start may be called from any goroutine. Run is called by a goroutine for each instance that lives on the
// node, and by one at a time for the same instance.
package daemon
