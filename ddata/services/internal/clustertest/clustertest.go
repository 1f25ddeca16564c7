// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package clustertest runs clusters with distributed data in one process, for the tests of
// what is built on the data.
//
//	clustertest.InBubble(t, func(t *testing.T, w *clustertest.World) {
//		w.Start(3)
//		...
//		w.Crash(w.Nodes[2])
//	})
package clustertest

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/transport/memory"
)

// World is a cluster in virtual time.
type World struct {
	T       *testing.T
	Network *memory.Network
	Nodes   []*Node

	// Config may change the settings of a node before it starts. Nil changes nothing.
	Config func(i int, m *membership.Config, d *ddata.Config)
}

// DataOn has the first nodes, so many, hold the data, and no others. It is called before they start.
func (w *World) DataOn(nodes int) {
	w.Config = func(i int, m *membership.Config, d *ddata.Config) {
		d.Role = "data"
		if i < nodes {
			m.Node.Roles = []string{d.Role}
		}
	}
}

// Node is one node of a World. Its methods Data and Node make it a [ddata.Host].
type Node struct {
	*ddata.Replicator

	Member *membership.Node
	// Ends are waited for when the node has ended.
	Ends []func(context.Context) error
}

// InBubble runs a test in virtual time. The bubble fails the test when a goroutine is left.
func InBubble(t *testing.T, f func(t *testing.T, w *World)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &World{T: t, Network: memory.NewNetwork()}
		defer func() {
			for _, n := range w.Nodes {
				w.Close(n)
			}
		}()
		f(t, w)
	})
}

// Close ends a node, and waits for all that ends with it.
func (w *World) Close(n *Node) {
	_ = n.Member.Close() // It never fails.
	ctx := patience.Context(w.T)
	for _, end := range append(n.Ends, n.AwaitEnd) {
		require.NoError(w.T, end(ctx))
	}
}

// Crash ends a node without a word to the others.
func (w *World) Crash(n *Node) {
	w.Cut(n)
	w.Close(n)
}

// Cut cuts a node off from all others.
func (w *World) Cut(n *Node) { w.others(n, w.Network.Cut) }

// Heal connects a node with all others again.
func (w *World) Heal(n *Node) { w.others(n, w.Network.Heal) }

func (w *World) others(n *Node, do func(a, b gossip.Address)) {
	for _, o := range w.Nodes {
		if o != n {
			do(n.Member.Self().Address, o.Member.Self().Address)
		}
	}
}

// Start starts n more nodes, and waits until all of them are members and their data counts.
func (w *World) Start(n int) {
	w.T.Helper()
	for range n {
		w.Build()
	}
	ctx := patience.Context(w.T)
	for _, n := range w.Nodes {
		require.NoError(w.T, n.Member.AwaitUp(ctx))
		require.NoError(w.T, n.AwaitReady(ctx))
	}
}

// Build starts one more node.
func (w *World) Build() *Node {
	w.T.Helper()
	i := len(w.Nodes)
	address := func(i int) string { return fmt.Sprintf("10.0.0.%d:7946", i+1) }
	m, d := membership.Default(), ddata.Default()
	m.Cluster.Name, m.Node.Address = "test", address(i)
	m.Membership.SeedNodes = []string{address(0)}
	if w.Config != nil {
		w.Config(i, &m, &d)
	}
	quiet := Quiet(w.T)
	member, err := membership.Start(w.T.Context(), m, membership.WithLogger(quiet), membership.WithUID(gossip.UID(rand.Uint64()|1)),
		membership.WithRand(rand.New(rand.NewPCG(1, uint64(i)))), membership.WithSettings(d.Settings()...),
		membership.WithTransport(w.Network.Transport))
	require.NoError(w.T, err)
	data, err := ddata.New(member, d, ddata.WithLogger(quiet))
	require.NoError(w.T, err)
	n := &Node{Replicator: data, Member: member}
	w.Nodes = append(w.Nodes, n)
	return n
}

// Quiet returns a logger that shows warnings with the output of a test.
func Quiet(t *testing.T) *slog.Logger {
	t.Helper()
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// Pass lets virtual time pass, and everything that happens in it happen.
func Pass(d time.Duration) {
	<-time.After(d) //quorate:realtime It is virtual: a World is in a bubble.
	synctest.Wait()
}

// Eventually waits until ok holds when nothing is left to be done until a later time.
func Eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	patience.Eventually(t, func() bool {
		synctest.Wait()
		return ok()
	}, "%s", what)
}
