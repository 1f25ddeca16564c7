// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"

	"github.com/quorate/quorate/allocation"
)

// faultyStrategy is an allocation strategy that places and moves shards at random, which is allowed and makes no sense;
// that leaves shards out, fails, answers what is not allowed, and does not answer. Nobody notices more than that shards
// move.
type faultyStrategy struct {
	mu    sync.Mutex
	rand  *rand.Rand
	asked bool
}

// draw draws a number.
func (s *faultyStrategy) draw(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = true
	return s.rand.IntN(n)
}

// fails draws what goes wrong with a call: nothing, mostly.
func (s *faultyStrategy) fails(ctx context.Context) error {
	switch s.draw(20) {
	case 0:
		<-ctx.Done()
		return ctx.Err()
	case 1:
		return errors.New("it fails")
	default:
		_ = pause(ctx, s.draw(50))
		return nil
	}
}

// eligible are the regions on which shards may be placed; at times the others too.
func (s *faultyStrategy) eligible(all []allocation.RegionState) (ids []allocation.Region) {
	garbage := s.draw(20) == 0
	for i := range all {
		if garbage || all[i].Eligible() {
			ids = append(ids, all[i].ID)
		}
	}
	return ids
}

// Allocate implements the strategy.
func (s *faultyStrategy) Allocate(ctx context.Context, r allocation.AllocateRequest) (res allocation.AllocateResult, err error) {
	if err := s.fails(ctx); err != nil {
		return res, err
	}
	to := s.eligible(r.Regions)
	for _, p := range r.Shards {
		if len(to) > 0 && s.draw(8) > 0 {
			res.Placements = append(res.Placements, allocation.Placement{Shard: p.Shard, Region: to[s.draw(len(to))], Reason: "drawn"})
		}
	}
	if len(res.Placements) < len(r.Shards) {
		res.Reason = "left out"
	}
	return res, nil
}

// Rebalance implements the strategy.
func (s *faultyStrategy) Rebalance(ctx context.Context, r allocation.RebalanceRequest) (res allocation.RebalanceResult, err error) {
	if err := s.fails(ctx); err != nil {
		return res, err
	}
	to, from := s.eligible(r.Regions), &r.Regions[s.draw(len(r.Regions))]
	if len(to) == 0 || len(from.Shards) == 0 || s.draw(2) == 0 {
		return allocation.RebalanceResult{Reason: "not now"}, nil
	}
	move := allocation.Move{Shard: from.Shards[s.draw(len(from.Shards))], From: from.ID, To: to[s.draw(len(to))], Reason: "drawn"}
	return allocation.RebalanceResult{Moves: []allocation.Move{move}}, nil
}
