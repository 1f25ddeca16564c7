// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package telemetry is the section telemetry of a node's file, and the interface of what
// serves the metrics of the node as the section says: an [Endpoint]. The modules of the
// project measure by the API of OpenTelemetry; the SDK, and the client of the system that
// fetches, come with the module of an endpoint, for programs that want them.
//
//	modules ── API ──> provider ── endpoint <── GET /metrics
//	                    of the SDK, from cluster/prometheus
//
// # Trouble
//
// Telemetry never keeps the node from running: a fault of it is logged, and the node runs
// without metrics.
package telemetry
