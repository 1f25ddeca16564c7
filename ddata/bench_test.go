// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package ddata_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/membership"
)

// arena starts nodes over gRPC on the loopback interface, in real time, and waits until they
// count.
func arena(t testing.TB, n int) (all []*ddata.Replicator) {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	var seed string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		cfg := membership.Default()
		cfg.Cluster.Name, cfg.Node.Address = "bench", l.Addr().String()
		if seed == "" {
			seed = cfg.Node.Address
		}
		cfg.Membership.SeedNodes = []string{seed}
		require.NoError(t, l.Close())
		node, err := membership.Start(t.Context(), cfg, membership.WithLogger(quiet))
		require.NoError(t, err)
		r, err := ddata.New(node, ddata.Default(), ddata.WithLogger(quiet))
		t.Cleanup(func() {
			_ = node.Close() // It never fails.
			require.NoError(t, r.AwaitEnd(context.Background()))
		})
		require.NoError(t, err)
		all = append(all, r)
	}
	ctx := patience.Context(t)
	for _, r := range all {
		require.NoError(t, r.AwaitReady(ctx))
	}
	return all
}

// The same as in virtual time holds over TCP.
func TestOverTCP(t *testing.T) {
	all := arena(t, 3)
	ctx := patience.Context(t)
	for i := range 30 {
		v, err := ddata.Update(ctx, all[i%3], counter("visits"), ddata.Majority(), increment)
		require.NoError(t, err)
		require.NotZero(t, v.Value())
	}
	for _, r := range all {
		v, err := ddata.Get(ctx, r, counter("visits"), ddata.Majority())
		require.NoError(t, err)
		require.EqualValues(t, 30, v.Value())
	}
	_ = all[2].Node().Close() // It never fails.
	_, err := ddata.Update(ctx, all[0], counter("visits"), ddata.Majority(), increment)
	require.NoError(t, err)
	v, err := ddata.Get(ctx, all[1], counter("visits"), ddata.Majority())
	require.NoError(t, err)
	require.EqualValues(t, 31, v.Value())
}

// BenchmarkUpdate is what callers on one of three nodes get through.
func BenchmarkUpdate(b *testing.B) {
	all := arena(b, 3)
	for _, c := range []struct {
		level   ddata.Consistency
		callers int // Beside those of the other processors.
	}{{ddata.Local(), 2}, {ddata.Majority(), 1}, {ddata.Majority(), 32}} {
		b.Run(fmt.Sprintf("level=%s/callers=%d", c.level, c.callers), func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(c.callers)
			var callers atomic.Uint64
			b.RunParallel(func(p *testing.PB) {
				key := counter(fmt.Sprintf("visits-%d", callers.Add(1)))
				for p.Next() {
					if _, err := ddata.Update(b.Context(), all[0], key, c.level, increment); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

// BenchmarkGet is what callers on one of three nodes read.
func BenchmarkGet(b *testing.B) {
	all := arena(b, 3)
	key := counter("visits")
	_, err := ddata.Update(b.Context(), all[0], key, ddata.All(), increment)
	require.NoError(b, err)
	for _, level := range []ddata.Consistency{ddata.Local(), ddata.Majority()} {
		b.Run("level="+level.String(), func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					if _, err := ddata.Get(b.Context(), all[0], key, level); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

// A local update allocates nothing beside what the table and the value do.
func TestALocalUpdateAllocatesNothingOfItsOwn(t *testing.T) {
	r := arena(t, 1)[0]
	key := counter("visits")
	update := func() {
		_, err := ddata.Update(t.Context(), r, key, ddata.Local(), increment)
		require.NoError(t, err)
	}
	update()
	var v crdt.GCounter
	typ := crdt.TypeOf[crdt.GCounter]()
	table := ddata.AloneTable()
	alone := testing.AllocsPerRun(1000, func() {
		_, err := table.Update("visits", typ, func(at crdt.Origin, x any) (any, error) {
			v = x.(crdt.GCounter).Add(at, 1)
			return v, nil
		})
		require.NoError(t, err)
	})
	least := alone + 1 // Of a few: what else the node does meanwhile allocates as well.
	for range 5 {
		least = min(least, testing.AllocsPerRun(1000, update))
	}
	require.LessOrEqual(t, least, alone)
}
