// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"time"

	"github.com/quorate/quorate/bench/internal/harness"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership"
)

// How nodes of this process are started ([startNode], [startNodes], and [memberConfig] for those of
// membership alone), waited for ([until]) and ended, and what memory they hold ([memoryUsageNow]).

// startNode starts a node and waits until it is up. Without seeds it forms a
// cluster.
func startNode(ctx context.Context, seeds []string, change func(*cluster.Config), opts ...cluster.Option) (*cluster.Node, error) {
	address, err := harness.FreeAddress(ctx)
	if err != nil {
		return nil, err
	}
	cfg := cluster.Default()
	of := memberConfig(address, seeds...)
	cfg.Cluster, cfg.Node, cfg.Membership.SeedNodes = of.Cluster, of.Node, of.Membership.SeedNodes
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

// startNodes starts nodes that are all up, the first of which is changed. The function ends those that
// have started, also with an error.
func startNodes(ctx context.Context, count int, change func(*cluster.Config)) (nodes []*cluster.Node, end func(), err error) {
	end = func() {
		for _, n := range nodes {
			dropNode(n)
		}
	}
	var seeds []string
	for range count {
		n, err := startNode(ctx, seeds, change)
		if err != nil {
			return nil, end, err
		}
		nodes = append(nodes, n)
		seeds, change = []string{nodes[0].Self().Address.String()}, nil
	}
	return nodes, end, nil
}

// dropNode ends a node at once: its cluster ends with the run.
func dropNode(node *cluster.Node) { closeMember(node.Membership()) }

// memberConfig is the configuration of a node. Without seeds it forms a cluster.
func memberConfig(address string, seeds ...string) membership.Config {
	cfg := membership.Default()
	cfg.Cluster.Name, cfg.Node.Address, cfg.Membership.SeedNodes = "bench", address, seeds
	if len(seeds) == 0 {
		cfg.Membership.SeedNodes = []string{address}
	}
	return cfg
}

// closeMember ends a node of membership at once, without leaving.
func closeMember(n *membership.Node) { _ = n.Close() } // It returns nil.

// quiet logs only errors.
func quiet() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
}

const (
	pollInterval = 10 * time.Millisecond
	awaitTimeout = 2 * time.Minute // For all nodes to know all others, and for a crash to be known.
	quietTime    = 5 * time.Second // Between the last member and the measurement of a quiet cluster.
)

// until waits until a condition holds, and returns the time since began.
func until(ctx context.Context, began time.Time, nodes []*membership.Node, what string, holds func() bool) (time.Duration, error) {
	_, err := harness.Poll(ctx, pollInterval, func(time.Duration) (bool, error) {
		if holds() {
			return true, nil
		}
		if time.Since(began) > awaitTimeout {
			return false, fmt.Errorf("bench: after %v it is not so that %s: %s", awaitTimeout, what, standOf(nodes))
		}
		for _, n := range nodes {
			if err := n.Err(); err != nil {
				return false, fmt.Errorf("bench: before %s, %v ended: %w", what, n.Self(), err)
			}
		}
		return false, nil
	})
	if err != nil {
		return 0, err
	}
	return time.Since(began), nil
}

// standOf says for people how far nodes have come: how many nodes see how many members of
// each status.
func standOf(nodes []*membership.Node) string {
	views := map[string]int{}
	for _, n := range nodes {
		statuses := map[gossip.Status]int{}
		for _, m := range n.View().State.Members() {
			statuses[m.Status]++
		}
		views[fmt.Sprint(statuses)]++
	}
	return fmt.Sprint(views)
}

// memoryUsage is how many bytes a process holds.
type memoryUsage struct{ heap, stacks float64 }

// memoryUsageNow returns the live heap of this process and its stacks.
func memoryUsageNow() memoryUsage {
	runtime.GC()
	runtime.GC() // Frees what finalizers and pools released in the first.
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return memoryUsage{float64(m.HeapAlloc), float64(m.StackInuse)}
}

// each returns the share of each of n things in what the process holds more than before.
func (f memoryUsage) each(before memoryUsage, n int) memoryUsage {
	return memoryUsage{(f.heap - before.heap) / float64(n), (f.stacks - before.stacks) / float64(n)}
}

// all is the heap and the stacks.
func (f memoryUsage) all() float64 { return f.heap + f.stacks }
