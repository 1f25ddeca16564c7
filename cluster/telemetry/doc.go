// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package telemetry is what a node does with its own metrics when its file says so:
// it keeps them for Prometheus to fetch. It is the one place of the project that
// has the SDK of OpenTelemetry; the modules know its API only.
//
//	modules ── API ──> provider ── exporter ──> registry <── GET /metrics
//
// Each node has a provider and a registry of its own, so that several nodes in one
// process do not mix, and nothing global is set. A program with an SDK of its own
// leaves the section alone and gives the node its provider instead.
//
// # Trouble
//
// Telemetry never holds the node up: what cannot be set up is logged, and the node
// runs without; a collection that fails in part shows the rest.
//
// # Concurrency
//
// Nothing runs between two requests: metrics are read when they are asked for. All
// methods are safe for concurrent use.
package telemetry
