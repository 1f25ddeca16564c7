// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package singleton_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/singleton"
	network "github.com/quorate/quorate/transport/memory"
)

// A job is done once in the cluster, every minute. A program leaves WithTransport out and uses the
// network, or package cluster, which starts node and sharding from a file.
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
	done := make(chan struct{})
	err = singleton.Start(system, singleton.Config{
		Name: "cleanup", Log: quiet,
		Run: singleton.Every(time.Minute, func(context.Context, sharding.Epoch) error {
			close(done)
			return nil
		}),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	<-done
	fmt.Println("cleaned up")
	if err := node.Leave(ctx); err != nil {
		fmt.Println(err)
	}
	fmt.Println(system.AwaitEnd(ctx))
	// Output:
	// cleaned up
	// <nil>
}
