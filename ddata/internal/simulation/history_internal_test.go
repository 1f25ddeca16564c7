// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	world "github.com/quorate/quorate/simulation"
)

// The oracle itself: what it must not take for a violation, and what it must see.

// What began before a loss was accepted may be lost, also when it is acknowledged after that.
func TestWhatIsAcknowledgedAcrossAnAcceptedLossMayBeLost(t *testing.T) {
	for name, act := range map[string]func(h *History, cross func()){
		"a delete": func(h *History, cross func()) {
			began, doomed := h.now("g"), h.deleting("g")
			cross()
			h.deleted("g", doomed, began)
		},
		"an element that was taken out": func(h *History, cross func()) {
			began := h.now("g")
			_, ok := h.taking("g", rand.New(rand.NewPCG(1, 2)))
			require.True(t, ok)
			cross()
			h.took("g", 1, true, began)
		},
		"a write": func(h *History, cross func()) {
			began := h.now("g")
			h.write("g", 2)
			cross()
			h.wrote("g", 2, began)
		},
		"a read of a counter": func(h *History, cross func()) {
			r := h.read("g")
			cross()
			require.NoError(t, h.counted("g", r, 1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory(false)
			h.write("g", 1)
			h.wrote("g", 1, h.now("g"))
			act(h, h.forgive)
			require.NoError(t, h.returned("g", h.read("g"), []uint64{1}, false), "one replica that is left had it")
			h.forgive()
			require.NoError(t, h.counted("g", h.read("g"), 0))
			require.NoError(t, h.returned("g", h.read("g"), nil, false))
		})
	}
	h := newHistory(false)
	h.write("c", 1)
	r := h.read("c")
	h.forgive()
	require.NoError(t, h.counted("c", r, 1))
	require.NoError(t, h.counted("c", h.read("c"), 0), "what was read before may be lost as well")
}

// What begins after a loss was accepted has to last.
func TestViolationsAfterAnAcceptedLossAreSeen(t *testing.T) {
	h := newHistory(false)
	h.write("g", 1)
	h.wrote("g", 1, h.now("g"))
	h.forgive()
	for e := uint64(2); e <= 3; e++ {
		h.write("g", e)
		h.wrote("g", e, h.now("g"))
	}
	require.ErrorContains(t, h.returned("g", h.read("g"), []uint64{2}, false), "D2: a read of g missed 3")
	require.ErrorContains(t, h.counted("g", h.read("g"), 1), "D2: a read of g returned 1")
	began := h.now("g")
	e, ok := h.taking("g", rand.New(rand.NewPCG(1, 2)))
	require.True(t, ok)
	h.took("g", e, true, began)
	require.ErrorContains(t, h.returned("g", h.read("g"), []uint64{2, 3}, false), "D4: a read of g returned")
	began, doomed := h.now("g"), h.deleting("g")
	h.deleted("g", doomed, began)
	require.ErrorContains(t, h.returned("g", h.read("g"), []uint64{2, 3}, false), "D4: a read of g returned 2")
}

// As long as a replica has an older disk nobody else may be lost, whether that was recognised or
// not.
func TestAReplicaWithAnOlderDiskIsNotCountedAsLive(t *testing.T) {
	o := options(1, 3)
	o.Durable = true
	c := New(o, func(w *world.Options) { w.Network.Loss = 0 })
	require.NoError(t, c.World.Run(10*time.Second))
	for range 20 {
		c.backup(c.rand)
	}
	require.NoError(t, c.World.Run(5*time.Second))
	for _, n := range c.World.Nodes() {
		require.True(t, c.mayLose(n))
	}
	c.older(c.World, c.rand)
	require.Equal(t, 1, c.Aged)
	seen := 0
	_, err := c.World.RunUntil(time.Minute, func() bool {
		if n := c.World.Node(c.restored); n != nil && c.members[n.ID()] != nil {
			for _, other := range c.World.Nodes() {
				require.Equal(t, other == n, c.mayLose(other), "%s", other.ID())
			}
			seen++
		}
		return c.Recognised == 1
	})
	require.NoError(t, err)
	require.Positive(t, seen)
}
