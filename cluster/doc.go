// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package cluster is a whole node, wired from one file: membership, and sharding and
// replicated data on top of it. It has no logic of its own; a program that needs less, or another wiring, uses
// the modules below it.
//
//	node, err := cluster.Start(ctx, cluster.WithFile("cluster.yaml"))
//	...
//	defer node.Close()
//	accounts, err := sharding.Start(node, sharding.Kind[*bankpb.Command]{...})
//
// # The file
//
//	cluster: {name: bank}
//	node: {address: 127.0.0.1:7946, roles: [backend]}
//	membership:
//	  seed-nodes: [127.0.0.1:7946, 127.0.0.2:7946, 127.0.0.3:7946]
//
//	management: {address: "127.0.0.1:8080"}
//
// Everything else has a default, and nothing listens for HTTP by default. Files may be
// YAML or JSON. Environment variables override the file: QUORATE_NODE__ADDRESS is
// node.address. A fault names file, line, key and cure, and all faults are reported
// together.
//
// Six things are linked only by programs that want them, and are given by options: TOML
// ([WithFormat]), the metrics at /metrics for telemetry: {metrics: prometheus}
// ([WithMetrics]), what runs plugins ([WithPlugins]), the store of durable keys ([WithStore]),
// methods of discovery ([WithDiscovery]), and stores of leases ([WithLeases]). A file that asks for one that is
// missing is refused, and the fault names the import and the option.
//
// # Reloading
//
// [Node.Reload] reads the files again and takes over what has changed, all of it or
// nothing; a program may call it on a signal. With reload.watch the node does so by
// itself:
//
//	files change ─▶ at rest ─▶ parse, validate ─▶ only keys that may? ─▶ every part prepares ─▶ all commit
//	                                │                   │                     │
//	                                └────── error ──────┴─────────────────────┘ the node goes on as it was
//
// The reference of the settings marks those that may change. Parts of the program take
// part by [WithReload], and sections of its own by [WithSection].
//
// # Parts
//
// A node is a list of parts, each on top of those before it:
//
//	telemetry, plugins, discovery, membership, sharding, ddata, registry, pubsub, management, reload
//
// They start in this order, and stop in the reverse order, even if one of them cannot
// start. The same list gives them defaults, checks them against one another, shows them
// over HTTP, asks them whether the node is ready, and has them take over changed
// settings. The registry of services and topics run from the first call of [Node.Registry]
// and [Node.Topics] on.
//
// # Life cycle
//
// [Start] listens and begins to join; [Node.AwaitUp] waits until the node is up.
// [Node.Leave] hands over what the node hosts and takes it out of the cluster;
// [Node.Close] ends it, in order if that is possible within the configured time.
// [Node.Done] is closed when the node has ended, for whatever reason. After that the HTTP
// interface still answers, that the node is not live, until Leave or Close.
//
// All methods are safe for concurrent use.
package cluster
