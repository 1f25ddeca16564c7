// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric"

	"github.com/quorate/quorate/cluster/telemetry"
)

// refusing is a registry that takes nothing.
type refusing struct{ prometheus.Registerer }

// Register refuses.
func (refusing) Register(prometheus.Collector) error { return errors.New("no room") }

// A registry that refuses the exporter is an error of the export. Metrics of the process
// that it refuses are missing, and a line of the log says so.
func TestARegistryThatRefuses(t *testing.T) {
	_, err := export(refusing{}, "c", "a:1")
	require.ErrorContains(t, err, "no room")
	var log bytes.Buffer
	registry := prometheus.NewRegistry()
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "a", Help: "b"})
	register(registry, slog.New(slog.NewTextHandler(&log, nil)), counter, counter)
	require.Contains(t, log.String(), "some metrics of the process are missing")
}

// A collection that fails in part shows the rest; after Close there is nothing more.
func TestACollectionThatFails(t *testing.T) {
	shown, err := Endpoint().Open(telemetry.Config{Metrics: telemetry.Prometheus}, "c", "a:1", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	meter := shown.MeterProvider().Meter("test")
	good, err := meter.Int64Counter("good")
	require.NoError(t, err)
	good.Add(t.Context(), 3)
	bad, err := meter.Int64ObservableGauge("bad")
	require.NoError(t, err)
	_, err = meter.RegisterCallback(func(context.Context, metric.Observer) error { return errors.New("the disk is full") }, bad)
	require.NoError(t, err)
	ask := func() *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		shown.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		return w
	}
	w := ask()
	require.Equal(t, http.StatusOK, w.Code)
	require.Contains(t, w.Body.String(), "good_total 3")
	require.NoError(t, shown.Close())
	require.NoError(t, shown.Close())
	require.NotContains(t, ask().Body.String(), "good_total")
	var log bytes.Buffer
	errorLog{slog.New(slog.NewTextHandler(&log, nil))}.Println("error gathering metrics:", errors.New("two of one name"))
	require.Contains(t, log.String(), "two of one name")
}
