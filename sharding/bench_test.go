// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"
)

// What messages and entities cost in a cluster in real time: first the arena, its entities
// and how a benchmark finds and awaits them, then the benchmarks of messages, of the first
// message to an entity, and of the memory of entities that are idle.

type blob = *wrapperspb.BytesValue

// echo is an entity that replies with its message; to an empty message it replies with the
// node that it lives on.
type echo struct{}

func (*echo) Receive(c *sharding.Context, m blob) error {
	if len(m.GetValue()) == 0 {
		return c.Reply(wrapperspb.Bytes([]byte(c.Node().String())))
	}
	return c.Reply(m)
}

// arena is a cluster over gRPC on the loopback interface, in real time.
type arena struct {
	b       *testing.B
	nodes   []*membership.Node
	regions []*sharding.Region[blob]
}

func newArena(b *testing.B, n int, set ...func(*sharding.Config)) *arena {
	b.Helper()
	a := &arena{b: b}
	quiet := slog.New(slog.DiscardHandler)
	var seeds []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(b, err)
		cfg := membership.Default()
		cfg.Cluster.Name, cfg.Node.Address = "bench", l.Addr().String()
		seeds = append(seeds, cfg.Node.Address)
		cfg.Membership.SeedNodes = seeds[:1]
		require.NoError(b, l.Close())
		node, err := membership.Start(b.Context(), cfg, membership.WithLogger(quiet))
		require.NoError(b, err)
		b.Cleanup(func() { _ = node.Close() })
		settings := sharding.Default()
		for _, f := range set {
			f(&settings)
		}
		system, err := sharding.New(node, settings, sharding.WithLogger(quiet))
		require.NoError(b, err)
		region, err := sharding.Start(system, sharding.Kind[blob]{
			Name: "echo", New: func(*sharding.Context) sharding.Entity[blob] { return new(echo) },
		})
		require.NoError(b, err)
		require.NoError(b, node.AwaitUp(b.Context()))
		a.nodes, a.regions = append(a.nodes, node), append(a.regions, region)
	}
	ctx := patience.Context(b)
	_, err := sharding.Ask[blob](ctx, a.regions[0], "first", payload(1))
	require.NoError(b, err)
	return a
}

func payload(n int) blob { return wrapperspb.Bytes(make([]byte, n)) }

// ids returns the ids of count entities that live on the i-th node.
func (a *arena) ids(i, count int) []string {
	var ids []string
	for n := 0; len(ids) < count; n++ {
		id := fmt.Sprintf("id-%d", n)
		home, err := sharding.Ask[blob](a.b.Context(), a.regions[0], id, payload(0))
		require.NoError(a.b, err)
		if string(home.GetValue()) == a.nodes[i].Self().String() {
			ids = append(ids, id)
		}
	}
	return ids
}

// sync waits until the entities have handled everything that they were told.
func (a *arena) sync(b *testing.B, ids []string) {
	b.Helper()
	for _, id := range ids {
		if _, err := sharding.Ask[blob](b.Context(), a.regions[0], id, payload(1)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkMessages measures one sender that sends to 16 entities, on its own node and on
// another one, over gRPC on the loopback interface. A tell counts until the entity has
// handled it: the sender waits for that after every 4096 tells.
func BenchmarkMessages(b *testing.B) {
	a := newArena(b, 2)
	for i, home := range []string{"local", "remote"} {
		ids := a.ids(i, 16)
		for _, size := range []int{64, 1024} {
			message := payload(size)
			b.Run(fmt.Sprintf("tell/home=%s/bytes=%d", home, size), func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(size))
				for n := 0; b.Loop(); n++ {
					if err := a.regions[0].Tell(b.Context(), ids[n%len(ids)], message); err != nil {
						b.Fatal(err)
					}
					if n%4096 == 4095 {
						a.sync(b, ids)
					}
				}
				a.sync(b, ids)
			})
			b.Run(fmt.Sprintf("ask/home=%s/bytes=%d", home, size), func(b *testing.B) {
				b.ReportAllocs()
				for n := 0; b.Loop(); n++ {
					if _, err := sharding.Ask[blob](b.Context(), a.regions[0], ids[n%len(ids)], message); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkLimit measures what a limit costs a message to one of 1,000 entities of the same node, none of
// which has to make room: a tell, and an ask, with which each message is a use.
func BenchmarkLimit(b *testing.B) {
	for _, policy := range []string{"none", "least-recently-used", "segmented", "least-frequently-used", "w-tinylfu"} {
		a := newArena(b, 1, func(c *sharding.Config) {
			if policy != "none" {
				c.Passivation.ActiveEntityLimit, c.Passivation.Policy = 100_000, policy
			}
		})
		ids, message := a.ids(0, 1000), payload(64)
		b.Run("tell/policy="+policy, func(b *testing.B) {
			for n := 0; b.Loop(); n++ {
				if err := a.regions[0].Tell(b.Context(), ids[n%len(ids)], message); err != nil {
					b.Fatal(err)
				}
				if n%65536 == 65535 {
					a.sync(b, ids)
				}
			}
			a.sync(b, ids)
		})
		b.Run("ask/policy="+policy, func(b *testing.B) {
			for n := 0; b.Loop(); n++ {
				if _, err := sharding.Ask[blob](b.Context(), a.regions[0], ids[n%len(ids)], message); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkActivation measures the first ask to an entity, which is created, started and
// replies.
func BenchmarkActivation(b *testing.B) {
	a := newArena(b, 1)
	message := payload(64)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if _, err := sharding.Ask[blob](b.Context(), a.regions[0], fmt.Sprintf("new-%d", n), message); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkIdleEntity measures what an idle entity keeps: bytes of the heap, its id among
// them, and goroutines.
func BenchmarkIdleEntity(b *testing.B) {
	a := newArena(b, 1)
	const count = 50_000
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	message, before, goroutines := payload(64), heap(), runtime.NumGoroutine()
	for n := 0; b.Loop(); n++ {
		for i := range count {
			id := fmt.Sprintf("idle-%d-%d", n, i)
			if _, err := sharding.Ask[blob](b.Context(), a.regions[0], id, message); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(heap()-before)/float64(count*(n+1)), "B/entity")
		b.ReportMetric(float64(runtime.NumGoroutine()-goroutines)/float64(count*(n+1)), "goroutines/entity")
	}
}
