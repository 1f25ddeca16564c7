// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/sharding"
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

// counters starts the kind "counter" on a node.
func counters(t *testing.T, node *cluster.Node) *sharding.Region[*wrapperspb.Int64Value] {
	t.Helper()
	region, err := sharding.Start(node, sharding.Kind[*wrapperspb.Int64Value]{
		Name: "counter", New: func(*sharding.Context) sharding.Entity[*wrapperspb.Int64Value] { return new(counter) },
	})
	require.NoError(t, err)
	return region
}

// With one line in its file a node shows its metrics to Prometheus, beside those of
// the program; a measurement of the program that fails costs itself.
func TestMetricsForPrometheus(t *testing.T) {
	path, address := lone(t, `management: {address: "127.0.0.1:0"}`, "telemetry: {metrics: prometheus}")
	node, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path))...)
	require.NoError(t, err)
	defer func() { _ = node.Close() }()
	require.NoError(t, node.AwaitUp(t.Context()))
	_, err = sharding.Ask[*wrapperspb.Int64Value](t.Context(), counters(t, node), "a", wrapperspb.Int64(1))
	require.NoError(t, err)
	meter := node.MeterProvider().Meter("bank")
	deposits, err := meter.Int64Counter("bank.deposits", metric.WithUnit("{deposit}"))
	require.NoError(t, err)
	deposits.Add(t.Context(), 7)
	bad, err := meter.Int64ObservableGauge("bank.bad")
	require.NoError(t, err)
	_, err = meter.RegisterCallback(func(context.Context, metric.Observer) error { return errors.New("the disk is full") }, bad)
	require.NoError(t, err)
	status, body := fetch(t, node, "/metrics")
	require.Equal(t, http.StatusOK, status)
	for _, want := range []string{
		"\nquorate_membership_members{quorate_member_status=\"up\"} 1\n",
		"\nquorate_membership_standing 1\n",
		"\nquorate_sharding_ask_duration_seconds_count{quorate_kind=\"counter\"} 1\n",
		"\nquorate_sharding_shards_hosted{quorate_kind=\"counter\"} 1000\n",
		"\nquorate_node_decisions_total{quorate_component=\"membership\",quorate_decision_topic=\"join\"} ",
		"\nbank_deposits_total 7\n",
		"\ngo_goroutines ",
		"service_instance_id=\"" + address + "\"",
		"service_name=\"test\"",
	} {
		require.Contains(t, body, want)
	}
	status, body = fetch(t, node, "/metrics?query=1")
	require.Equal(t, http.StatusBadRequest, status, body)
	require.NoError(t, node.Close())
	require.NoError(t, node.Close())
}

// By default nothing is shown, and nothing of the process is without being asked for.
func TestMetricsAreOffByDefault(t *testing.T) {
	path, _ := lone(t, `management: {address: "127.0.0.1:0"}`)
	node, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path))...)
	require.NoError(t, err)
	defer func() { _ = node.Close() }()
	status, _ := fetch(t, node, "/metrics")
	require.Equal(t, http.StatusNotFound, status)

	path, _ = lone(t, `management: {address: "127.0.0.1:0"}`, "telemetry: {metrics: prometheus, process-metrics: false}")
	other, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path))...)
	require.NoError(t, err)
	defer func() { _ = other.Close() }()
	_, body := fetch(t, other, "/metrics")
	require.NotContains(t, body, "go_goroutines")
	require.Contains(t, body, "quorate_")
}

// What the section says wrongly is an error with its place.
func TestFaultsOfTheTelemetrySection(t *testing.T) {
	for want, lines := range map[string][]string{
		`telemetry.metrics: "promteheus" is neither none nor prometheus`: {"telemetry: {metrics: promteheus}"},
		"set management.address": {"telemetry: {metrics: prometheus}"},
	} {
		path, _ := lone(t, lines...)
		_, err := cluster.Load(path)
		require.ErrorIs(t, err, config.ErrInvalid)
		require.ErrorContains(t, err, "cluster.yaml:4: telemetry.metrics: ")
		require.ErrorContains(t, err, want)
	}
	path, _ := lone(t, `management: {address: "127.0.0.1:0"}`)
	_, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path), cluster.WithMeterProvider(noop.NewMeterProvider()), cluster.WithChange(func(c *cluster.Config) {
		c.Telemetry.Metrics = "prometheus"
	}))...)
	require.ErrorContains(t, err, "telemetry.metrics: set both by the option WithMeterProvider and by the configuration")
	_, err = cluster.Start(t.Context(), quiet(cluster.WithFile(path), cluster.WithChange(func(c *cluster.Config) { c.Telemetry.Metrics = "x" }))...)
	require.ErrorContains(t, err, "telemetry.metrics: ")
}
