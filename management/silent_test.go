// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/management"
)

// crowd dials from an address of its own: of the address with most connections some give way.
var crowd = net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 3)}}

// silence keeps n connections of the crowd that say little open, or nothing, each opened again when it is
// closed, until the test ends.
func silence(t *testing.T, address string, n int, little string) {
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
				c, err := crowd.DialContext(ctx, "tcp", address)
				met()
				if err != nil {
					continue
				}
				stop := context.AfterFunc(ctx, func() { _ = c.Close() })
				_, _ = io.WriteString(c, little)
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
	silence(t, s.Address(), 160, "")
	c, watch := client(), patience.Start(t)
	for range 10 {
		request, err := http.NewRequestWithContext(patience.Context(t), http.MethodGet, "http://"+s.Address()+"/health/live", http.NoBody)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, send(t, c, request).status)
	}
	require.Less(t, watch.Elapsed(), 10*time.Second, "a second for each")
}

// So are they while others say a byte on each of 1,500 connections, more than there are places.
func TestConnectionsThatSayLittleDoNotBlindTheHealthChecks(t *testing.T) {
	s := open(t, probed())
	silence(t, s.Address(), 1500, "G")
	c, served := client(), 0
	for range 100 {
		watch := patience.Start(t)
		if status(t, c, s.Address(), "x", http.MethodGet, "/health/live") == http.StatusOK && watch.Elapsed() < time.Second {
			served++
		}
	}
	require.GreaterOrEqual(t, served, 99)
}

// So are they, at either listener, while 300 clients of one address say little and 10,000 come and go.
func TestConnectionsThatComeAndGoDoNotBlindTheHealthChecks(t *testing.T) {
	probe := echo()
	probe.Path, probe.Probe = "/health/{what}", true
	for name, address := range map[string]string{
		"operators": serve(t, listening(), []management.Route{probe}).Address(), "health": open(t, probed()).Address(),
	} {
		t.Run(name, func(t *testing.T) {
			silence(t, address, 300, "G")
			ctx, cancel := context.WithCancel(t.Context())
			var all sync.WaitGroup
			defer all.Wait()
			defer cancel()
			var came atomic.Int32
			for range 8 {
				all.Go(func() {
					for came.Add(1) <= 10_000 && ctx.Err() == nil {
						if c, err := crowd.DialContext(ctx, "tcp", address); err == nil {
							_, _ = io.WriteString(c, "GET")
							_ = c.Close()
						}
					}
				})
			}
			c, served := client(), 0
			for range 100 {
				if status(t, c, address, "127.0.0.1", http.MethodGet, "/health/live") == http.StatusOK {
					served++
				}
			}
			require.GreaterOrEqual(t, served, 99)
		})
	}
}
