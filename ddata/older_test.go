// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package ddata_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/ddata/store"
	"github.com/quorate/quorate/internal/patience"
)

// What becomes of a cluster whose nodes start with older disks: one of them, all as they were
// at one moment, and all as they were at different moments.

// saved is a durable key.
const saved = "saved/1"

// heard is after how long the others have written down how far a store is.
const heard = 5 * time.Second

// durable returns how the durable keys stand on a node.
func (n *node) durable() ddata.Group {
	n.w.t.Helper()
	return n.explain(saved).Group
}

// again starts all nodes again, those with an image with it as their disk.
func (w *world) again(disks []*store.Memory, images map[int]store.Image) {
	n := len(w.nodes)
	w.end()
	w.nodes = nil
	for i, image := range images {
		disks[i].Restore(image)
	}
	for range n {
		w.build()
	}
}

// count adds one to the key, on all replicas.
func (w *world) count() {
	w.t.Helper()
	require.NoError(w.t, w.nodes[0].add(saved, 1, ddata.All()))
	pass(heard)
}

// A node that starts with an older disk begins anew, under another id and with a copy of the
// disk put aside.
func TestAnOlderDiskIsRecognised(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		disks := w.disks(3)
		w.start(3)
		w.count()
		image := disks[1].Image()
		w.count()
		w.again(disks, map[int]store.Image{1: image})
		eventually(t, "the older disk is put aside", func() bool { return len(w.nodes[1].durable().Asides) == 1 })
		w.ready(w.nodes...)
		for _, n := range w.nodes {
			got, err := n.read(saved, ddata.Majority())
			require.NoError(t, err)
			require.EqualValues(t, 2, got)
			require.Empty(t, n.durable().Apart)
		}
		w.nodes[1].holds(saved, 2)
		require.Empty(t, w.nodes[0].durable().Asides)
		eventually(t, "the replicas are the members", func() bool { return len(w.nodes[0].durable().Replicas) == 3 })

		w.again(disks, nil)
		w.ready(w.nodes...)
		w.nodes[1].holds(saved, 2)
		require.Len(t, w.nodes[1].durable().Asides, 1, "it is known for good")
	})
}

// When all disks are put back as they were at one moment, the cluster goes on from there.
func TestAllDisksOfOneMoment(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		disks := w.disks(3)
		w.start(3)
		w.count()
		images := map[int]store.Image{}
		for i, d := range disks {
			images[i] = d.Image()
		}
		w.count()
		w.again(disks, images)
		w.ready(w.nodes...)
		for _, n := range w.nodes {
			got, err := n.read(saved, ddata.Majority())
			require.NoError(t, err)
			require.EqualValues(t, 1, got)
			require.Empty(t, n.durable().Asides)
		}
	})
}

// When the disks are of different moments, only a person can say which of them counts: nothing
// is thrown away until then.
func TestDisksOfDifferentMoments(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		disks := w.disks(3)
		w.start(3)
		images := map[int]store.Image{}
		for i, d := range disks {
			w.count()
			images[i] = d.Image()
		}
		w.count()
		w.again(disks, images)
		eventually(t, "two are older than the third remembers", func() bool {
			return w.nodes[0].durable().Apart != "" && w.nodes[1].durable().Apart != "" && w.nodes[2].durable().Apart == "" && !w.nodes[2].durable().Quorum
		})
		pass(heard)
		for _, n := range w.nodes {
			require.Empty(t, n.durable().Asides)
			_, err := ddata.Get(patience.Expiring(t, time.Second), n, counter(saved), ddata.Majority())
			require.Error(t, err)
		}
		got, err := w.nodes[0].read(saved, ddata.Local())
		require.NoError(t, err)
		require.EqualValues(t, 1, got)
		require.NoError(t, w.nodes[2].AcceptLoss(t.Context(), "durable"))
		w.ready(w.nodes...)
		for _, n := range w.nodes {
			n.holds(saved, 3)
		}
		require.Len(t, w.nodes[0].durable().Asides, 1)
		require.Len(t, w.nodes[1].durable().Asides, 1)
	})
}

// After the whole cluster has ended one node alone starts again, and a person accepts that the
// disks of the others are gone: it goes on with what it holds. When those come back all the same,
// what is on them is put aside and not merged, and nothing that was confirmed since is lost.
func TestDisksThatComeBackAfterTheirLossWasAccepted(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.disks(3)
		w.start(3)
		w.count()
		w.end()
		w.nodes = nil
		first := w.build()
		eventually(t, "it knows its register", func() bool { return len(first.durable().Replicas) == 3 })
		require.NoError(t, first.AcceptLoss(t.Context(), "durable"), "in no cluster yet it accepts none, and goes on")
		require.NoError(t, first.AwaitUp(patience.Context(t)))
		require.Len(t, first.durable().Replicas, 3)
		ctx := patience.Expiring(t, reportTimeout)
		_, err := ddata.Get(ctx, first, counter(saved), ddata.Majority())
		require.Error(t, err)
		require.NoError(t, first.AcceptLoss(t.Context(), "durable"))
		w.ready(first)
		require.NoError(t, first.add(saved, 1, ddata.Majority()))

		w.build()
		w.build()
		w.ready(w.nodes...)
		eventually(t, "the replicas are the members", func() bool { return len(first.durable().Replicas) == 3 })
		for _, n := range w.nodes {
			got, err := n.read(saved, ddata.Majority())
			require.NoError(t, err)
			require.EqualValues(t, 2, got)
		}
		require.NoError(t, w.nodes[2].add(saved, 1, ddata.All()))
		for i, n := range w.nodes {
			n.holds(saved, 3)
			require.Len(t, n.durable().Asides, min(i, 1), "what the others held belongs to what was given up")
		}
	})
}
