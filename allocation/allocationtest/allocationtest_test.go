// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package allocationtest

import (
	"context"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/quorate/quorate/allocation"
)

// witness is a testing.TB that remembers a failure instead of reporting it.
type witness struct {
	testing.TB
	failed atomic.Bool
}

func (w *witness) Helper() {}

func (w *witness) Errorf(string, ...any) { w.failed.Store(true) }

func (w *witness) Fatal(...any) {
	w.failed.Store(true)
	runtime.Goexit()
}

func (w *witness) Fatalf(string, ...any) {
	w.failed.Store(true)
	runtime.Goexit()
}

// fails reports whether a part of the suite fails the strategy.
func fails(t *testing.T, part func(testing.TB, allocation.Strategy), s allocation.Strategy) bool {
	t.Helper()
	w := &witness{TB: t}
	done := make(chan struct{})
	// The goroutine ends with the part, or with its Goexit; this function waits.
	go func() {
		defer close(done)
		part(w, s)
	}()
	<-done
	return w.failed.Load()
}

// spoilt is least-shard with answers and requests that are tampered with.
type spoilt struct {
	*allocation.LeastShard
	allocate  func(*allocation.AllocateRequest, *allocation.AllocateResult)
	rebalance func(*allocation.RebalanceRequest, *allocation.RebalanceResult)
}

func (s *spoilt) Allocate(ctx context.Context, r allocation.AllocateRequest) (allocation.AllocateResult, error) {
	res, err := s.LeastShard.Allocate(ctx, r)
	if s.allocate != nil {
		s.allocate(&r, &res)
	}
	return res, err
}

func (s *spoilt) Rebalance(ctx context.Context, r allocation.RebalanceRequest) (allocation.RebalanceResult, error) {
	res, err := s.LeastShard.Rebalance(ctx, r)
	if s.rebalance != nil {
		s.rebalance(&r, &res)
	}
	return res, err
}

// A suite that passes everything proves nothing: each part must find its fault.
func TestSuiteFindsFaults(t *testing.T) {
	least, err := allocation.NewLeastShard(allocation.Default().LeastShard)
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	foreign := func(_ *allocation.AllocateRequest, res *allocation.AllocateResult) {
		for i := range res.Placements {
			res.Placements[i].Region = "elsewhere"
		}
	}
	standing := func(_ *allocation.RebalanceRequest, res *allocation.RebalanceResult) {
		for i := range res.Moves {
			res.Moves[i].To = res.Moves[i].From
		}
	}
	tests := []struct {
		name string
		part func(testing.TB, allocation.Strategy)
		s    *spoilt
	}{
		{"foreign region", allocationsKeepTheContract, &spoilt{allocate: foreign}},
		{"moves nowhere", rebalancingKeepsTheContract, &spoilt{rebalance: standing}},
		{"modified request", allocationsKeepTheContract, &spoilt{allocate: func(r *allocation.AllocateRequest, _ *allocation.AllocateResult) {
			slices.Reverse(r.Shards)
		}}},
		{"modified budget", rebalancingKeepsTheContract, &spoilt{rebalance: func(r *allocation.RebalanceRequest, _ *allocation.RebalanceResult) {
			if len(r.Regions) > 0 {
				r.Regions[0].Load++
			}
		}}},
		{"not pure in allocating", allocationsKeepTheContract, &spoilt{allocate: func(_ *allocation.AllocateRequest, res *allocation.AllocateResult) {
			calls++
			if len(res.Placements) > 0 {
				res.Placements = res.Placements[calls%2:]
			}
		}}},
		{"not pure in moving", rebalancingKeepsTheContract, &spoilt{rebalance: func(_ *allocation.RebalanceRequest, res *allocation.RebalanceResult) {
			calls++
			if len(res.Moves) > 0 {
				res.Moves = res.Moves[calls%2:]
			}
		}}},
		{"unexplained", allocationsKeepTheContract, &spoilt{allocate: func(_ *allocation.AllocateRequest, res *allocation.AllocateResult) {
			*res = allocation.AllocateResult{}
		}}},
		{"wrong about many", greatRequests, &spoilt{allocate: func(r *allocation.AllocateRequest, res *allocation.AllocateResult) {
			if len(r.Shards) > 9000 {
				foreign(r, res)
			}
		}}},
		{"remembers what it was asked", func(tb testing.TB, s allocation.Strategy) {
			tb.Helper()
			instancesAnswerAlike(tb, s, least)
		}, &spoilt{allocate: func(_ *allocation.AllocateRequest, res *allocation.AllocateResult) {
			calls++
			res.Reason += strconv.Itoa(calls)
		}}},
		{"never at rest", rebalancingEnds, &spoilt{rebalance: restless}},
		{"wrong when asked at the same time", concurrentUse, &spoilt{allocate: foreign}},
		{"wrong when told to stop", endedContext, &spoilt{allocate: foreign}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.s.LeastShard = least
			if !fails(t, test.part, test.s) {
				t.Fatal("the fault was not found")
			}
		})
	}
}

// restless adds a move of some shard in every round.
func restless(r *allocation.RebalanceRequest, res *allocation.RebalanceResult) {
	res.Moves = nil
	for i := range r.Regions {
		for j := range r.Regions {
			from, to := &r.Regions[i], &r.Regions[j]
			if i != j && from.Eligible() && to.Eligible() && len(from.Shards) > 0 {
				res.Moves = []allocation.Move{{Shard: from.Shards[0], From: from.ID, To: to.ID}}
				return
			}
		}
	}
}
