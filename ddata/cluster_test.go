// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package ddata_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/transport/memory"
)

// reportTimeout is a time in which nothing is found out about a node.
const reportTimeout = time.Second

// world is a cluster in one process, in virtual time.
type world struct {
	t       *testing.T
	network *memory.Network
	nodes   []*node

	// What a test may set before a node starts.
	config  func(i int, m *membership.Config, c *ddata.Config)
	options func(i int) []ddata.Option
}

// node is one node of a world.
type node struct {
	*membership.Node
	*ddata.Replicator

	w *world
	i int
}

func (n *node) Data() *ddata.Replicator { return n.Replicator }

// inBubble runs a test in virtual time. The bubble fails the test when a goroutine is left.
func inBubble(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, network: memory.NewNetwork()}
		defer w.end()
		f(t, w)
	})
}

// end ends all nodes, and waits for their replicators.
func (w *world) end() {
	for _, n := range w.nodes {
		w.close(n)
	}
}

// close ends a node, and waits for its replicator.
func (w *world) close(n *node) {
	_ = n.Close() // It never fails.
	require.NoError(w.t, n.AwaitEnd(patience.Context(w.t)))
}

// explain returns why a key is as it is.
func (n *node) explain(key string) ddata.Explanation {
	n.w.t.Helper()
	ctx := patience.Context(n.w.t)
	e, err := n.Explain(ctx, key)
	require.NoError(n.w.t, err)
	return e
}

// pass lets virtual time pass, and everything that happens in it happen.
func pass(d time.Duration) {
	<-time.After(d) //quorate:realtime It is virtual.
	synctest.Wait()
}

// eventually waits until ok holds when nothing is left to be done until a later time.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	patience.Eventually(t, func() bool {
		synctest.Wait()
		return ok()
	}, "%s", what)
}

func address(i int) string { return fmt.Sprintf("10.0.0.%d:7946", i+1) }

// build starts a node.
func (w *world) build() *node {
	n, err := w.try()
	require.NoError(w.t, err)
	return n
}

// try starts a node, of which the replicator may fail to start.
func (w *world) try() (*node, error) {
	i := len(w.nodes)
	m, c := membership.Default(), ddata.Default()
	m.Cluster.Name, m.Node.Address = "test", address(i)
	m.Membership.SeedNodes = []string{address(0)}
	if w.config != nil {
		w.config(i, &m, &c)
	}
	quiet := slog.New(slog.NewTextHandler(w.t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	member, err := membership.Start(w.t.Context(), m, membership.WithLogger(quiet), membership.WithUID(gossip.UID(rand.Uint64()|1)),
		membership.WithRand(rand.New(rand.NewPCG(1, uint64(i)))), membership.WithSettings(c.Settings()...),
		membership.WithTransport(w.network.Transport))
	require.NoError(w.t, err)
	options := []ddata.Option{ddata.WithLogger(quiet)}
	if w.options != nil {
		options = append(options, w.options(i)...)
	}
	r, err := ddata.New(member, c, options...)
	if err != nil {
		require.NoError(w.t, member.Close())
		return nil, err
	}
	n := &node{Node: member, Replicator: r, w: w, i: i}
	w.nodes = append(w.nodes, n)
	return n, nil
}

// start starts n nodes, and waits until all of them count and the last change of the voters
// is complete: before that a crash of two in six may take the majority of the voters of before.
func (w *world) start(n int) {
	w.t.Helper()
	for range n {
		w.build()
	}
	w.ready(w.nodes...)
	eventually(w.t, "all vote", func() bool {
		return !slices.ContainsFunc(w.nodes, func(o *node) bool {
			base := o.View().Base
			return len(base) != 1 || len(base[0]) != n
		})
	})
}

// ready waits until nodes count as replicas.
func (w *world) ready(nodes ...*node) {
	w.t.Helper()
	ctx := patience.Context(w.t)
	for _, n := range nodes {
		require.NoError(w.t, n.AwaitUp(ctx))
		require.NoError(w.t, n.AwaitReady(ctx))
	}
}

// crash ends a node without a word to the others.
func (w *world) crash(n *node) {
	for _, o := range w.nodes {
		if o != n {
			w.network.Cut(n.Self().Address, o.Self().Address)
		}
	}
	w.close(n)
}

func counter(name string) ddata.Key[crdt.GCounter] { return ddata.NewKey[crdt.GCounter](name) }

// add adds to a counter.
func (n *node) add(name string, by uint64, c ddata.Consistency) error {
	ctx := patience.Context(n.w.t)
	_, err := ddata.Update(ctx, n, counter(name), c, func(at crdt.Origin, v crdt.GCounter) (crdt.GCounter, error) {
		return v.Add(at, by), nil
	})
	return err
}

// read reads a counter.
func (n *node) read(name string, c ddata.Consistency) (uint64, error) {
	ctx := patience.Context(n.w.t)
	v, err := ddata.Get(ctx, n, counter(name), c)
	return v.Value(), err
}

// Every level reads what was written at a level that overlaps it, on any node, also one that asks
// for more replicas than there are.
// covers B37.
func TestReadsAndWritesOfEachLevel(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(3)
		levels := []ddata.Consistency{ddata.To(2), ddata.Majority(), ddata.Majority(ddata.Plus(1)), ddata.Majority(ddata.MinCap(3)), ddata.All(), ddata.To(17)}
		sum := uint64(0)
		for i, level := range levels {
			require.NoError(t, w.nodes[i%3].add("visits", 1, level), "%s", level)
			sum++
			got, err := w.nodes[(i+1)%3].read("visits", level)
			require.NoError(t, err, "%s", level)
			require.Equal(t, sum, got, "%s", level)
		}
		require.NoError(t, w.nodes[0].add("visits", 1, ddata.Local()))
		got, err := w.nodes[0].read("visits", ddata.Local())
		require.NoError(t, err)
		require.Equal(t, sum+1, got)
		for _, n := range w.nodes {
			eventually(t, "a local update spreads", func() bool {
				got, err := n.read("visits", ddata.Local())
				return err == nil && got == sum+1
			})
		}
	})
}

// The homes of a key are known without asking anybody.
func TestHomes(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(i int, m *membership.Config, c *ddata.Config) {
			c.Role = "data"
			if i < 2 {
				m.Node.Roles = []string{"data"}
			}
		}
		w.start(3)
		want := []gossip.NodeID{w.nodes[0].Self(), w.nodes[1].Self()}
		for i, n := range w.nodes {
			eventually(t, "both count", func() bool {
				homes, here := n.Homes("visits")
				return slices.Equal(homes, want) && here == (i < 2)
			})
		}
	})
}
