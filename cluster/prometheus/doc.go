// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package prometheus serves the metrics of a node to Prometheus:
//
//	node, err := cluster.Start(ctx, cluster.WithFile("cluster.yaml"), cluster.WithMetrics(prometheus.Endpoint()))
//
// With telemetry: {metrics: prometheus} in the file, GET /metrics of the node's HTTP
// interface then answers with them. It is a module of its own, because it brings the SDK
// of OpenTelemetry and the client of Prometheus, which no other module of the project
// has.
//
//	modules ── API ──> provider ── exporter ──> registry <── GET /metrics
//
// Each node has a provider and a registry of its own, so that several nodes in one
// process do not mix, and nothing global is set. A program with an SDK of its own
// leaves the section alone and gives the node its provider instead.
//
// # Trouble
//
// A part that cannot be set up is logged, and left out; a collection that fails in part
// shows the rest.
//
// # Concurrency
//
// No goroutine runs between two requests: metrics are read when they are requested. All
// methods are safe for concurrent use.
package prometheus
