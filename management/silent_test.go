// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/management"
)

// silence keeps n connections that say nothing open, each opened again when it is
// closed, until the test ends.
func silence(t *testing.T, address string, n int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var clients, first sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		clients.Wait()
	})
	first.Add(n)
	for range n {
		clients.Go(func() {
			met := sync.OnceFunc(first.Done)
			defer met()
			for ctx.Err() == nil {
				c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
				met()
				if err != nil {
					continue
				}
				stop := context.AfterFunc(ctx, func() { _ = c.Close() })
				_, _ = io.Copy(io.Discard, c) // Until the server or the end of the test closes the connection.
				stop()
				_ = c.Close()
			}
		})
	}
	first.Wait()
}

// Health checks are answered within a second while more clients than there are
// places hold connections on which they say nothing.
func TestSilentConnectionsDoNotBlindTheHealthChecks(t *testing.T) {
	probe := echo()
	probe.Path, probe.Probe = "/health/{what}", true
	s := serve(t, listening(), []management.Route{probe})
	silence(t, s.Address(), 160)
	c, watch := client(), patience.Start(t)
	for range 10 {
		request, err := http.NewRequestWithContext(patience.Context(t), http.MethodGet, "http://"+s.Address()+"/health/live", http.NoBody)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, send(t, c, request).status)
	}
	require.Less(t, watch.Elapsed(), 10*time.Second, "a second for each")
}

// needy is a connection and a log. Closing the one and writing to the other call use, which
// begins a request.
type needy struct {
	net.Conn
	slog.Handler

	use func()
}

func (n needy) Close() error {
	n.use()
	return n.Conn.Close()
}

func (needy) Enabled(context.Context, slog.Level) bool { return true }

func (n needy) Handle(context.Context, slog.Record) error {
	n.use()
	return nil
}

// A connection that gives way is closed and logged without the lock of the places, since
// both may be slow: requests can begin meanwhile.
func TestRequestsGoOnWhileAConnectionGivesWay(t *testing.T) {
	var request net.Conn
	uses := 0
	use := func() {
		management.Begin(request)()
		uses++
	}
	p := newPipes()
	l := management.Bound(p, 1, slog.New(needy{Handler: slog.DiscardHandler, use: use}))
	defer func() { _ = l.Close() }()
	gaveWay := make(chan error, 1)
	// Ends with the second connection.
	go func() {
		for range 2 {
			near, far := net.Pipe()
			go func() { p.offered <- named{needy{Conn: far, use: use}, "10.0.0.1"} }()
			conn, err := l.Accept()
			if err != nil {
				gaveWay <- err
				return
			}
			request = conn
			defer func() { _ = near.Close() }()
		}
		gaveWay <- nil
	}()
	require.NoError(t, patience.Receive(t, gaveWay, "requests that begin meanwhile"))
	require.Equal(t, 2, uses, "the connection was closed, and the log says so")
}
