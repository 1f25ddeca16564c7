// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"log/slog"
	"net/http"

	"go.opentelemetry.io/otel/metric"
)

// Endpoint makes the metrics of nodes available for fetching. A program gives it to a
// node by an option; the endpoint for Prometheus is in the module cluster/prometheus.
type Endpoint interface {
	// Open begins to keep the metrics of the node at an address of a cluster. The start
	// of a node calls it when the section asks for metrics, before any part of the node
	// measures something. The section is valid. After an error, which is logged, the node
	// runs without metrics.
	Open(section Config, cluster, address string, log *slog.Logger) (Metrics, error)
}

// Metrics are the metrics of one node, kept for fetching. All methods are safe for
// concurrent use.
type Metrics interface {
	// ServeHTTP answers GET /metrics of the node's HTTP interface.
	http.Handler

	// MeterProvider returns the provider with which the node measures, never nil.
	MeterProvider() metric.MeterProvider

	// Close ends the collection. The node calls it when all its other parts have ended,
	// and may call it again.
	Close() error
}
