// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
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
	silence(t, s.Address(), 500)
	c, watch := client(), patience.Start(t)
	for range 10 {
		require.Equal(t, http.StatusOK, status(t, c, s.Address(), "x", http.MethodGet, "/health/live"))
	}
	require.Less(t, watch.Elapsed(), 10*time.Second, "a second for each")
}

// dial connects to a listener.
func dial(t *testing.T, l net.Listener) net.Conn {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// ended waits until the other end has closed a connection.
func ended(t *testing.T, c net.Conn) {
	t.Helper()
	patience.Bound(t, c)
	_, err := io.ReadAll(c)
	require.NotErrorIs(t, err, net.ErrClosed, "the other end has closed it")
}

// The connection that has waited longest without a word goes when there are too many, and one
// that speaks is handed out with all that it says.
func TestLobbySendsTheOldestAway(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var logged lines
	l := management.Lobby(listener, 2, slog.New(slog.NewTextHandler(&logged, nil)))
	first, second := dial(t, l), dial(t, l)
	third := dial(t, l)
	ended(t, first)
	_, err = second.Write([]byte("GET / HTTP/1.1\r\n"))
	require.NoError(t, err)
	conn, err := l.Accept()
	require.NoError(t, err)
	line, err := bufio.NewReader(conn).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "GET / HTTP/1.1\r\n", line)
	require.NoError(t, conn.Close())
	require.Contains(t, logged.String(), "connections=1")

	require.NoError(t, l.Close())
	ended(t, third)
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	require.ErrorIs(t, l.Close(), net.ErrClosed)
}

// failing is a listener that has run out of descriptors for a while.
type failing struct {
	net.Listener

	errs chan error
}

func (f failing) Accept() (net.Conn, error) {
	select {
	case err := <-f.errs:
		return nil, err
	default:
		return f.Listener.Accept()
	}
}

// Accepting goes on after errors, which do not fill the log.
func TestLobbyOutlivesErrorsOfAccept(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f := failing{listener, make(chan error, 20)}
	for range cap(f.errs) {
		f.errs <- errors.New("too many open files")
	}
	var logged lines
	l := management.Lobby(f, 2, slog.New(slog.NewTextHandler(&logged, nil)))
	defer func() { _ = l.Close() }()
	c := dial(t, l)
	_, err = c.Write([]byte("x"))
	require.NoError(t, err)
	conn, err := l.Accept()
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	require.Equal(t, 1, strings.Count(logged.String(), "cannot accept"), &logged)
}
