// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import "github.com/quorate/quorate/config/field"

// The values of [Config.Metrics].
const (
	// None leaves the metrics to the program.
	None = "none"
	// Prometheus serves the metrics to Prometheus.
	Prometheus = "prometheus"
)

// Config is the section telemetry of a file. Start from [Default].
type Config struct {
	// Metrics says where the metrics of the node go. "none", the default: to the provider
	// of the program, which is nowhere if it sets none. "prometheus": GET /metrics of the
	// node's HTTP interface answers with them, for which management.address must be set;
	// the program has the module cluster/prometheus for it, and starts the node with the
	// option cluster.WithMetrics(prometheus.Endpoint()).
	Metrics string `koanf:"metrics" oneof:"none|prometheus"`

	// ProcessMetrics adds the metrics of the Go runtime and of the operating system about
	// the process, such as memory and goroutines. It has no effect without metrics.
	ProcessMetrics bool `koanf:"process-metrics"`
}

// Default returns the default configuration, with which no metrics are served.
func Default() Config { return Config{Metrics: None, ProcessMetrics: true} }

// Validate reports every fault in one error.
func (c Config) Validate() error {
	if c.Metrics != None && c.Metrics != Prometheus {
		return field.Errorf("metrics", "%q is neither none nor prometheus", c.Metrics)
	}
	return nil
}
