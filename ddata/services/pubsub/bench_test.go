// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package pubsub_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/ddata/services/pubsub"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/membership"
)

// Topics over gRPC on the loopback interface, in real time: the arena, a test of order, and
// what a message costs.

// arena is a cluster whose nodes have a topic.
type arena struct {
	tb     testing.TB
	nodes  []*pubsub.PubSub
	topics []*pubsub.Topic[[]byte]
}

func newArena(tb testing.TB, n int) *arena {
	tb.Helper()
	a := &arena{tb: tb}
	quiet := slog.New(slog.DiscardHandler)
	var seed string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(tb, err)
		cfg := membership.Default()
		cfg.Cluster.Name, cfg.Node.Address = "bench", l.Addr().String()
		if seed == "" {
			seed = cfg.Node.Address
		}
		cfg.Membership.SeedNodes = []string{seed}
		require.NoError(tb, l.Close())
		node, err := membership.Start(tb.Context(), cfg, membership.WithLogger(quiet), membership.WithSettings(ddata.Default().Settings()...))
		require.NoError(tb, err)
		data, err := ddata.New(node, ddata.Default(), ddata.WithLogger(quiet))
		require.NoError(tb, err)
		p, err := pubsub.New(data, pubsub.WithLogger(quiet))
		require.NoError(tb, err)
		tb.Cleanup(func() {
			_ = node.Close() // It never fails.
			ctx := context.Background()
			require.NoError(tb, p.AwaitEnd(ctx))
			require.NoError(tb, data.AwaitEnd(ctx))
		})
		require.NoError(tb, node.AwaitUp(tb.Context()))
		require.NoError(tb, data.AwaitReady(tb.Context()))
		topic, err := pubsub.NewTopic(p, "news", pubsub.Bytes{})
		require.NoError(tb, err)
		a.nodes, a.topics = append(a.nodes, p), append(a.topics, topic)
	}
	return a
}

// subscribe subscribes on a node, and waits until the first node sends to it.
func (a *arena) subscribe(i int, opts ...pubsub.SubscribeOption) *pubsub.Subscription[[]byte] {
	s, err := a.topics[i].Subscribe(a.tb.Context(), opts...)
	require.NoError(a.tb, err)
	limit := patience.Context(a.tb)
	for {
		require.NoError(a.tb, a.topics[0].Publish(limit, nil))
		_, err := s.Next(patience.Expiring(a.tb, 10*time.Millisecond))
		if err == nil {
			return s
		}
		require.NoError(a.tb, limit.Err())
	}
}

// What is published as fast as possible comes over a real connection completely and in
// order, while the subscriber has the publisher wait.
func TestOrderOverAConnection(t *testing.T) {
	a := newArena(t, 2)
	s := a.subscribe(1, pubsub.WithRoom(64))
	const n = 20_000
	go func() {
		for i := range n {
			if a.topics[0].Publish(t.Context(), fmt.Append(nil, i)) != nil {
				return // The test ends without what is missing.
			}
		}
	}()
	ctx := patience.Context(t)
	for i := 0; i < n; {
		m, err := s.Next(ctx)
		require.NoError(t, err)
		if len(m.Value) == 0 {
			continue // Of the time when the publisher did not know the subscriber for sure.
		}
		require.Equal(t, fmt.Sprint(i), string(m.Value))
		i++
	}
	require.Zero(t, s.Dropped())
}

// BenchmarkMessages measures one publisher and one subscriber, on its own node and on
// another one, over gRPC on the loopback interface. A message counts until the subscriber
// has read it: the publisher waits for that after every 4096 messages.
func BenchmarkMessages(b *testing.B) {
	for i, home := range []string{"local", "remote"} {
		a := newArena(b, 2)
		s := a.subscribe(i, pubsub.WithRoom(8192))
		for {
			ctx, cancel := context.WithTimeout(b.Context(), 100*time.Millisecond)
			_, err := s.Next(ctx) // What is left of subscribing.
			cancel()
			if err != nil {
				break
			}
		}
		read := make(chan struct{})
		done := make(chan struct{})
		ctx, cancel := context.WithCancel(b.Context())
		go func() {
			defer close(done)
			for {
				m, err := s.Next(ctx)
				if err != nil {
					return
				}
				if len(m.Value) == 1 {
					read <- struct{}{}
				}
			}
		}()
		mark := []byte{0}
		for _, size := range []int{64, 1024} {
			message := make([]byte, size)
			sync := func() {
				if err := a.topics[0].Publish(b.Context(), mark); err != nil {
					b.Fatal(err)
				}
				<-read
			}
			b.Run(fmt.Sprintf("publish/home=%s/bytes=%d", home, size), func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(size))
				for n := 0; b.Loop(); n++ {
					if err := a.topics[0].Publish(b.Context(), message); err != nil {
						b.Fatal(err)
					}
					if n%4096 == 4095 {
						sync()
					}
				}
				sync()
			})
		}
		cancel()
		<-done
		require.Zero(b, s.Dropped())
	}
}
