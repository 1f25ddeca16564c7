// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate/client"
	"github.com/quorate/quorate/gateway"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/machine/meter/metertest"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/transport/memory"
)

// Each test waits for the fence of its cluster, and computes little: many run at a time, whatever the
// number of processors is.
func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "16") // The flag is there. What the command line says counts more.
	goleak.VerifyTestMain(m)
}

// quiet logs nothing.
func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// world is a cluster whose members speak over a network in memory, and with a gateway each on the loopback
// interface.
type world struct {
	t       *testing.T
	nodes   []*node
	hold    chan struct{} // Entities at "wait" go on when it is closed.
	release func()        // Closes it.
}

type node struct {
	*gateway.Server

	metrics *metertest.Reader
	member  *membership.Node
	system  *sharding.System
}

// start starts n nodes that host the kinds "echo" and "hidden", of which clients may reach the first.
func start(t *testing.T, n int, change func(*gateway.Config)) *world {
	t.Helper()
	patience.Watch(t)
	w := &world{t: t, hold: make(chan struct{})}
	w.release = sync.OnceFunc(func() { close(w.hold) })
	network := memory.NewNetwork()
	for i := range n {
		cfg := membership.Default()
		cfg.Cluster.Name, cfg.Node.Address = "test", fmt.Sprintf("127.0.0.%d:7946", i+1)
		cfg.Membership.SeedNodes = []string{"127.0.0.1:7946"}
		m, err := membership.Start(t.Context(), cfg, membership.WithLogger(quiet()), membership.WithTransport(network.Transport))
		require.NoError(t, err)
		s, err := sharding.New(m, sharding.Default(), sharding.WithLogger(quiet()))
		require.NoError(t, err)
		of := &node{member: m, system: s, metrics: metertest.New()}
		w.nodes = append(w.nodes, of)
		t.Cleanup(func() { w.end(of) })
		g := gateway.Default()
		g.Address, g.Kinds = "127.0.0.1:0", []string{"echo"}
		if change != nil {
			change(&g)
		}
		of.Server, err = gateway.Serve(t.Context(), g, s, gateway.WithLogger(quiet()), gateway.WithMeterProvider(of.metrics.Provider(), m.Self()))
		require.NoError(t, err)
	}
	t.Cleanup(w.release) // Before the nodes end.
	for _, of := range w.nodes {
		require.NoError(t, of.member.AwaitUp(t.Context()))
		for _, kind := range []string{"echo", "hidden"} {
			region, err := sharding.Start(of.system, sharding.Kind[*sharding.Bytes]{
				Name: kind, Codec: sharding.Raw{}, Shards: 10,
				New: func(*sharding.Context) sharding.Entity[*sharding.Bytes] { return echo{w} },
			})
			require.NoError(t, err)
			require.NoError(t, region.AwaitReady(t.Context()))
		}
	}
	return w
}

// end ends a node.
func (w *world) end(n *node) {
	if n.Server != nil {
		require.NoError(w.t, n.Close())
	}
	require.NoError(w.t, n.member.Close())
	require.NoError(w.t, n.system.AwaitEnd(context.Background())) // The context of the test has ended.
}

// echo is an entity that answers with its id and the message, and does as the message says.
type echo struct{ w *world }

func (e echo) Receive(c *sharding.Context, m *sharding.Bytes) error {
	text := string(*m)
	switch {
	case text == "wait":
		<-e.w.hold
	case text == "fail":
		return fmt.Errorf("broken")
	case strings.HasPrefix(text, "large"):
		text = strings.Repeat("x", 900_000)
	}
	reply := sharding.Bytes(c.ID() + " " + text + " " + c.Node().Address.String())
	return c.Reply(&reply)
}

// addresses are those of all gateways.
func (w *world) addresses() (all []string) {
	for _, n := range w.nodes {
		all = append(all, n.Address())
	}
	return all
}

// client opens a client of all nodes.
func (w *world) client(change func(*client.Config)) *client.Client {
	w.t.Helper()
	cfg := client.Default()
	cfg.Addresses, cfg.RetryInterval = w.addresses(), 100*time.Millisecond
	if change != nil {
		change(&cfg)
	}
	c, err := client.Open(cfg, client.WithLogger(quiet()))
	require.NoError(w.t, err)
	w.t.Cleanup(func() { require.NoError(w.t, c.Close()) })
	return c
}

// ready opens a client and waits until it is connected.
func (w *world) ready(change func(*client.Config)) *client.Client {
	w.t.Helper()
	c := w.client(change)
	require.NoError(w.t, c.AwaitReady(patience.Context(w.t)))
	return c
}
