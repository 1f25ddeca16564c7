// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package host runs plugins for a node: it launches them, checks them, supervises them
// and swaps them, and turns them into strategies like any other.
//
//	p, err := host.Open(ctx, "witness", cfg, host.WithLogger(log))
//	...
//	defer p.Close(ctx)
//	provider, err := p.Downing()          // a downing.Provider, as host.As[downing.Provider](p)
//
// A node runs the plugins of its file when its program gives it a host:
//
//	node, err := cluster.Start(ctx, cluster.WithFile("cluster.yaml"), cluster.WithPlugins(host.New()))
//
// # Lifecycle
//
// [Open] returns when the first process is checked, started, configured and healthy, or
// with what is wrong. From then on the plugin exists until [Plugin.Close], whatever
// becomes of its process. A process is replaced after a back-off if it ends, fails three
// health checks in a row, or leaves three calls in a row without an answer though each
// waited for at least health-timeout. A plugin that fails again and again is left alone
// for a while (a circuit breaker). Meanwhile calls fail at once with
// [plugins.UnavailableError], which says since when, why, and when the next attempt is;
// the caller must know what to do without an answer.
//
//	             process launched              ended, unhealthy
//	starting ────────────────────> running ──────────────────────┐
//	   ▲                              ▲                          │
//	   │                              │ Swap, from any state     ▼
//	   └───────────────── waiting (back-off), broken (breaker) <─┘
//
// # Swap
//
// [Plugin.Swap] changes the executable, its settings or anything else except the policy
// and the class. The new process is started and checked while the old one works; then
// calls go to the new one, the old one finishes its calls, and is stopped. A swap never
// leaves a time without a strategy, and a decision is the answer of one process: an
// answer that an old one gives after it was stopped waiting for is dropped and counted.
//
// # Concurrency
//
// Everything may be called from any goroutine. Observers are called from several,
// and must not block.
//
// # Guarantees
//
//   - A call ends by its context, and after the plugin's call-timeout at the latest.
//   - A file whose checksum is not the configured one is never run.
//   - What a plugin answers is checked before it is returned, as answers of any
//     strategy are.
//   - After Close nothing is left of the plugin: no process, file or goroutine. If
//     the host is killed, the plugin ends by the kernel's doing on Linux, and by its
//     own elsewhere.
//
// # Non-guarantees
//
//   - It is no sandbox. A plugin has the rights of the node's user.
//   - A process that the kernel cannot end is given up, and logged.
//   - A swap is not taken back when the new plugin fails later: it is supervised as
//     the old one was.
package host
