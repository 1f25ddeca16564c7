// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"context"
	"fmt"
	"log/slog"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/transport/memory"
)

// visits counts the visits of one page. The id of the entity names the page.
type visits struct{ count int64 }

// Receive adds to the count and replies with the sum.
func (v *visits) Receive(c *sharding.Context, more *wrapperspb.Int64Value) error {
	v.count += more.GetValue()
	return c.Reply(wrapperspb.Int64(v.count))
}

// A cluster of one node has entities that count visits. A program leaves WithTransport out
// and uses the network; the transport in memory needs none.
func Example() {
	ctx, quiet := context.Background(), slog.New(slog.DiscardHandler)
	network := memory.NewNetwork()
	cfg := membership.Default()
	cfg.Cluster.Name, cfg.Node.Address = "example", "127.0.0.1:7946"
	cfg.Membership.SeedNodes = []string{"127.0.0.1:7946"}
	node, err := membership.Start(ctx, cfg, membership.WithLogger(quiet), membership.WithTransport(network.Transport))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = node.Close() }()
	system, err := sharding.New(node, sharding.Default(), sharding.WithLogger(quiet))
	if err != nil {
		fmt.Println(err)
		return
	}
	pages, err := sharding.Start(system, sharding.Kind[*wrapperspb.Int64Value]{
		Name: "page", New: func(*sharding.Context) sharding.Entity[*wrapperspb.Int64Value] { return new(visits) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := pages.Tell(ctx, "/start", wrapperspb.Int64(2)); err != nil {
		fmt.Println(err)
	}
	sum, err := sharding.Ask[*wrapperspb.Int64Value](ctx, pages, "/start", wrapperspb.Int64(1))
	fmt.Println(sum.GetValue(), err)
	if err := node.Leave(ctx); err != nil {
		fmt.Println(err)
	}
	fmt.Println(system.AwaitEnd(ctx))
	// Output:
	// 3 <nil>
	// <nil>
}
