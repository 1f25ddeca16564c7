// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package membership makes a process a member of a cluster: a set of nodes
// that agree on who belongs to it, notice who has failed, and survive a
// partition of the network without splitting in two.
//
//	cfg := membership.Default()
//	cfg.Cluster.Name = "bank"
//	cfg.Node.Address = "127.0.0.1:7946"
//	cfg.Membership.SeedNodes = []string{"127.0.0.1:7946"}
//	node, err := membership.Start(ctx, cfg)
//	...
//	defer node.Close()
//
// # Life of a node
//
//	Start ──> joining ──> up ──> leaving ──> exiting ──> gone
//	             │         │                              │
//	             │         └── downed by the others ──────┤
//	             └── refused, or never answered ──────────┤
//	                                                      v
//	                                          Done is closed, Err says why
//
// [Start] listens and begins to join; it does not wait for the cluster,
// [Node.AwaitUp] does. [Node.Leave] takes the node out in order. [Node.Close]
// ends it at once, which the others notice as a failure. A node that the
// others have declared down ends itself: its [Node.Done] is closed and
// [Node.Err] wraps [ErrDown]. A process that was removed can never come back
// as the same node; it starts anew, with a new uid.
//
// # Downing after a partition
//
// The downing strategy decides: a built-in one, made of the section downing of the
// configuration, or one given by [WithDowning]. All nodes have the same, with the
// same parameters, or a node is refused when it joins. [Node.SetDowning]
// replaces it while the cluster runs: given to one node after the other, it takes
// over when all have it, and [DowningChanged] says so.
//
// # Guarantees
//
//   - All members see the same history of each member: its status only moves
//     forward, and a removed node never reappears.
//   - Of the sides of a partition at most one survives, with the built-in
//     downing strategies, and with any that keeps at most one: also if it cannot be
//     asked, answers wrongly, or is replaced in that moment.
//   - [Standing] says whether this node may act for the cluster at this very
//     moment. It is lost by the node's own clock, before anybody else takes
//     over what the node was doing; see [Standing.Held].
//
// # Telemetry
//
// A node logs the changes of members and its decisions ([WithLogger]), and has metrics
// for OpenTelemetry ([WithMeterProvider]): members by status, suspicion of each monitored
// node, round trips of heartbeats, gossip, decisions, calls of strategies, and what the
// transport carries by lane. Metrics are read when they are collected; without a
// collection they cost nothing.
//
// # What it does not do
//
// It does not send messages for programs (package sharding does), and writes nothing to
// disk but the node's own record, in the directory that [NodeConfig] names.
//
// # Concurrency
//
// All methods are safe for concurrent use. Events are delivered to each
// subscriber in order; a subscriber that is too slow is told how many events
// it missed and gets a snapshot.
package membership
