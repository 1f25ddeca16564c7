// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
)

// closeTimeout bounds Close, which has nothing to send.
const closeTimeout = time.Second

// Telemetry is the metrics of one node.
type Telemetry struct {
	provider *sdk.MeterProvider // Nil without metrics.
	handler  http.Handler
}

// New sets up what the configuration says, which must be valid, for the node at an
// address of a cluster. What cannot be set up is logged, and left out.
func New(cfg Config, cluster, address string, log *slog.Logger) *Telemetry {
	if cfg.Metrics != Prometheus {
		return &Telemetry{}
	}
	registry := prometheus.NewRegistry()
	if cfg.ProcessMetrics {
		register(registry, log, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	}
	t, err := export(registry, cluster, address)
	if err != nil {
		log.Warn("the node runs without metrics", "error", err)
		return &Telemetry{}
	}
	t.handler = promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorLog: errorLog{log}, ErrorHandling: promhttp.ContinueOnError, EnableOpenMetrics: true,
	})
	return t
}

// export connects a provider to a registry. Whose metrics they are is a series of
// its own, target_info, and not a label of each: a registry has those of one node.
func export(registry prometheus.Registerer, cluster, address string) (*Telemetry, error) {
	reader, err := exporter.New(exporter.WithRegisterer(registry), exporter.WithoutScopeInfo())
	if err != nil {
		return nil, err
	}
	whose := resource.NewSchemaless(attribute.String("service.name", cluster), attribute.String("service.instance.id", address))
	return &Telemetry{provider: sdk.NewMeterProvider(sdk.WithReader(reader), sdk.WithResource(whose))}, nil
}

// register adds collectors that the node can do without.
func register(registry prometheus.Registerer, log *slog.Logger, all ...prometheus.Collector) {
	for _, c := range all {
		if err := registry.Register(c); err != nil {
			log.Warn("some metrics of the process are missing", "error", err)
		}
	}
}

// MeterProvider returns where the node's metrics go, nil when the configuration
// leaves that to the program.
func (t *Telemetry) MeterProvider() metric.MeterProvider {
	if t.provider == nil {
		return nil // Not a nil pointer in an interface.
	}
	return t.provider
}

// Handler returns what answers GET /metrics, nil when there is nothing to show.
func (t *Telemetry) Handler() http.Handler { return t.handler }

// Close ends the collection. It may be called again.
func (t *Telemetry) Close() error {
	if t.provider == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil && !errors.Is(err, sdk.ErrReaderShutdown) {
		return fmt.Errorf("telemetry: %w", err)
	}
	return nil
}

// errorLog hands what goes wrong at a collection to the node's log.
type errorLog struct{ log *slog.Logger }

// Println implements [promhttp.Logger].
func (l errorLog) Println(v ...any) {
	l.log.Warn("metrics are incomplete", "error", fmt.Sprint(v...))
}
