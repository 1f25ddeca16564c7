// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/membership"
)

// impatient is the configuration of a node over TCP that looks contact points up.
func impatient(t *testing.T) membership.Config {
	t.Helper()
	cfg := overGRPC(t)
	m := &cfg.Membership
	m.Config = membership.Fast().Membership.Config // Its fence is a second.
	m.SeedNodes, m.Discovery.Methods = nil, []string{"directory"}
	m.Discovery.Interval, m.Discovery.StableMargin = 50*time.Millisecond, 200*time.Millisecond
	m.JoinInterval, m.JoinIntervalMax, m.ProbeTimeout = 100*time.Millisecond, 300*time.Millisecond, time.Second
	return cfg
}

// target reads the address of a contact point.
func target(t *testing.T, address string) discovery.Target {
	t.Helper()
	found, err := discovery.ParseTarget(address)
	require.NoError(t, err)
	return found
}

// impostor answers every connection as told until the test has ended.
func impostor(t *testing.T, answer func(net.Conn)) string {
	t.Helper()
	l := listen(t)
	serve(t, l, answer)
	return l.Addr().String()
}

// serve answers every connection to l as told until the test has ended.
func serve(t *testing.T, l net.Listener, answer func(net.Conn)) {
	t.Helper()
	var all sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				stop := context.AfterFunc(ctx, func() { _ = c.Close() })
				defer stop()
				answer(c)
				_ = c.Close()
			})
		}
	})
	t.Cleanup(func() {
		cancel()
		_ = l.Close()
		all.Wait()
	})
}

// says answers with a text, over and over if it is to have no end.
func says(text string, endless bool) func(net.Conn) {
	return func(c net.Conn) {
		for {
			if _, err := io.WriteString(c, text); err != nil || !endless {
				return
			}
		}
	}
}

// What is found and is no node of this cluster ends in the handshake of the transport: the
// line says so, nothing is formed, and a cluster is when discovery finds who belongs to it.
func TestContactPointsThatAreNoNodes(t *testing.T) {
	const html = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html>" + "welcome "
	for name, bad := range map[string]func(*testing.T) string{
		"HTML":               func(t *testing.T) string { t.Helper(); return impostor(t, says(html, false)) },
		"a body without end": func(t *testing.T) string { t.Helper(); return impostor(t, says(html, true)) },
		"a redirect": func(t *testing.T) string {
			t.Helper()
			return impostor(t, says("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n", false))
		},
		"nothing at all": func(t *testing.T) string {
			t.Helper()
			return impostor(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
		},
		"another cluster": func(t *testing.T) string {
			t.Helper()
			cfg := overGRPC(t)
			cfg.Cluster.Name = "other"
			n, err := membership.Start(t.Context(), cfg, membership.WithLogger(slog.New(slog.DiscardHandler)))
			require.NoError(t, err)
			t.Cleanup(func() { _ = n.Close() })
			return cfg.Node.Address
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, d := impatient(t), &directory{}
			d.set(target(t, cfg.Node.Address), target(t, bad(t)))
			n := startQuiet(t, cfg, d)
			patience.Eventually(t, func() bool {
				b := n.Bootstrap()
				return b != nil && strings.Contains(b.Line, "does not answer: ")
			}, "the line says so")
			t.Log(n.Bootstrap().Line)
			require.Less(t, len(n.Bootstrap().Line), 1500)
			require.Empty(t, n.State().Members())
			other := impatient(t)
			d.set(target(t, cfg.Node.Address), target(t, other.Node.Address))
			second := startQuiet(t, other, d)
			ctx := patience.Context(t)
			require.NoError(t, n.AwaitUp(ctx))
			require.NoError(t, second.AwaitUp(ctx))
			require.Equal(t, n.State().Cluster(), second.State().Cluster())
		})
	}
}

// startQuiet starts a node over TCP that ends with the test.
func startQuiet(t *testing.T, cfg membership.Config, d discovery.Discovery) *membership.Node {
	t.Helper()
	n, err := membership.Start(t.Context(), cfg, with(d), membership.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	t.Cleanup(func() { _ = n.Close() })
	return n
}
