// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package clustertest_test

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/store"
	"github.com/quorate/quorate/sharding"
)

// machines are three hosts: each has an address, a directory and a disk, which outlive its node.
type machines struct {
	dir   string
	disks [3]*store.Memory
}

// options are those of the node on the i-th machine.
func (m *machines) options(i int) []clustertest.Option {
	address := []string{"10.0.0.1:7946", "10.0.0.2:7946", "10.0.0.3:7946"}[i]
	if m.disks[i] == nil {
		m.disks[i] = store.NewMemory(rand.NewPCG(1, uint64(i)))
	}
	return []clustertest.Option{
		clustertest.WithAddress(address),
		clustertest.WithConfig("node: {data-dir: " + filepath.Join(m.dir, address[:8]) + "}\nddata: {durable: [visits]}\n" +
			`membership: {seed-nodes: ["10.0.0.1:7946", "10.0.0.2:7946", "10.0.0.3:7946"]}`),
		clustertest.WithOptions(cluster.WithStore(func(_ context.Context, _, name string) (store.Store, error) { return m.disks[i].Open(name) })),
	}
}

// historians is a kind whose entities tell under which epoch they live.
func historians(lived chan<- sharding.Epoch) sharding.Kind[number] {
	return sharding.Kind[number]{Name: "historian", Shards: 6, New: func(*sharding.Context) sharding.Entity[number] {
		return historian{lived}
	}}
}

type historian struct{ lived chan<- sharding.Epoch }

// Receive tells, and answers.
func (e historian) Receive(c *sharding.Context, n number) error {
	e.lived <- c.Epoch()
	return c.Reply(n)
}

// A whole cluster is stopped and, in another order, started again: it is the same cluster, with its data, and under
// higher epochs.
func TestAWholeClusterIsStoppedAndStartedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := machines{dir: t.TempDir()}
		lived := make(chan sharding.Epoch, 1)
		visits := ddata.NewKey[crdt.GCounter]("visits")
		c := clustertest.Start(t, 0)
		kind := clustertest.StartKind(c, historians(lived))
		started := func(order ...int) *clustertest.Node {
			for _, i := range order {
				c.Add(m.options(i)...)
			}
			c.AwaitConverged()
			return c.Nodes()[0]
		}
		node := started(0, 1, 2)
		first := node.Membership().State()
		require.EqualValues(t, 1, add(t, kind.Any(), "a", 1))
		before := <-lived
		_, err := ddata.Update(t.Context(), node, visits, ddata.Majority(), func(at crdt.Origin, v crdt.GCounter) (crdt.GCounter, error) { return v.Add(at, 7), nil })
		require.NoError(t, err)

		began := time.Now()
		c.Shutdown()
		require.Empty(t, c.Nodes())
		require.Less(t, time.Since(began), 5*time.Second, "nobody waits for another to take over")
		c.Advance(time.Hour)

		node = started(2, 0, 1)
		again := node.Membership().State()
		require.Len(t, again.Config().Voters, 3)
		require.Greater(t, again.EpochBorn(), first.EpochBorn())
		require.EqualValues(t, 1, add(t, kind.Any(), "a", 1))
		require.True(t, before.Less(<-lived))
		v, err := ddata.Get(t.Context(), node, visits, ddata.Majority())
		require.NoError(t, err)
		require.EqualValues(t, 7, v.Value())
	})
}

// A cluster of which no node runs cannot be stopped, and one of which a node is cut off waits for it.
func TestAShutdownThatIsNotPossible(t *testing.T) {
	judged(t, 2, func(t *testing.T, c *clustertest.Cluster, e *ended) {
		c.SetLimit(3 * time.Second)
		c.Isolate(c.Node(1))
		require.Contains(t, e.verdict(c.Shutdown), "clustertest: not within 3s: all nodes are ready for a shutdown: ")
		c.Heal()
	})
	judged(t, 1, func(t *testing.T, c *clustertest.Cluster, e *ended) {
		c.Leave(c.Node(0))
		require.Equal(t, "clustertest: shutdown: no node runs", e.verdict(c.Shutdown))
	})
}
