// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package area

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"github.com/quorate/quorate/bench/internal/rig"
	"github.com/quorate/quorate/cluster"
)

// Starts the nodes that benchmarks use, with and without telemetry, and waits
// for conditions on them.

// startNode starts a node and waits until it is up. Without seeds it forms a
// cluster.
func startNode(ctx context.Context, seeds []string, change func(*cluster.Config), opts ...cluster.Option) (*cluster.Node, error) {
	address, err := rig.FreeAddress(ctx)
	if err != nil {
		return nil, err
	}
	cfg := cluster.Default()
	cfg.Cluster.Name, cfg.Node.Address, cfg.Membership.SeedNodes = "bench", address, seeds
	if len(seeds) == 0 {
		cfg.Membership.SeedNodes = []string{address}
	}
	if change != nil {
		change(&cfg)
	}
	node, err := cluster.Start(ctx, append(opts, cluster.WithConfig(cfg), cluster.WithLogger(quiet()))...)
	if err != nil {
		return nil, err
	}
	if err := node.AwaitUp(ctx); err != nil {
		return nil, errors.Join(err, node.Close())
	}
	return node, nil
}

// dropNode ends a node at once: its cluster ends with the run.
func dropNode(node *cluster.Node) { _ = node.Membership().Close() } // It returns nil.

// quiet logs only warnings and errors.
func quiet() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
}
