// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/membership"
)

// measureBoot starts many real nodes in this process in one moment, over real
// sockets, and says how long it takes until all are up everywhere and what that
// cost: processor time, messages by kind, bytes, connections, refusals.
func measureBoot(ctx context.Context, s spec, _ *link) (outcome, error) {
	addresses, err := addressesFor(ctx, s)
	if err != nil {
		return outcome{}, err
	}
	var seen kinds
	used, began := cpuTime(), time.Now()
	nodes, err := startNodes(ctx, addresses, membership.WithTransport(seen.transport))
	defer closeNodes(nodes)
	if err != nil {
		return outcome{}, err
	}
	up, err := until(ctx, began, nodes, "all members are up everywhere", func() bool { return allUp(nodes) })
	if err != nil {
		return outcome{}, err
	}
	each := float64(len(nodes))
	values := map[string]float64{"up": up.Seconds(), "cpu": microseconds(cpuTime()-used) / 1000 / each}
	for _, n := range nodes {
		stats := n.Stats()
		values["messages"] += float64(stats.Transport.Sent) / each
		values["bytes"] += float64(stats.Transport.BytesSent) / 1000 / each
		values["connects"] += float64(stats.Transport.Connects) / each
		for _, refused := range stats.Transport.RefusedInbound {
			values["refused"] += float64(refused)
		}
	}
	return outcome{Values: values, CPU: 1000 * values["cpu"], Note: fmt.Sprintf("%d nodes: %s", len(nodes), seen.String())}, nil
}

// startNodes starts a member at each address, the first being the seed node, which
// founds the cluster at once. With three of them the first start waits for the fence.
// What has started is returned even when one has not.
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

// closeNodes ends nodes without a word.
func closeNodes(nodes []*membership.Node) {
	for _, n := range nodes {
		_ = n.Close() // It returns nil.
	}
}

// addressesFor finds an address for each node, on one IP address or on one each.
func addressesFor(ctx context.Context, s spec) (addresses []string, err error) {
	if !s.Apart {
		return freeAddresses(ctx, s.Nodes)
	}
	for i := range s.Nodes {
		address := fmt.Sprintf("127.0.%d.%d:%d", 1+i/250, 1+i%250, firstPort)
		if !isFree(ctx, address) {
			return nil, fmt.Errorf("bench: %s is not free", address)
		}
		addresses = append(addresses, address)
	}
	return addresses, nil
}
