// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/cluster/locations"
)

// The allocation strategy "external" follows the replicated map of locations. Sharding starts before the
// replicated data, so that its strategy waits for that ([following]); the routes and what an
// explanation says of locations are in locations_route.go.

// allocationNames are the names of the allocation strategies that need no plugin.
func allocationNames() []string {
	all := append(allocation.BuiltIns(), allocation.ExternalName)
	slices.Sort(all)
	return all
}

// externalStrategy is the strategy "external" of a node whose replicated data may not have started.
type externalStrategy struct {
	node     *Node
	strategy *locations.Strategy
}

var _ allocation.Strategy = (*externalStrategy)(nil)

// follow returns the strategy "external".
func follow(n *Node, c allocation.RebalanceLimits) (allocation.Strategy, error) {
	s, err := n.Locations().Strategy(c)
	if err != nil {
		return nil, err
	}
	return &externalStrategy{n, s}, nil
}

// Allocate puts shards at their locations.
func (f *externalStrategy) Allocate(ctx context.Context, r allocation.AllocateRequest) (allocation.AllocateResult, error) {
	if err := f.await(ctx); err != nil {
		return allocation.AllocateResult{}, err
	}
	return f.strategy.Allocate(ctx, r)
}

// Rebalance moves shards to their locations.
func (f *externalStrategy) Rebalance(ctx context.Context, r allocation.RebalanceRequest) (allocation.RebalanceResult, error) {
	if err := f.await(ctx); err != nil {
		return allocation.RebalanceResult{}, err
	}
	return f.strategy.Rebalance(ctx, r)
}

// await waits until the replicated data of the node has started.
func (f *externalStrategy) await(ctx context.Context) error {
	select {
	case <-f.node.dataStarted:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("cluster: the replicated data of the node has not started: %w", context.Cause(ctx))
	}
}

// forgetful returns why locations that a configuration follows would be lost with the last node, "" if they
// would not.
func (c Config) forgetful() string {
	if c.Sharding.Allocation.Strategy != allocation.ExternalName || c.Data.IsDurable(locations.Prefix+"0/kind") {
		return ""
	}
	return fmt.Sprintf("external follows locations that are kept in memory, and are gone when all nodes have stopped: "+
		"add %q to ddata.durable, on all nodes, or set them again after each start of the cluster", locations.Prefix+"*")
}

// warnOfLocations logs what the configuration of locations does not keep.
func warnOfLocations(log *slog.Logger, c Config) {
	if why := c.forgetful(); why != "" {
		log.Warn("locations of shards do not outlive the cluster", "reason", why)
	}
}

var _ locations.Host = (*Node)(nil)
