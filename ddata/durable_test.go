// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package ddata_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/store"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/membership"
)

// disks gives each node of a world a disk, which outlives the node.
func (w *world) disks(n int) (all []*store.Memory) {
	for i := range n {
		all = append(all, store.NewMemory(rand.NewPCG(7, uint64(i))))
	}
	w.config = func(_ int, _ *membership.Config, c *ddata.Config) {
		c.Durable, c.Dir = []string{"votes", "saved/*"}, "anywhere"
	}
	w.options = func(i int) []ddata.Option { return []ddata.Option{onDisk(all[i%n])} }
	return all
}

func onDisk(disk *store.Memory) ddata.Option {
	return ddata.WithStore(func(_ context.Context, _, cluster string) (store.Store, error) { return disk.Open(cluster) })
}

// Durable keys are there when the whole cluster has stopped and starts again, whatever its
// nodes were in the middle of; others are not.
func TestDurableKeysSurviveTheCluster(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		disks := w.disks(3)
		w.start(3)
		for i := range 50 {
			require.NoError(t, w.nodes[i%3].add(fmt.Sprintf("saved/%d", i), uint64(i+1), ddata.Majority()))
		}
		require.NoError(t, w.nodes[0].add("votes", 3, ddata.Local()))
		require.NoError(t, w.nodes[0].add("visits", 3, ddata.All()))
		for _, d := range disks {
			d.Crash()
		}
		before := w.nodes
		w.end()
		w.nodes = nil
		w.start(3)
		for i := range 50 {
			got, err := w.nodes[i%3].read(fmt.Sprintf("saved/%d", i), ddata.Majority())
			require.NoError(t, err)
			require.EqualValues(t, i+1, got)
		}
		w.nodes[2].holds("votes", 3)
		_, err := w.nodes[0].read("visits", ddata.Majority())
		require.ErrorIs(t, err, ddata.ErrNotFound)
		require.NoError(t, w.nodes[1].add("votes", 1, ddata.All()))
		require.NotEqual(t, before[0].Self(), w.nodes[0].Self())
	})
}

// What nodes write behind is there when they have ended in order; when all of them crash at once,
// what is older than twice the interval is, and the group goes on by itself. When one of three
// crashes nothing is lost.
func TestWriteBehind(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		disks := w.disks(3)
		configured := w.config
		w.config = func(i int, m *membership.Config, c *ddata.Config) {
			configured(i, m, c)
			c.WriteBehind = time.Minute
		}
		again := func() {
			w.end()
			w.nodes = nil
			w.start(3)
		}
		saved := func(i int, want uint64) {
			t.Helper()
			got, err := w.nodes[i].read("saved/a", ddata.Majority())
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
		w.start(3)
		require.NoError(t, w.nodes[0].add("saved/a", 1, ddata.Majority()))
		again()
		saved(1, 1)
		require.NoError(t, w.nodes[2].add("saved/a", 2, ddata.All()))
		disks[1].Crash()
		again()
		saved(1, 3)
		pass(3 * time.Minute)
		require.NoError(t, w.nodes[2].add("saved/a", 4, ddata.All()))
		for _, d := range disks {
			d.Crash()
		}
		again()
		got, err := w.nodes[0].read("saved/a", ddata.Majority())
		require.NoError(t, err)
		require.GreaterOrEqual(t, got, uint64(3))
	})
}

// A durable write is not confirmed before it is on disk, and goes on when the disk does.
func TestADurableWriteWaitsForTheDisk(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		disks := w.disks(1)
		w.start(1)
		n := w.nodes[0]
		require.NoError(t, n.add("votes", 1, ddata.Local()))
		disks[0].SetFaults(store.Faults{Full: true})
		ctx := patience.Expiring(t, 5*time.Second)
		_, err := ddata.Update(ctx, n, counter("votes"), ddata.Local(), increment)
		var unconfirmed *ddata.UnconfirmedError
		require.ErrorAs(t, err, &unconfirmed)
		require.True(t, n.Data().Stats().StoreFailing)
		require.NoError(t, n.add("visits", 1, ddata.All()), "others go on")
		disks[0].SetFaults(store.Faults{})
		require.NoError(t, n.add("votes", 1, ddata.Local()))
		require.False(t, n.Data().Stats().StoreFailing)
		got, err := n.read("votes", ddata.Local())
		require.NoError(t, err)
		require.EqualValues(t, 3, got)
	})
}

// Without what durable keys need the replicator does not start, and says what is missing.
func TestWithoutAStoreThatWorksNothingStarts(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		disks := w.disks(1)
		w.start(1)
		require.NoError(t, w.nodes[0].add("saved/1", 1, ddata.All()))
		require.NoError(t, w.nodes[0].add("saved/2", 1, ddata.All()))
		w.end()
		w.nodes = nil

		disks[0].SetFaults(store.Faults{Corrupt: "durable"})
		_, err := w.try()
		require.ErrorIs(t, err, store.ErrCorrupt)
		disks[0].SetFaults(store.Faults{})

		configured := w.config
		w.config = func(i int, m *membership.Config, c *ddata.Config) { configured(i, m, c); c.MaxValueBytes = 1 }
		_, err = w.try()
		require.ErrorIs(t, err, ddata.ErrTooLarge, "what is stored is never left out")
		w.config = func(i int, m *membership.Config, c *ddata.Config) { configured(i, m, c); c.Dir = "" }
		_, err = w.try()
		require.ErrorContains(t, err, "dir: is empty")
		w.config = configured
		w.options = func(int) []ddata.Option { return nil }
		_, err = w.try()
		require.ErrorIs(t, err, ddata.ErrNoStore)
		broken := errors.New("no such device")
		w.options = func(int) []ddata.Option {
			return []ddata.Option{ddata.WithStore(func(context.Context, string, string) (store.Store, error) { return nil, broken })}
		}
		_, err = w.try()
		require.ErrorIs(t, err, broken)
		w.options = func(int) []ddata.Option { return []ddata.Option{onDisk(disks[0])} }
		w.start(1)
		got, err := w.nodes[0].read("saved/2", ddata.Local())
		require.NoError(t, err)
		require.EqualValues(t, 1, got)
	})
}

// A directory below that of the node is the default.
func TestTheDirectoryOfTheStore(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		disks := w.disks(1)
		data := t.TempDir()
		configured := w.config
		w.config = func(i int, m *membership.Config, c *ddata.Config) {
			configured(i, m, c)
			c.Dir, m.Node.DataDir = "", data
		}
		opened := ""
		w.options = func(int) []ddata.Option {
			return []ddata.Option{ddata.WithStore(func(_ context.Context, dir, cluster string) (store.Store, error) {
				opened = dir
				return disks[0].Open(cluster)
			})}
		}
		w.start(1)
		require.Equal(t, data+"/ddata", opened)
		_, err := ddata.Get(t.Context(), w.nodes[0], ddata.NewKey[crdt.Flag]("votes"), ddata.Local())
		require.ErrorIs(t, err, ddata.ErrNotFound)
	})
}
