// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package delivery_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/delivery"
	network "github.com/quorate/quorate/transport/memory"
)

// sink is an entity that does nothing.
type sink struct{}

func (sink) Receive(*sharding.Context, text) error { return nil }

// BenchmarkDelivery has messages delivered to entities of the same node, each handled and confirmed.
func BenchmarkDelivery(b *testing.B) {
	ctx, quiet := context.Background(), slog.New(slog.DiscardHandler)
	cfg := membership.Default()
	cfg.Cluster.Name, cfg.Node.Address = "bench", "10.0.0.1:7946"
	cfg.Membership.SeedNodes = []string{cfg.Node.Address}
	node, err := membership.Start(ctx, cfg, membership.WithLogger(quiet), membership.WithTransport(network.NewNetwork().Transport))
	require.NoError(b, err)
	defer func() { require.NoError(b, node.Close()) }()
	system, err := sharding.New(node, sharding.Default(), sharding.WithLogger(quiet))
	require.NoError(b, err)
	region, err := sharding.Start(system, sharding.Kind[*delivery.Frame[text]]{
		Name: "sink", Codec: delivery.Codec[text](nil),
		New: delivery.Entities(delivery.Inbox{}, func(*sharding.Context) sharding.Entity[text] { return sink{} }),
	})
	require.NoError(b, err)
	for _, entities := range []int{1, 1000} {
		b.Run(fmt.Sprintf("entities=%d", entities), func(b *testing.B) {
			p, err := delivery.NewProducer(ctx, region, delivery.Default())
			require.NoError(b, err)
			defer p.Close()
			ids := make([]string, entities)
			for i := range ids {
				ids[i] = fmt.Sprintf("e%d", i)
				require.NoError(b, p.Deliver(ctx, ids[i], say("first")))
			}
			message, n := say("message"), 0
			b.ReportAllocs()
			for b.Loop() {
				if err := p.Send(ctx, ids[n%entities], message); err != nil {
					b.Fatal(err)
				}
				n++
			}
			require.NoError(b, p.Flush(ctx))
		})
	}
}
