// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"

	"github.com/quorate/quorate/config/field"
)

// Kinds that run take over the times of a new configuration, also where their entities
// would not have been swept again for a long time.
// covers I31.
func TestReloadChangesTimesOfRunningKinds(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(_ *membership.Config, s *sharding.Config) { s.PassivateAfter = 0 }
		w.start(1)
		n := w.nodes[0]
		n.must("a", "x")
		pass(time.Hour)
		require.Empty(t, w.journal.of("a", "stop"), "never")

		cfg := sharding.Default()
		cfg.NumberOfShards, cfg.PassivateAfter = 12, 4*time.Second
		require.NoError(t, n.system.Reload(cfg))
		pass(6 * time.Second)
		require.Len(t, w.journal.of("a", "stop"), 1)

		for i := range 5 { // A configuration replaces the one before, even if no sweep has used that.
			cfg.PassivateAfter = time.Duration(i) * time.Minute
			require.NoError(t, n.system.Reload(cfg))
		}
		n.must("a", "x")
		pass(3 * time.Minute)
		require.Len(t, w.journal.of("a", "stop"), 1)
		pass(2*time.Minute + 20*time.Second)
		require.Len(t, w.journal.of("a", "stop"), 2)
	})
}

// A kind keeps the times that it sets itself. A kind that is started later has those of the
// new configuration.
func TestReloadKeepsWhatAKindSays(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.kind = func(_ *node, k *sharding.Kind[text]) { k.PassivateAfter = -1 }
		w.start(1)
		n := w.nodes[0]
		cfg := sharding.Default()
		cfg.NumberOfShards, cfg.PassivateAfter, cfg.StuckAfter = 12, 2*time.Second, 0
		require.NoError(t, n.system.Reload(cfg))
		later, err := sharding.Start(n.system, sharding.Kind[text]{
			Name: "later", New: func(*sharding.Context) sharding.Entity[text] { return &actor{n: n} },
		})
		require.NoError(t, err)
		ctx := patience.Context(t)
		_, err = sharding.Ask[text](ctx, later, "late", say("x"))
		require.NoError(t, err)
		n.must("own", "x")
		pass(time.Hour)
		require.Empty(t, w.journal.of("own", "stop"))
		require.Len(t, w.journal.of("late", "stop"), 1)
	})
}

func TestReloadRefusesWhatCannotChange(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(1)
		s := w.nodes[0].system
		base := sharding.Default()
		base.NumberOfShards = 12
		for i, spoil := range []func(*sharding.Config){
			func(c *sharding.Config) { c.NumberOfShards = 13 },
			func(c *sharding.Config) { c.MailboxSize++ },
			func(c *sharding.Config) { c.OnStuck = "abandon" },
			func(c *sharding.Config) { c.Allocation.Strategy = "other" },
		} {
			cfg := base
			cfg.PassivateAfter = time.Nanosecond
			spoil(&cfg)
			require.ErrorIs(t, s.Reload(cfg), sharding.ErrFixed, fmt.Sprint(i))
		}
		bad := base
		bad.Rebalance.IdleCheck = 0
		var fault *field.Error
		require.ErrorAs(t, s.Reload(bad), &fault)
		require.Equal(t, "rebalance.idle-check", fault.Field())
		w.nodes[0].must("a", "x")
		pass(time.Minute)
		require.Empty(t, w.journal.of("a", "stop"), "nothing has changed")
		require.NoError(t, w.nodes[0].Close())
		require.ErrorIs(t, s.Reload(base), sharding.ErrClosed)
	})
}

// Another strategy allocates from the reload on, also for kinds that start later, until the
// built-in one is chosen again; a name that is neither built in nor given is refused.
func TestReloadChangesTheAllocationStrategy(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(1)
		n, asked := w.nodes[0], map[string]int{}
		mine := strategy{func(_ context.Context, r allocation.AllocateRequest) (res allocation.AllocateResult, err error) {
			asked[r.Kind]++
			for _, p := range r.Shards {
				res.Placements = append(res.Placements, allocation.Placement{Shard: p.Shard, Region: r.Regions[0].ID})
			}
			return res, nil
		}}
		begin := func(kind string) {
			later, err := sharding.Start(n.system, sharding.Kind[text]{Name: kind, New: func(*sharding.Context) sharding.Entity[text] { return &actor{n: n} }})
			require.NoError(t, err)
			ctx := patience.Context(t)
			_, err = sharding.Ask[text](ctx, later, "one", say("x"))
			require.NoError(t, err)
		}
		cfg := sharding.Default()
		cfg.NumberOfShards, cfg.Allocation.Strategy = 12, "mine"
		require.ErrorIs(t, n.system.Reload(cfg), sharding.ErrFixed)
		require.ErrorIs(t, n.system.ReloadAllocation(cfg, nil), allocation.ErrUnknownStrategy)
		require.NoError(t, n.system.ReloadAllocation(cfg, mine))
		require.NoError(t, n.system.Reload(cfg), "the strategy stays")
		begin("second")
		require.Equal(t, map[string]int{"second": 1}, asked)
		cfg.Allocation.Strategy = allocation.LeastShardName
		require.NoError(t, n.system.ReloadAllocation(cfg, nil))
		begin("third")
		require.Equal(t, map[string]int{"second": 1}, asked)
	})
}

// Consistent hashing is taken over by a reload, with other limits by the next, and given up again.
func TestABuiltInStrategyIsChosenByAReload(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(2)
		cfg := sharding.Default()
		cfg.NumberOfShards = 12
		for _, limit := range []int{100, 0} {
			cfg.Allocation.Strategy = allocation.ConsistentHashingName
			cfg.Allocation.ConsistentHashing.RebalanceAbsoluteLimit = limit
			for _, n := range w.nodes {
				require.NoError(t, n.system.ReloadAllocation(cfg, nil))
				require.NoError(t, n.system.Reload(cfg))
			}
		}
		cfg.Allocation.Strategy = "alphabetical"
		require.ErrorIs(t, w.nodes[0].system.ReloadAllocation(cfg, nil), allocation.ErrUnknownStrategy)
	})
}
