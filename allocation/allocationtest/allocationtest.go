// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package allocationtest

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"testing"

	"github.com/quorate/quorate/allocation"
)

// rounds is how many random requests each part of the suite asks about.
const rounds = 200

// TestStrategy runs the conformance suite. The function create returns a strategy
// that is ready for use; it is called once for each part.
//
//   - Every answer without an error passes the check of its request.
//   - An answer that is pure by its class is the same when asked again.
//   - Requests are not modified.
//   - Rebalancing ends when its moves are carried out and nothing else happens.
//   - Several goroutines may ask at the same time.
//   - A context that has ended leads to an answer or an error, not to a hang.
func TestStrategy(t *testing.T, create func(testing.TB) allocation.Strategy) {
	t.Helper()
	parts := []struct {
		name string
		run  func(testing.TB, allocation.Strategy)
	}{
		{"AllocationsKeepTheContract", allocationsKeepTheContract},
		{"RebalancingKeepsTheContract", rebalancingKeepsTheContract},
		{"RebalancingEnds", rebalancingEnds},
		{"ConcurrentUse", concurrentUse},
		{"EndedContext", endedContext},
	}
	for _, p := range parts {
		t.Run(p.name, func(t *testing.T) { p.run(t, create(t)) })
	}
}

func allocationsKeepTheContract(tb testing.TB, s allocation.Strategy) {
	tb.Helper()
	for seed := range uint64(rounds) {
		r := RandomAllocateRequest(newRand(seed))
		before := fmt.Sprint(r)
		res, err := s.Allocate(tb.Context(), r)
		if now := fmt.Sprint(r); now != before {
			tb.Fatalf("seed %d: the request was modified:\nbefore %s\nafter  %s", seed, before, now)
		}
		if err != nil {
			continue
		}
		if err := allocation.CheckAllocate(&r, &res); err != nil {
			tb.Fatalf("seed %d: %v", seed, err)
		}
		if !allocation.ClassOf(s).Pure {
			continue
		}
		again, err := s.Allocate(tb.Context(), r)
		if err != nil || !reflect.DeepEqual(res, again) {
			tb.Fatalf("seed %d: not pure: first %v, then %v, %v", seed, res, again, err)
		}
	}
}

func rebalancingKeepsTheContract(tb testing.TB, s allocation.Strategy) {
	tb.Helper()
	for seed := range uint64(rounds) {
		r := RandomRebalanceRequest(newRand(seed))
		before := fmt.Sprint(r)
		res, err := s.Rebalance(tb.Context(), r)
		if now := fmt.Sprint(r); now != before {
			tb.Fatalf("seed %d: the request was modified:\nbefore %s\nafter  %s", seed, before, now)
		}
		if err != nil {
			continue
		}
		if err := allocation.CheckRebalance(&r, &res); err != nil {
			tb.Fatalf("seed %d: %v", seed, err)
		}
		if !allocation.ClassOf(s).Pure {
			continue
		}
		again, err := s.Rebalance(tb.Context(), r)
		if err != nil || !reflect.DeepEqual(res, again) {
			tb.Fatalf("seed %d: not pure: first %v, then %v, %v", seed, res, again, err)
		}
	}
}

// rebalancingEnds carries out what the strategy proposes until it proposes
// nothing. Each shard may move a few times over; a strategy that needs more
// would keep entities moving for ever.
func rebalancingEnds(tb testing.TB, s allocation.Strategy) {
	tb.Helper()
	for seed := range uint64(rounds / 10) {
		r := RandomRebalanceRequest(newRand(seed))
		r.Fitness = allocation.Fitness{OneVersion: true, NoneUnreachable: true, NoneJoining: true}
		r.Budget = allocation.Budget{Simultaneous: 10}
		limit := 100
		for i := range r.Regions {
			limit += 3 * len(r.Regions[i].Shards)
		}
		for n := 0; ; n++ {
			res, err := s.Rebalance(tb.Context(), r)
			if err != nil || len(res.Moves) == 0 {
				break
			}
			if err := allocation.CheckRebalance(&r, &res); err != nil {
				tb.Fatalf("seed %d: %v", seed, err)
			}
			if n > limit {
				tb.Fatalf("seed %d: still moving after %d rounds: %v", seed, n, res.Moves)
			}
			r.Regions = Apply(r.Regions, res.Moves)
		}
	}
}

func concurrentUse(tb testing.TB, s allocation.Strategy) {
	tb.Helper()
	// The goroutines belong to this function, which waits for them.
	var group sync.WaitGroup
	for worker := range uint64(4) {
		group.Go(func() {
			for seed := range uint64(rounds / 10) {
				rnd := newRand(worker<<32 | seed)
				a, b := RandomAllocateRequest(rnd), RandomRebalanceRequest(rnd)
				if res, err := s.Allocate(tb.Context(), a); err == nil {
					if err := allocation.CheckAllocate(&a, &res); err != nil {
						tb.Errorf("worker %d, seed %d: %v", worker, seed, err)
					}
				}
				if res, err := s.Rebalance(tb.Context(), b); err == nil {
					if err := allocation.CheckRebalance(&b, &res); err != nil {
						tb.Errorf("worker %d, seed %d: %v", worker, seed, err)
					}
				}
			}
		})
	}
	group.Wait()
}

func endedContext(tb testing.TB, s allocation.Strategy) {
	tb.Helper()
	ctx, cancel := context.WithCancel(tb.Context())
	cancel()
	for seed := range uint64(rounds / 10) {
		a, b := RandomAllocateRequest(newRand(seed)), RandomRebalanceRequest(newRand(seed))
		if res, err := s.Allocate(ctx, a); err == nil {
			if err := allocation.CheckAllocate(&a, &res); err != nil {
				tb.Fatalf("seed %d: %v", seed, err)
			}
		}
		if res, err := s.Rebalance(ctx, b); err == nil {
			if err := allocation.CheckRebalance(&b, &res); err != nil {
				tb.Fatalf("seed %d: %v", seed, err)
			}
		}
	}
}
