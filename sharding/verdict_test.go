// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"
)

// A region is ready when a coordinator has accepted it, and stays ready when another node
// becomes the coordinator.
func TestAwaitReady(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		first := w.build()
		first.startKind()
		begin := make(chan error, 1)
		go func() { begin <- first.region.AwaitReady(t.Context()) }()
		require.NoError(t, within(t, begin))
		second := w.build()
		second.startKind()
		ctx := patience.Context(t)
		require.NoError(t, second.region.AwaitReady(ctx))
		second.must("a", "x")
		require.NoError(t, first.Leave(ctx))
		require.NoError(t, second.region.AwaitReady(ctx))
		require.NoError(t, second.Close())
		synctest.Wait()
		require.Empty(t, second.system.Refused())
	})
}

// AwaitReady of a region that has no coordinator waits until the context or the node ends.
func TestAwaitReadyWithoutACoordinator(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.kind = func(_ *node, k *sharding.Kind[text]) { k.Role = "nobody" }
		w.form(1)
		n := w.nodes[0]
		n.startKind()
		ctx := patience.Expiring(t, time.Minute)
		err := n.region.AwaitReady(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, `no coordinator has accepted kind "test" yet`)
		require.Empty(t, n.system.Refused(), "to wait is not to be refused")
		end := make(chan error, 1)
		go func() { end <- n.region.AwaitReady(t.Context()) }()
		synctest.Wait()
		require.NoError(t, n.Close())
		require.ErrorIs(t, within(t, end), sharding.ErrClosed)
	})
}

// AwaitReady of a region that was refused returns the setting that differs. When the next
// coordinator has the same settings as the region, the region is ready.
func TestAwaitReadyOfARefusedRegion(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.kind = func(n *node, k *sharding.Kind[text]) { k.Shards = 12 + min(n.i, 1) }
		w.start(1)
		other := w.build()
		other.startKind()
		ctx := patience.Context(t)
		var refused *sharding.SettingsError
		require.ErrorAs(t, other.region.AwaitReady(ctx), &refused)
		require.Equal(t, "number-of-shards", refused.Setting)
		require.Equal(t, []*sharding.SettingsError{refused}, other.system.Refused())
		require.NoError(t, w.nodes[0].Leave(ctx))
		eventually(t, "it is accepted", func() bool { return other.region.AwaitReady(ctx) == nil })
		require.Empty(t, other.system.Refused())
		other.must("a", "x")
	})
}

// A kind for which the coordinator has no room is refused, and its node is told why. So is a kind with which a node
// itself would have more shards than max-shards.
func TestAKindWithoutRoomIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		most := 20
		w.config = func(_ *membership.Config, c *sharding.Config) { c.MaxShards = most }
		w.kind = func(_ *node, k *sharding.Kind[text]) { k.Shards = 12 }
		w.start(1)
		most = 120
		other := w.build()
		other.startKind()
		tenant := sharding.Kind[text]{Name: "tenant", Shards: 100, New: func(*sharding.Context) sharding.Entity[text] { return &actor{n: other} }}
		region, err := sharding.Start(other.system, tenant)
		require.NoError(t, err)
		var refused *sharding.SettingsError
		err = region.AwaitReady(patience.Context(t))
		require.ErrorAs(t, err, &refused)
		require.ErrorIs(t, err, sharding.ErrNoRoom)
		require.Equal(t, "max-shards", refused.Setting)
		require.ErrorContains(t, err, `keeps "at most 20 in all kinds, of which 12 are in use", and this node wants "100"`)
		require.ErrorIs(t, region.Tell(t.Context(), "a", say("x")), sharding.ErrNoRoom)

		tenant.Name, tenant.Shards = "another", 9
		_, err = sharding.Start(other.system, tenant)
		require.ErrorIs(t, err, sharding.ErrNoRoom)
		other.must("a", "x")
	})
}
