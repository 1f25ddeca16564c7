// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package pubsub_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/ddata/services/pubsub"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/transport/memory"
)

// price is what the topic of the example carries.
type price struct {
	Share string
	Cents int
}

// A node publishes prices, to a subscriber and to a group of two, of which one gets each
// price. Real nodes leave the transport away and live on machines of their own.
func Example() {
	ctx, quiet := context.Background(), slog.New(slog.DiscardHandler)
	cfg := membership.Default()
	cfg.Cluster.Name, cfg.Node.Address, cfg.Membership.SeedNodes = "bank", "127.0.0.1:7946", []string{"127.0.0.1:7946"}
	network := memory.NewNetwork()
	node, err := membership.Start(ctx, cfg, membership.WithLogger(quiet),
		membership.WithTransport(network.Transport))
	if err != nil {
		fmt.Println(err)
		return
	}
	data, err := ddata.New(node, ddata.Default(), ddata.WithLogger(quiet))
	if err != nil {
		fmt.Println(err)
		return
	}
	topics, err := pubsub.New(data, pubsub.WithLogger(quiet))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() {
		_ = node.Close()         // It never fails.
		_ = topics.AwaitEnd(ctx) // The context never ends.
		_ = data.AwaitEnd(ctx)   // Nor here.
	}()
	if err := node.AwaitUp(ctx); err != nil { // Only members are sent messages.
		fmt.Println(err)
		return
	}

	prices, err := pubsub.NewTopic(topics, "prices", pubsub.JSON[price]{})
	if err != nil {
		fmt.Println(err)
		return
	}
	show := func(who string, s *pubsub.Subscription[price], n int) {
		for range n {
			m, err := s.Next(ctx)
			if err != nil {
				fmt.Println(err)
				return
			}
			fmt.Println(who, m.Value.Share, m.Value.Cents)
		}
	}
	screen, err := prices.Subscribe(ctx, pubsub.WithPolicy(pubsub.DropOldest))
	if err != nil {
		fmt.Println(err)
		return
	}
	var clerks []*pubsub.Subscription[price]
	for range 2 {
		clerk, err := prices.SubscribeGroup(ctx, "clerks")
		if err != nil {
			fmt.Println(err)
			return
		}
		clerks = append(clerks, clerk)
	}
	for i, share := range []string{"ACME", "Umbrella"} {
		if err := prices.Publish(ctx, price{share, 100 + i}); err != nil {
			fmt.Println(err)
			return
		}
	}
	show("screen", screen, 2)
	show("first clerk", clerks[0], 1)
	show("second clerk", clerks[1], 1)
	// Output:
	// screen ACME 100
	// screen Umbrella 101
	// first clerk ACME 100
	// second clerk Umbrella 101
}
