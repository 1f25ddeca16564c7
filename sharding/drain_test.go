// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/sharding"
)

// What an operator does to a node that is to host nothing, and what he sees of shards and entities
// on the nodes.

// hosted returns how many shards of the kind live on a node.
func hosted(n *node) int { return n.system.Kinds()[0].Hosted }

// A drain returns when the node hosts nothing. Its entities live elsewhere, it can
// still ask them, and after the drain has been taken back it hosts again.
func TestDrain(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(3)
		n := w.nodes[1]
		id := w.nodes[0].on(n)
		w.nodes[0].must(id, "add x")
		require.False(t, n.system.Drained())
		require.NoError(t, n.system.Drain(t.Context()))
		require.True(t, n.system.Drained())
		require.Zero(t, hosted(n))
		n.must(id, "where")
		require.NoError(t, n.system.Drain(t.Context()), "it hosts nothing already")

		require.NoError(t, n.system.Undrain(t.Context()))
		require.False(t, n.system.Drained())
		eventually(t, "it hosts again", func() bool { return hosted(n) > 0 })
	})
}

// Who waits for a drain that cannot end, since every node is drained, is told when the node is to
// host again, and when it ends.
func TestADrainThatDoesNotEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(2)
		w.nodes[0].must(w.nodes[0].on(w.nodes[1]), "where")
		for _, n := range w.nodes { // The second one gets back what the first had handed over.
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			_ = n.system.Drain(ctx)
			cancel()
		}
		ctx := patience.Expiring(t, time.Second)
		n := w.nodes[1]
		require.ErrorIs(t, n.system.Drain(ctx), context.DeadlineExceeded)
		require.True(t, n.system.Drained(), "the end of a context takes nothing back")

		waits := make(chan error, 1)
		go func() { waits <- n.system.Drain(t.Context()) }()
		pass(time.Second)
		require.NoError(t, n.system.Undrain(t.Context()))
		require.ErrorIs(t, within(t, waits), sharding.ErrUndrained)

		go func() { waits <- w.nodes[0].system.Drain(t.Context()) }()
		require.NoError(t, within(t, waits), "the other node can host")
		require.NoError(t, n.Close())
		require.ErrorIs(t, n.system.Drain(t.Context()), sharding.ErrClosed)
		require.ErrorIs(t, n.system.Undrain(t.Context()), sharding.ErrClosed)
	})
}

// A node lists the shards of a kind with their homes, and the entities that live on it.
func TestANodeListsShardsAndEntities(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(2)
		ids := w.nodes[0].hosted(w.nodes[1], 3)
		for _, id := range ids {
			w.nodes[0].must(id, "where")
		}
		kind := w.nodes[0].system.Kinds()[0].Name
		for _, n := range w.nodes {
			shards, err := n.system.Shards(kind)
			require.NoError(t, err)
			require.Len(t, shards, n.system.Kinds()[0].Shards)
			serving, entities := 0, 0
			for i, s := range shards {
				require.Equal(t, i, s.Shard)
				if s.State == "serving" {
					serving++
					require.Equal(t, n.Self().String(), s.Home)
				}
				entities += s.Entities
			}
			require.Equal(t, hosted(n), serving)
			all, more, err := n.system.Entities(kind, 100)
			require.NoError(t, err)
			require.False(t, more)
			require.Len(t, all, entities)
		}
		all, more, err := w.nodes[1].system.Entities(kind, 2)
		require.NoError(t, err)
		require.True(t, more)
		require.Len(t, all, 2)
		require.Equal(t, "idle", all[0].State)
		_, err = w.nodes[0].system.Shards("nothing")
		require.ErrorIs(t, err, sharding.ErrInvalid)
		_, _, err = w.nodes[0].system.Entities("nothing", 1)
		require.ErrorIs(t, err, sharding.ErrInvalid)
	})
}

// A shard moves to the node that an operator names, whoever is asked; what cannot be done is refused
// in words.
func TestAShardIsMoved(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(3)
		id := w.nodes[0].on(w.nodes[1])
		w.nodes[0].must(id, "where")
		kind, shard, to := w.nodes[0].system.Kinds()[0].Name, int(shardOf(id)), w.nodes[2].Self()
		require.NoError(t, w.nodes[1].system.Move(t.Context(), kind, shard, to.Address.String()))
		eventually(t, "it lives there, and the coordinator has heard so", func() bool {
			err := w.nodes[0].system.Move(t.Context(), kind, shard, to.String())
			require.Error(t, err)
			return strings.HasSuffix(err.Error(), "it lives there")
		})
		require.Equal(t, to.String(), w.nodes[0].must(id, "where"))

		for want, err := range map[string]error{
			"no member has that address": w.nodes[0].system.Move(t.Context(), kind, shard, "nowhere:1"),
			"there is no such shard":     w.nodes[0].system.Move(t.Context(), kind, -1, to.String()),
			"knows nothing of the kind":  w.nodes[0].system.Move(t.Context(), "none", 1, to.String()),
			"the kind has 12 shards":     w.nodes[0].system.Move(t.Context(), kind, 60_000, to.String()),
		} {
			var refused *sharding.MoveError
			require.ErrorAs(t, err, &refused)
			require.Contains(t, err.Error(), want)
		}
		over, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, w.nodes[0].system.Move(over, kind, shard, to.String()), context.Canceled)
		require.NoError(t, w.nodes[0].Close())
		require.ErrorIs(t, w.nodes[0].system.Move(t.Context(), kind, shard, to.String()), sharding.ErrClosed)
	})
}
