// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus

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

	"github.com/quorate/quorate/cluster/telemetry"
)

// closeTimeout bounds Close, which has nothing to send.
const closeTimeout = time.Second

// endpoint makes metrics for Prometheus. It has no state.
type endpoint struct{}

var _ telemetry.Endpoint = endpoint{}

// Endpoint returns the endpoint for telemetry.metrics: prometheus.
func Endpoint() telemetry.Endpoint { return endpoint{} }

// Open implements [telemetry.Endpoint].
func (endpoint) Open(section telemetry.Config, cluster, address string, log *slog.Logger) (telemetry.Metrics, error) {
	registry := prometheus.NewRegistry()
	if section.ProcessMetrics {
		register(registry, log, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	}
	provider, err := export(registry, cluster, address)
	if err != nil {
		return nil, err
	}
	return &metrics{provider: provider, Handler: promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorLog: errorLog{log}, ErrorHandling: promhttp.ContinueOnError, EnableOpenMetrics: true,
	})}, nil
}

// export connects a provider to a registry. The identity of the node is a series of its
// own, target_info, and not a label of each series: a registry has the metrics of one
// node only.
func export(registry prometheus.Registerer, cluster, address string) (*sdk.MeterProvider, error) {
	reader, err := exporter.New(exporter.WithRegisterer(registry), exporter.WithoutScopeInfo())
	if err != nil {
		return nil, err
	}
	whose := resource.NewSchemaless(attribute.String("service.name", cluster), attribute.String("service.instance.id", address))
	return sdk.NewMeterProvider(sdk.WithReader(reader), sdk.WithResource(whose)), nil
}

// register adds collectors that the node can do without.
func register(registry prometheus.Registerer, log *slog.Logger, all ...prometheus.Collector) {
	for _, c := range all {
		if err := registry.Register(c); err != nil {
			log.Warn("some metrics of the process are missing", "error", err)
		}
	}
}

// metrics are the metrics of one node.
type metrics struct {
	http.Handler

	provider *sdk.MeterProvider
}

// MeterProvider returns the provider of the node's metrics.
func (m *metrics) MeterProvider() metric.MeterProvider { return m.provider }

// Close ends the collection. It may be called again.
func (m *metrics) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := m.provider.Shutdown(ctx); err != nil && !errors.Is(err, sdk.ErrReaderShutdown) {
		return fmt.Errorf("prometheus: %w", err)
	}
	return nil
}

// errorLog writes errors of a collection to the node's log.
type errorLog struct{ log *slog.Logger }

// Println implements [promhttp.Logger].
func (l errorLog) Println(v ...any) {
	l.log.Warn("metrics are incomplete", "error", fmt.Sprint(v...))
}
