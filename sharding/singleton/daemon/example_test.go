// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package daemon_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/singleton/daemon"
	network "github.com/quorate/quorate/transport/memory"
)

// Three workers share the nodes of a cluster, which has one node here. A program leaves WithTransport
// out and uses the network, or package cluster, which starts node and sharding from a file.
func ExampleStart() {
	ctx, quiet := context.Background(), slog.New(slog.DiscardHandler)
	cfg := membership.Default()
	cfg.Cluster.Name, cfg.Node.Address = "example", "127.0.0.1:7946"
	cfg.Membership.SeedNodes = []string{"127.0.0.1:7946"}
	node, err := membership.Start(ctx, cfg, membership.WithLogger(quiet), membership.WithTransport(network.NewNetwork().Transport))
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
	var working sync.WaitGroup
	working.Add(3)
	err = daemon.Start(system, daemon.Config{
		Name: "workers", Instances: 3, Log: quiet,
		Run: func(ctx context.Context, number int, _ sharding.Epoch) error {
			fmt.Println("worker", number)
			working.Done()
			<-ctx.Done()
			return nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	working.Wait()
	if err := node.Leave(ctx); err != nil {
		fmt.Println(err)
	}
	fmt.Println(system.AwaitEnd(ctx))
	// Unordered output:
	// worker 0
	// worker 1
	// worker 2
	// <nil>
}
