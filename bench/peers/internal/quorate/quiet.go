// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package quorate

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/quorate/quorate/bench/internal/harness"
	"github.com/quorate/quorate/bench/peers/internal/actors"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership"
)

// Members starts nodes of membership alone.
func Members(ctx context.Context, s harness.Spec) (nodes actors.Nodes, err error) {
	addresses, err := harness.FreeAddresses(ctx, s.Nodes)
	if err != nil {
		return nodes, err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	var all []*membership.Node
	nodes.Close = func() {
		for _, n := range all {
			_ = n.Close() // It returns nil.
		}
	}
	for _, address := range addresses {
		cfg := membership.Default()
		cfg.Cluster.Name, cfg.Node.Address, cfg.Membership.SeedNodes = "peers", address, addresses[:1]
		n, err := membership.Start(ctx, cfg, membership.WithLogger(log))
		if err != nil {
			return nodes, err
		}
		all = append(all, n)
	}
	before, err := harness.SocketsNow()
	if err != nil {
		return nodes, err
	}
	nodes.Sent = func() (uint64, error) {
		now, err := harness.SocketsNow()
		return now.Since(before).Bytes, err
	}
	_, err = harness.Poll(ctx, 10*time.Millisecond, func(waited time.Duration) (bool, error) {
		if waited > actors.KnownWithin {
			return false, fmt.Errorf("bench: after %v the nodes do not know each other", waited)
		}
		return known(all), nil
	})
	return nodes, err
}

// known reports whether all nodes see all as up.
func known(nodes []*membership.Node) bool {
	for _, n := range nodes {
		members := n.View().State.Members()
		if len(members) != len(nodes) {
			return false
		}
		for _, m := range members {
			if m.Status < gossip.Up || m.Status > gossip.Ready {
				return false
			}
		}
	}
	return true
}
