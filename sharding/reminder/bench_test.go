// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package reminder_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/reminder"
	"github.com/quorate/quorate/sharding/state/memory"
	network "github.com/quorate/quorate/transport/memory"
)

// What a node of its own takes to set a reminder, asked by 64 callers at once, and to set and deliver one after
// the other, over a store in memory that answers at once.
func BenchmarkService(b *testing.B) {
	quiet := slog.New(slog.DiscardHandler)
	cfg := membership.Default()
	cfg.Cluster.Name, cfg.Node.Address = "bench", "10.0.0.1:7946"
	cfg.Membership.SeedNodes = []string{"10.0.0.1:7946"}
	member, err := membership.Start(b.Context(), cfg, membership.WithLogger(quiet), membership.WithTransport(network.NewNetwork().Transport))
	require.NoError(b, err)
	defer func() { require.NoError(b, member.Close()) }()
	system, err := sharding.New(member, sharding.Default(), sharding.WithLogger(quiet))
	require.NoError(b, err)
	reminders, err := reminder.Start(system, memory.New(), reminder.Default(), reminder.WithLogger(quiet))
	require.NoError(b, err)
	var under sync.WaitGroup
	require.NoError(b, reminders.Target("account", func(context.Context, reminder.Fired) error {
		under.Done()
		return nil
	}))
	var n atomic.Int64
	set := func(in time.Duration) error {
		return reminders.Set(b.Context(), reminder.Reminder{
			Kind: "account", ID: fmt.Sprintf("entity-%07d", n.Add(1)), Name: "interest", Due: time.Now().Add(in),
		})
	}
	b.Run("set", func(b *testing.B) {
		b.SetParallelism(32)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := set(time.Hour); err != nil {
					b.Error(err)
				}
			}
		})
	})
	b.Run("set-and-deliver", func(b *testing.B) {
		for b.Loop() {
			under.Add(1)
			require.NoError(b, set(0))
		}
		under.Wait()
	})
}
