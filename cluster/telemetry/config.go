// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import "github.com/quorate/quorate/config/field"

// The values of [Config.Metrics].
const (
	// None leaves the metrics to the program.
	None = "none"
	// Prometheus keeps the metrics for Prometheus to fetch.
	Prometheus = "prometheus"
)

// Config is the section telemetry of a file. Start from [Default].
type Config struct {
	// Metrics says where the metrics of the node go. "none", the default: where the
	// program says, which is nowhere if it says nothing. "prometheus": GET /metrics of
	// the node's HTTP interface answers with them, for which management.address must
	// be set; the program has the module cluster/prometheus for it, and starts the node
	// with the option cluster.WithMetrics(prometheus.Endpoint()).
	Metrics string `koanf:"metrics" oneof:"none|prometheus"`

	// ProcessMetrics adds what the Go runtime and the operating system know of the
	// process, such as memory and goroutines. It means nothing without metrics.
	ProcessMetrics bool `koanf:"process-metrics"`
}

// Default returns the default configuration, by which nothing is shown.
func Default() Config { return Config{Metrics: None, ProcessMetrics: true} }

// Validate reports every fault in one error.
func (c Config) Validate() error {
	if c.Metrics != None && c.Metrics != Prometheus {
		return field.Errorf("metrics", "%q is neither none nor prometheus", c.Metrics)
	}
	return nil
}
