// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package area

import (
	"context"
	"fmt"

	"github.com/quorate/quorate/bench/internal/rig"
	"github.com/quorate/quorate/membership"
)

// startNodes starts a member at each address. Only the first is a seed node, and founds
// the cluster at once; with three seed nodes the first start would wait for the fence.
// The nodes that have started are returned even with an error.
func startNodes(ctx context.Context, addresses []string, opts ...membership.Option) (nodes []*membership.Node, err error) {
	for _, address := range addresses {
		cfg := membership.Default()
		cfg.Cluster.Name, cfg.Node.Address = "bench", address
		cfg.Membership.SeedNodes = addresses[:1]
		n, err := membership.Start(ctx, cfg, append(opts, membership.WithLogger(quiet()))...)
		if err != nil {
			return nodes, err
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// closeNodes ends nodes at once, without leaving.
func closeNodes(nodes []*membership.Node) {
	for _, n := range nodes {
		_ = n.Close() // It returns nil.
	}
}

// addressesFor finds an address for each node, on one IP address or on one per node.
func addressesFor(ctx context.Context, s rig.Spec) (addresses []string, err error) {
	if !s.Apart {
		return rig.FreeAddresses(ctx, s.Nodes)
	}
	for i := range s.Nodes {
		address := fmt.Sprintf("127.0.%d.%d:%d", 1+i/250, 1+i%250, rig.FirstPort)
		if !rig.IsFree(ctx, address) {
			return nil, fmt.Errorf("bench: %s is not free", address)
		}
		addresses = append(addresses, address)
	}
	return addresses, nil
}
