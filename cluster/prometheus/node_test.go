// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/prometheus"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/sharding"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// free returns an address at which nothing listens. Its port lies below those that systems take for
// connections, and no other test that asks here is given it until this one ends: the UDP port of the
// same number, which no node uses, is held meanwhile.
func free(t *testing.T) string {
	t.Helper()
	for range 1000 {
		address := fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(10_000))
		held, err := net.ListenPacket("udp", address)
		if err != nil {
			continue
		}
		t.Cleanup(func() { _ = held.Close() }) // Nothing was sent.
		if l, err := net.Listen("tcp", address); err == nil {
			require.NoError(t, l.Close())
			return address
		}
	}
	require.FailNow(t, "there is no free port from 20000 to 29999")
	return ""
}

// quiet adds to options the one by which a node logs nothing.
func quiet(opts ...cluster.Option) []cluster.Option {
	return append(opts, cluster.WithLogger(slog.New(slog.DiscardHandler)))
}

// lone writes the file of a cluster of one node, and returns its path and the node's
// address.
func lone(t *testing.T, more ...string) (path, address string) {
	t.Helper()
	patience.Watch(t) // The limits of the node are real.
	address, path = free(t), filepath.Join(t.TempDir(), "cluster.yaml")
	lines := append([]string{"cluster: {name: test}", "node: {address: " + address + "}", "membership: {seed-nodes: [" + address + "]}"}, more...)
	require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	return path, address
}

// counter is an entity that adds up the numbers that it is sent.
type counter struct{ n int64 }

// Receive adds a number, and answers with the sum.
func (c *counter) Receive(ctx *sharding.Context, add *wrapperspb.Int64Value) error {
	c.n += add.GetValue()
	return ctx.Reply(wrapperspb.Int64(c.n))
}

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

// With one line in its file a node shows its metrics to Prometheus, beside those of the
// program. A metric of the program that cannot be measured is missing, and no other.
func TestMetricsForPrometheus(t *testing.T) {
	t.Parallel()
	path, address := lone(t, `management: {address: "127.0.0.1:0"}`, "telemetry: {metrics: prometheus}")
	node, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path), cluster.WithMetrics(prometheus.Endpoint()))...)
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

// Nothing of the process is shown when the file says so.
func TestMetricsOfTheProcessCanBeLeftOut(t *testing.T) {
	path, _ := lone(t, `management: {address: "127.0.0.1:0"}`, "telemetry: {metrics: prometheus, process-metrics: false}")
	node, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path), cluster.WithMetrics(prometheus.Endpoint()))...)
	require.NoError(t, err)
	defer func() { _ = node.Close() }()
	_, body := fetch(t, node, "/metrics")
	require.NotContains(t, body, "go_goroutines")
	require.Contains(t, body, "quorate_")
}
