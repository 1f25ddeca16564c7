// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/management"
	"github.com/quorate/quorate/sharding"
)

// ready asks whether a node is ready, and if not, why.
func ready(t *testing.T, node *cluster.Node) (status int, why []string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get("http://" + node.ManagementAddress() + "/health/ready")
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	var answer management.Failure
	require.NoError(t, json.NewDecoder(response.Body).Decode(&answer))
	return response.StatusCode, answer.Reasons
}

// A node whose kind the coordinator refuses is not ready, and says which setting has which
// two values, so that a rolling update with a wrong setting stops at the first node. A node
// whose kind only waits for a coordinator is ready: the update may have to go on for that.
func TestANodeWithARefusedKindIsNotReady(t *testing.T) {
	t.Parallel()
	start := func(shards int, path string) (*cluster.Node, *sharding.Region[*wrapperspb.Int64Value]) {
		node, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path))...)
		require.NoError(t, err)
		t.Cleanup(func() { _ = node.Membership().Close(); _ = node.Close() })
		require.NoError(t, node.AwaitUp(t.Context()))
		region, err := sharding.Start(node, sharding.Kind[*wrapperspb.Int64Value]{
			Name: "counter", Shards: shards, New: func(*sharding.Context) sharding.Entity[*wrapperspb.Int64Value] { return new(counter) },
		})
		require.NoError(t, err)
		return node, region
	}
	path, seed := lone(t, "management: {address: \"127.0.0.1:0\"}")
	first, _ := start(100, path)
	second, region := start(50, file(t, "cluster: {name: test}", "node: {address: "+free(t)+"}",
		"membership: {seed-nodes: ["+seed+"]}", "management: {address: \"127.0.0.1:0\"}"))
	_, err := sharding.Ask[*wrapperspb.Int64Value](t.Context(), region, "a", wrapperspb.Int64(1))
	var refused *sharding.SettingsError
	require.ErrorAs(t, err, &refused)
	patience.Eventually(t, second.Membership().Standing().Held, "a node that is up has standing some heartbeats later")
	require.NoError(t, second.Data().AwaitReady(patience.Context(t)))
	status, why := ready(t, second)
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Equal(t, []string{`the coordinator refuses kind "counter": number-of-shards is "50" here, but "100" at the coordinator: all nodes need the same value`}, why)
	waiting, err := sharding.Start(first, sharding.Kind[*wrapperspb.Int64Value]{
		Name: "waiting", Role: "nobody", New: func(*sharding.Context) sharding.Entity[*wrapperspb.Int64Value] { return new(counter) },
	})
	require.NoError(t, err)
	require.ErrorIs(t, waiting.AwaitReady(patience.Expiring(t, 100*time.Millisecond)), context.DeadlineExceeded)
	require.NoError(t, first.Data().AwaitReady(patience.Context(t)))
	status, why = ready(t, first)
	require.Equal(t, http.StatusOK, status, why)
}

// Whoever asks at the second listener is answered by health checks and, where that is
// configured, metrics, and by nothing else. The program's own check counts there, in code, and on a
// server of its own.
func TestHealthListenerOfANode(t *testing.T) {
	t.Parallel()
	path, _ := lone(t, "management: {health: {address: \"127.0.0.1:0\"}}")
	var warm atomic.Bool
	node, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path), cluster.WithCheck(func() []string {
		if warm.Load() {
			return nil
		}
		return []string{"the cache is cold"}
	}))...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = node.Close() })
	require.Empty(t, node.ManagementAddress())
	require.NoError(t, node.AwaitUp(t.Context()))
	patience.Eventually(t, node.Membership().Standing().Held, "the node has standing")
	require.NoError(t, node.Data().AwaitReady(patience.Context(t)))

	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	status := func(path string) int {
		response, err := client.Get("http://" + node.HealthAddress() + path)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response.StatusCode
	}
	own := func() int {
		recorder := httptest.NewRecorder()
		node.Health().ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://anybody/health/ready", http.NoBody))
		return recorder.Code
	}
	require.Equal(t, http.StatusOK, status("/health/startup"))
	require.Equal(t, []string{"the cache is cold"}, node.Ready())
	require.Equal(t, []int{503, 503}, []int{status("/health/ready"), own()})
	warm.Store(true)
	require.Empty(t, node.Ready())
	require.Equal(t, []int{200, 200}, []int{status("/health/ready"), own()})
	require.Equal(t, []int{404, 404}, []int{status("/metrics"), status("/v1/members")})

	require.NoError(t, node.Close())
	require.NotEmpty(t, node.Ready())
	_, err = client.Get("http://" + node.HealthAddress() + "/health/live") // There is none.
	require.Error(t, err)
}

func TestMetricsAtTheHealthListener(t *testing.T) {
	t.Parallel()
	for lines, want := range map[string]string{
		"management: {health: {address: \"127.0.0.1:0\", metrics: true}}": "management.health.metrics: is true, and there are no metrics: set telemetry.metrics",
		"telemetry: {metrics: prometheus}":                                "set management.address, or management.health.address with management.health.metrics: true",
	} {
		path, _ := lone(t, lines)
		_, err := cluster.Load(cluster.WithFile(path), cluster.WithMetrics(new(shelf)))
		require.ErrorContains(t, err, want)
	}
	path, _ := lone(t, "management: {health: {address: \"127.0.0.1:0\", metrics: true}}", "telemetry: {metrics: prometheus}")
	node, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path), cluster.WithMetrics(new(shelf)))...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = node.Close() })
	response, err := http.Get("http://" + node.HealthAddress() + "/metrics")
	require.NoError(t, err)
	defer http.DefaultClient.CloseIdleConnections()
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusOK, response.StatusCode)
}
