// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package singleton runs one instance of something in a cluster: on the oldest node that is up,
// of those with a role if one is asked for. When that node leaves or is gone, the next oldest
// takes over.
//
// There are two forms. [Start] runs a function, such as a periodic job:
//
//	err := singleton.Start(node, singleton.Config{
//		Name: "cleanup",
//		Run: singleton.Every(time.Hour, func(ctx context.Context, epoch sharding.Epoch) error {
//			return store.Cleanup(ctx, epoch)
//		}),
//	})
//
// [StartEntity] runs an entity of package sharding, to which every node can send by a [Proxy].
//
// Every node that may run the instance starts it, and so does every node that sends to it; the
// calls are the same everywhere.
//
// # Life cycle
//
//	this node is the oldest       the context ends, and Run is waited for
//	(not here) ───────> running ───────> (not here)
//	     here again ^     │ an error, a panic
//	                └── resting: first not at all, then 1 s, doubling up to 30 s
//
// A node that becomes older than others by nothing but their joining keeps the instance: age is
// the order in which members became up. When the node of the instance leaves, the context of Run
// ends, and no other node starts the instance before Run has returned; when the node is gone, no
// other node starts it before the fence has passed by which the node, even if it is merely cut
// off or frozen, has stopped by its own clock.
//
// A singleton is a kind of entity with one shard. So it appears as such in all explanations,
// metrics and commands, under its name.
//
// # Guarantees
//
//   - The context of Run has ended before another node starts the instance: a call of its Err or Done that begins later
//     finds it ended, since each of them looks at the clock, also in a process that was frozen and goes on. A goroutine
//     that waits on Done hears of the end as soon as the process runs.
//   - A node that takes the instance over has an epoch above those of all before it. A storage that
//     refuses lower epochs than it has seen cannot be written by an instance that was replaced.
//   - What is sent by a [Proxy] is subject to the guarantees of package sharding: it waits while
//     nobody runs the instance, within bounds that slow senders down.
//
// # Limits
//
// Between a call of Err and what follows it the process may freeze: where that matters, use the epoch, or a lease. A
// context that package context derives from that of Run, such as by context.WithTimeout, does not look at the clock:
// derive it by package sharding/bound, or ask the one of Run.
//
// A function that goes on after its context has ended runs beside its successor. Nothing but
// the epoch tells the two apart. [Config.OnStuck] says whether a planned move waits for such a
// function. If it does, the function holds the instance of a node that is drained until that
// node ends, and the instance of a node that leaves for as long as leaving takes: at most the sum
// of membership.leave-timeout and membership.exit-timeout, after which the node is gone and the
// fence passes.
//
// The instance is not moved to a node that becomes the oldest of those with the role later, such as
// by a role that a restart has given.
//
// # Concurrency
//
// All methods and functions may be called from any goroutine.
package singleton
