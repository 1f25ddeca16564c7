// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package locations_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/sharding"
)

// A program has the shards of a kind live where it wants. The strategy "external" of the configuration follows.
func Example() {
	ctx := context.Background()
	probe, err := net.Listen("tcp", "127.0.0.1:0") // A port that is free.
	if err != nil {
		fmt.Println(err)
		return
	}
	cfg := cluster.Default()
	cfg.Cluster.Name, cfg.Node.Address = "example", probe.Addr().String()
	cfg.Membership.SeedNodes = []string{cfg.Node.Address}
	if err := probe.Close(); err != nil {
		fmt.Println(err)
		return
	}
	cfg.Sharding.Allocation.Strategy = allocation.ExternalName
	cfg.Data.Durable = nil // "sharding/locations/*" in production, with a directory.
	node, err := cluster.Start(ctx, cluster.WithConfig(cfg), cluster.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = node.Close() }() // The program ends.
	_, err = sharding.Start(node, sharding.Kind[*wrapperspb.Int64Value]{
		Name: "order", Shards: 20, New: func(*sharding.Context) sharding.Entity[*wrapperspb.Int64Value] { return silent{} },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = node.Locations().Set(ctx, "order", map[allocation.Shard]string{7: "10.0.0.3:7946", 8: "10.0.0.4:7946"})
	if err != nil {
		fmt.Println(err)
		return
	}
	at, err := node.Locations().Get(ctx, "order")
	fmt.Println(at, err)
	// Output: map[7:10.0.0.3:7946 8:10.0.0.4:7946] <nil>
}
