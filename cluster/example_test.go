// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/sharding"
)

// A cluster of one node, and an entity on it. Further nodes name the first one
// among their seed nodes.
func ExampleStart() {
	probe, err := net.Listen("tcp", "127.0.0.1:0") // The example takes any free port; a real node has a fixed one.
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = probe.Close()
	cfg := cluster.Default()
	cfg.Cluster.Name, cfg.Node.Address = "example", probe.Addr().String()
	cfg.Membership.SeedNodes = []string{cfg.Node.Address}
	node, err := cluster.Start(context.Background(), cluster.WithConfig(cfg), cluster.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = node.Close() }()
	counters, err := sharding.Start(node, sharding.Kind[*wrapperspb.Int64Value]{
		Name: "counter", New: func(*sharding.Context) sharding.Entity[*wrapperspb.Int64Value] { return new(counter) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	sum, err := sharding.Ask[*wrapperspb.Int64Value](context.Background(), counters, "visits", wrapperspb.Int64(2))
	fmt.Println(sum.GetValue(), err)
	// Output: 2 <nil>
}
