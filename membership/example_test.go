// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/transport/memory"
)

// A cluster of two nodes in one process. Real nodes leave the transport away and live
// on machines of their own.
func ExampleStart() {
	ctx := context.Background()
	network := memory.NewNetwork()
	start := func(address string) (*membership.Node, error) {
		cfg := membership.Default()
		cfg.Cluster.Name, cfg.Node.Address = "bank", address
		cfg.Membership.SeedNodes = []string{"10.0.0.1:7946"}
		node, err := membership.Start(ctx, cfg, membership.WithLogger(slog.New(slog.DiscardHandler)),
			membership.WithTransport(network.Transport))
		if err != nil {
			return nil, err
		}
		return node, node.AwaitUp(ctx)
	}
	for _, address := range []string{"10.0.0.1:7946", "10.0.0.2:7946"} {
		node, err := start(address)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer func() { _ = node.Close() }()
		fmt.Println(node.Self().Address, "is a member:", node.IsMember(node.Self()))
	}
	// Output:
	// 10.0.0.1:7946 is a member: true
	// 10.0.0.2:7946 is a member: true
}
