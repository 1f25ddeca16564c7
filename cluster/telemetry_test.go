// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/telemetry"
	"github.com/quorate/quorate/config"
)

// fetch asks the HTTP interface of a node.
func fetch(t *testing.T, node *cluster.Node, path string) (status int, body string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get("http://" + node.ManagementAddress() + path)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(text)
}

// shelf is an endpoint that answers with what it was opened with, or that cannot be opened.
type shelf struct {
	fails  error
	opened string
	closed int

	provider struct{ noop.MeterProvider }
}

// Open notes what it is opened with.
func (s *shelf) Open(section telemetry.Config, name, address string, _ *slog.Logger) (telemetry.Metrics, error) {
	s.opened = section.Metrics + " of " + address + " in " + name
	return s, s.fails
}

// ServeHTTP answers with what Open has noted.
func (s *shelf) ServeHTTP(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, s.opened) }

// MeterProvider returns a provider that measures nothing, and can be told from others.
func (s *shelf) MeterProvider() metric.MeterProvider { return &s.provider }

// Close counts its calls.
func (s *shelf) Close() error {
	s.closed++
	return nil
}

// The endpoint that the program gives is opened when the file asks for metrics, is what
// the node measures with, answers at /metrics, and is closed with the node.
func TestAnEndpointShowsTheMetricsThatTheFileAsksFor(t *testing.T) {
	t.Parallel()
	path, address := lone(t, `management: {address: "127.0.0.1:0"}`, "telemetry: {metrics: prometheus}")
	endpoint := new(shelf)
	node, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path), cluster.WithMetrics(endpoint))...)
	require.NoError(t, err)
	defer func() { _ = node.Close() }()
	require.Same(t, &endpoint.provider, node.MeterProvider())
	status, body := fetch(t, node, "/metrics")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "prometheus of "+address+" in test", body)
	status, body = fetch(t, node, "/metrics?query=1")
	require.Equal(t, http.StatusBadRequest, status, body)
	require.NoError(t, node.Close())
	require.Positive(t, endpoint.closed)
}

// Metrics that cannot be set up are logged, and the node runs without them.
func TestANodeRunsWithoutMetricsThatCannotBeSetUp(t *testing.T) {
	t.Parallel()
	path, _ := lone(t, `management: {address: "127.0.0.1:0"}`, "telemetry: {metrics: prometheus}")
	var log bytes.Buffer
	node, err := cluster.Start(t.Context(), cluster.WithFile(path), cluster.WithMetrics(&shelf{fails: errors.New("the shelf is full")}),
		cluster.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	require.NoError(t, err)
	defer func() { _ = node.Close() }()
	status, _ := fetch(t, node, "/metrics")
	require.Equal(t, http.StatusNotFound, status)
	require.NoError(t, node.Close())
	require.Contains(t, log.String(), "the shelf is full")
}

// By default no metrics are shown, also when the program has an endpoint for them.
func TestMetricsAreOffByDefault(t *testing.T) {
	t.Parallel()
	path, _ := lone(t, `management: {address: "127.0.0.1:0"}`)
	endpoint := new(shelf)
	node, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path), cluster.WithMetrics(endpoint))...)
	require.NoError(t, err)
	defer func() { _ = node.Close() }()
	status, _ := fetch(t, node, "/metrics")
	require.Equal(t, http.StatusNotFound, status)
	require.Empty(t, endpoint.opened)
}

// A file that asks for what the program did not link is refused at the start and by the
// check, with the place, the import and the option; so is a change of the program.
func TestMetricsThatTheProgramDidNotLinkAreRefused(t *testing.T) {
	const cure = "telemetry.metrics: prometheus is not part of this program: import github.com/quorate/quorate/cluster/prometheus, " +
		"and start the node with the option cluster.WithMetrics(prometheus.Endpoint())"
	path, _ := lone(t, `management: {address: "127.0.0.1:0"}`, "telemetry: {metrics: prometheus}")
	_, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path))...)
	require.ErrorIs(t, err, config.ErrNotLinked)
	require.EqualError(t, err, path+":5: "+cure)
	require.EqualError(t, cluster.Check(cluster.Extensions{}, path), path+":5: "+cure)
	require.NoError(t, cluster.Check(cluster.Extensions{Options: []cluster.Option{cluster.WithMetrics(new(shelf))}}, path))
	_, err = cluster.Load(cluster.WithFile(path), cluster.WithMetrics(new(shelf)))
	require.NoError(t, err)

	path, _ = lone(t, `management: {address: "127.0.0.1:0"}`)
	_, err = cluster.Start(t.Context(), quiet(cluster.WithFile(path), cluster.WithChange(func(c *cluster.Config) { c.Telemetry.Metrics = "prometheus" }))...)
	require.ErrorIs(t, err, config.ErrInvalid)
	require.EqualError(t, err, cure)
}

// A fault of the section is an error with its place.
func TestFaultsOfTheTelemetrySection(t *testing.T) {
	for want, lines := range map[string][]string{
		`telemetry.metrics: "promteheus" is neither none nor prometheus`: {"telemetry: {metrics: promteheus}"},
		"set management.address": {"telemetry: {metrics: prometheus}"},
	} {
		path, _ := lone(t, lines...)
		_, err := cluster.Load(cluster.WithFile(path), cluster.WithMetrics(new(shelf)))
		require.ErrorIs(t, err, config.ErrInvalid)
		require.ErrorContains(t, err, "cluster.yaml:4: telemetry.metrics: ")
		require.ErrorContains(t, err, want)
	}
	path, _ := lone(t, `management: {address: "127.0.0.1:0"}`)
	_, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path), cluster.WithMetrics(new(shelf)), cluster.WithMeterProvider(noop.NewMeterProvider()), cluster.WithChange(func(c *cluster.Config) {
		c.Telemetry.Metrics = "prometheus"
	}))...)
	require.ErrorContains(t, err, "telemetry.metrics: set both by the option WithMeterProvider and by the configuration")
	_, err = cluster.Start(t.Context(), quiet(cluster.WithFile(path), cluster.WithChange(func(c *cluster.Config) { c.Telemetry.Metrics = "x" }))...)
	require.ErrorContains(t, err, "telemetry.metrics: ")
}
