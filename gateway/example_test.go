// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/quorate/quorate/gateway"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/transport/memory"
)

// A gateway stands on the sharding of a node. Module cluster does this by the section gateway of a
// file.
func ExampleServe() {
	ctx, quiet := context.Background(), slog.New(slog.DiscardHandler)
	cfg := membership.Default()
	cfg.Cluster.Name, cfg.Node.Address, cfg.Membership.SeedNodes = "shop", "127.0.0.1:7946", []string{"127.0.0.1:7946"}
	node, err := membership.Start(ctx, cfg, membership.WithLogger(quiet), membership.WithTransport(memory.NewNetwork().Transport))
	if err != nil {
		fmt.Println(err)
		return
	}
	system, err := sharding.New(node, sharding.Default(), sharding.WithLogger(quiet))
	if err != nil {
		fmt.Println(err)
		return
	}
	clients := gateway.Default()
	clients.Address, clients.Kinds = "127.0.0.1:0", []string{"accounts"}
	server, err := gateway.Serve(ctx, clients, system, gateway.WithLogger(quiet))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(server.Address() != "", server.Close(), node.Close(), system.AwaitEnd(ctx))
	// Output: true <nil> <nil> <nil>
}
