// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package locations

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/cluster/locations/internal/part"
	"github.com/quorate/quorate/ddata"
)

// The strategy "external" of a node: it reads what it needs of the map for each question, from the
// memory of the node if that holds data, and has allocation.External decide.

// Strategy is [allocation.External] with the replicated map. Make one with [Map.Strategy].
type Strategy struct {
	of     *Map
	limits allocation.RebalanceLimits
	begun  atomic.Bool // The first question has been waited for.
}

var _ allocation.Strategy = (*Strategy)(nil)

// readyTimeout is how long the first question waits until this node has taken over what others hold of
// the data, less than the coordinator gives a strategy for its answer.
const readyTimeout = 2 * time.Second

// Strategy returns the strategy that follows the map, or the faults of its configuration. A question
// whose answer needs data that cannot be read in time fails, and then least-shard decides where new
// shards go, and nothing moves.
func (m *Map) Strategy(c allocation.RebalanceLimits) (*Strategy, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("locations: %w", err)
	}
	return &Strategy{of: m, limits: c}, nil
}

// Allocate puts shards at their locations, see [allocation.External.Allocate].
func (s *Strategy) Allocate(ctx context.Context, r allocation.AllocateRequest) (allocation.AllocateResult, error) {
	var shards []allocation.Shard
	for _, p := range r.Shards {
		shards = append(shards, p.Shard)
	}
	e, err := s.external(ctx, r.Kind, shards)
	if err != nil {
		return allocation.AllocateResult{}, err
	}
	return e.Allocate(ctx, r)
}

// Rebalance moves shards to their locations, see [allocation.External.Rebalance].
func (s *Strategy) Rebalance(ctx context.Context, r allocation.RebalanceRequest) (allocation.RebalanceResult, error) {
	var shards []allocation.Shard
	for _, region := range r.Regions {
		shards = append(shards, region.Shards...)
	}
	e, err := s.external(ctx, r.Kind, shards)
	if err != nil {
		return allocation.RebalanceResult{}, err
	}
	return e.Rebalance(ctx, r)
}

// external returns the decisions, with what is known of the locations of shards.
func (s *Strategy) external(ctx context.Context, kind string, shards []allocation.Shard) (*allocation.External, error) {
	if !s.begun.Load() {
		patient, cancel := context.WithTimeout(ctx, readyTimeout)
		defer cancel()
		// If it is not ready by then, what it holds is better than nothing.
		_ = s.of.host.Data().AwaitReady(patient)
		s.begun.Store(true)
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	at, err := s.of.read(ctx, kind, part.Of(shards), ddata.Local())
	if err != nil {
		return nil, err
	}
	return allocation.NewExternal(s.limits, at)
}
