// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/management"
	"github.com/quorate/quorate/transport/memory"
)

// The listener for health checks: whom it answers, and that those who say nothing, or very
// little, keep nobody out.

// probed returns the only route of a health check that the tests here need.
func probed() []management.Route {
	return []management.Route{{Path: "/health/live", Probe: true, Answer: func(context.Context, management.Request) (any, error) {
		return management.HealthStatus{Status: "live"}, nil
	}}}
}

// open starts a listener for health checks that ends with the test.
func open(t *testing.T, routes []management.Route) *management.Server {
	t.Helper()
	s, err := management.ServeHealth(t.Context(), management.HealthConfig{Address: "127.0.0.1:0"}, routes, quiet())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// status asks a server under any name, and returns the status.
func status(t *testing.T, c *http.Client, address, host, method, path string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(patience.Context(t), method, "http://"+address+path, http.NoBody)
	require.NoError(t, err)
	request.Host = host
	return send(t, c, request).status
}

func TestHealthListenerAnswersWhoeverAsks(t *testing.T) {
	s := open(t, probed())
	c := client()
	for _, host := range []string{s.Address(), "10.1.2.3:8081", "node-0.nodes.default.svc"} {
		require.Equal(t, http.StatusOK, status(t, c, s.Address(), host, http.MethodGet, "/health/live"))
	}
	require.Equal(t, http.StatusMethodNotAllowed, status(t, c, s.Address(), "x", http.MethodPost, "/health/live"))
	require.Equal(t, http.StatusNotFound, status(t, c, s.Address(), "x", http.MethodGet, "/v1/members"))
}

func TestHealthListenerThatCannotListen(t *testing.T) {
	s, err := management.ServeHealth(t.Context(), management.HealthConfig{}, probed(), quiet())
	require.NoError(t, err)
	require.Empty(t, s.Address())
	require.NoError(t, s.Close())

	taken := open(t, probed()).Address()
	_, err = management.ServeHealth(t.Context(), management.HealthConfig{Address: taken}, probed(), quiet())
	require.ErrorContains(t, err, "management: address "+taken)
	_, err = management.ServeHealth(t.Context(), management.HealthConfig{Address: "8081"}, probed(), quiet())
	require.ErrorContains(t, err, `health.address: "8081" is not a "host:port"`)
}

// A node answers on a server of the program's own, under any name.
func TestHealthHandlerOfTheProgram(t *testing.T) {
	n := node(t, memory.NewNetwork(), 1)
	h := management.HealthHandler(n, nil, func() []string { return []string{"too warm"} })
	for path, want := range map[string]int{
		"/health/live": 200, "/alive": 200, "/health/ready": 503, "/ready": 503, "/health/startup": 503, "/startup": 503, "/v1/members": 404,
	} {
		recorder := httptest.NewRecorder()
		h.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://10.0.0.1"+path, http.NoBody))
		require.Equal(t, want, recorder.Code, path)
		if strings.HasSuffix(path, "ready") {
			require.Contains(t, recorder.Body.String(), "too warm")
		}
	}
}

// Many more clients than there are places for requests say nothing, and connect again as soon
// as they are sent away.
func TestSilentConnectionsToTheHealthListenerKeepNobodyOut(t *testing.T) {
	s := open(t, probed())
	silence(t, s.Address(), 500, "")
	c, watch := client(), patience.Start(t)
	for range 10 {
		require.Equal(t, http.StatusOK, status(t, c, s.Address(), "x", http.MethodGet, "/health/live"))
	}
	require.Less(t, watch.Elapsed(), 10*time.Second, "a second for each")
}
