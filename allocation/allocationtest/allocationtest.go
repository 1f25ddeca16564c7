// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package allocationtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/internal/patience"
)

// The suite: TestStrategy runs its parts, most on random requests drawn by seed
// (requests.go). Each answer without an error must pass the check of its request. At
// the end, large requests, concurrent use, and contexts that end.

// rounds is how many random requests each part of the suite uses.
const rounds = 200

// TestStrategy runs the conformance suite. The function create returns a strategy
// that is ready for use; it is called once for each part.
//
//   - Every answer without an error passes the check of its request.
//   - An answer that is pure by its class is the same when asked again.
//   - Requests are not modified.
//   - Two instances of a pure strategy answer the same, whatever each has been asked
//     before.
//   - A shard that is left out is explained.
//   - Rebalancing ends when its moves are carried out and nothing else happens.
//   - Ten thousand shards on a hundred regions are answered within [Limit].
//   - Several goroutines may ask at the same time.
//   - A context that has ended, or ends meanwhile, leads to an answer or an error
//     within [Limit], not to a hang.
func TestStrategy(t *testing.T, create func(testing.TB) allocation.Strategy) {
	t.Helper()
	parts := []struct {
		name string
		run  func(testing.TB, allocation.Strategy)
	}{
		{"AllocationsKeepTheContract", allocationsKeepTheContract},
		{"RebalancingKeepsTheContract", rebalancingKeepsTheContract},
		{"RebalancingEnds", rebalancingEnds},
		{"GreatRequests", greatRequests},
		{"ConcurrentUse", concurrentUse},
		{"EndedContext", endedContext},
	}
	for _, p := range parts {
		t.Run(p.name, func(t *testing.T) { p.run(t, create(t)) })
	}
	t.Run("InstancesAnswerAlike", func(t *testing.T) { instancesAnswerAlike(t, create(t), create(t)) })
}

// Limit is how long a caller waits for an answer. Time in which the process of the test did not run, since its
// machine had other work, does not count.
const Limit = 5 * time.Second

// within returns the results of a call, and fails the test if it takes longer than
// Limit.
func within[R any](tb testing.TB, call func() (R, error)) (R, error) {
	tb.Helper()
	type answer struct {
		res R
		err error
	}
	answered := make(chan answer, 1)
	// The goroutine ends with the call. If it hangs for ever, the test has failed.
	go func() {
		res, err := call()
		answered <- answer{res, err}
	}()
	watch := patience.Start(tb)
	a := patience.Receive(tb, answered, "an answer")
	if took := watch.Elapsed(); took > Limit {
		tb.Fatalf("the answer took %v, more than %v", took, Limit)
	}
	return a.res, a.err
}

func allocationsKeepTheContract(tb testing.TB, s allocation.Strategy) {
	tb.Helper()
	keepsTheContract(tb, s, RandomAllocateRequest, s.Allocate, func(r *allocation.AllocateRequest, res *allocation.AllocateResult) error {
		if err := allocation.CheckAllocate(r, res); err != nil {
			return err
		}
		if len(res.Placements) < len(r.Shards) && res.Reason == "" {
			return fmt.Errorf("%d of %d shards are placed, and nothing says why", len(res.Placements), len(r.Shards))
		}
		return nil
	})
}

func rebalancingKeepsTheContract(tb testing.TB, s allocation.Strategy) {
	tb.Helper()
	keepsTheContract(tb, s, RandomRebalanceRequest, s.Rebalance, allocation.CheckRebalance)
}

// keepsTheContract asks a strategy with random requests of one type. The request stays as
// it was, an answer passes the check, and one that is pure is the same when asked again.
func keepsTheContract[Req, Res any](tb testing.TB, s allocation.Strategy, draw func(*rand.Rand) Req,
	ask func(context.Context, Req) (Res, error), check func(*Req, *Res) error,
) {
	tb.Helper()
	for seed := range uint64(rounds) {
		r := draw(newRand(seed))
		before := fmt.Sprint(r)
		res, err := ask(tb.Context(), r)
		if now := fmt.Sprint(r); now != before {
			tb.Fatalf("seed %d: the request was modified:\nbefore %s\nafter  %s", seed, before, now)
		}
		if err != nil {
			continue
		}
		if err := check(&r, &res); err != nil {
			tb.Fatalf("seed %d: %v", seed, err)
		}
		if !allocation.ClassOf(s).Pure {
			continue
		}
		again, err := ask(tb.Context(), r)
		if err != nil || !reflect.DeepEqual(res, again) {
			tb.Fatalf("seed %d: not pure: first %v, then %v, %v", seed, res, again, err)
		}
	}
}

// rebalancingEnds carries out the proposed moves until the strategy proposes none.
// Each shard may move a few times; a strategy that needs more would keep entities
// moving for ever.
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

// instancesAnswerAlike gives the same requests to two instances of a pure strategy in
// opposite orders.
func instancesAnswerAlike(tb testing.TB, s, other allocation.Strategy) {
	tb.Helper()
	if allocation.ClassOf(s) != allocation.ClassOf(other) {
		tb.Fatalf("one instance has class %v, another %v", allocation.ClassOf(s), allocation.ClassOf(other))
	}
	if !allocation.ClassOf(s).Pure {
		return
	}
	const n = rounds / 5
	type answers struct {
		a allocation.AllocateResult
		b allocation.RebalanceResult
	}
	ask := func(s allocation.Strategy, seed uint64) (answers, bool) {
		a, err := s.Allocate(tb.Context(), RandomAllocateRequest(newRand(seed)))
		b, err2 := s.Rebalance(tb.Context(), RandomRebalanceRequest(newRand(seed)))
		return answers{a, b}, err == nil && err2 == nil
	}
	var first [n]answers
	var ok [n]bool
	for seed := range uint64(n) {
		first[seed], ok[seed] = ask(s, seed)
	}
	for seed := range uint64(n) {
		seed = n - 1 - seed
		second, answered := ask(other, seed)
		if ok[seed] && answered && !reflect.DeepEqual(first[seed], second) {
			tb.Fatalf("seed %d: one instance answers %v, another %v", seed, first[seed], second)
		}
	}
}

// greatRequests has ten thousand shards on a hundred regions allocated and rebalanced.
func greatRequests(tb testing.TB, s allocation.Strategy) {
	tb.Helper()
	const regions, shards = 100, 10_000
	var a allocation.AllocateRequest
	for i := range regions {
		a.Regions = append(a.Regions, allocation.RegionState{
			ID: allocation.Region(fmt.Sprintf("10.0.0.%03d:7946#1", i)), Zone: fmt.Sprintf("zone-%d", i%3),
		})
	}
	for i := range allocation.Shard(shards) {
		a.Shards = append(a.Shards, allocation.Pending{Shard: i})
	}
	placed, err := within(tb, func() (allocation.AllocateResult, error) { return s.Allocate(tb.Context(), a) })
	if err == nil {
		err = allocation.CheckAllocate(&a, &placed)
	}
	if err != nil {
		tb.Fatalf("allocating: %v", err)
	}
	b := allocation.RebalanceRequest{
		Regions: slices.Clone(a.Regions), Fitness: allocation.Fitness{OneVersion: true, NoneUnreachable: true, NoneJoining: true},
		Budget: allocation.Budget{Simultaneous: 100},
	}
	for i := range allocation.Shard(shards) {
		r := &b.Regions[i%(regions/2)]
		r.Shards = append(r.Shards, i)
	}
	moved, err := within(tb, func() (allocation.RebalanceResult, error) { return s.Rebalance(tb.Context(), b) })
	if err == nil {
		err = allocation.CheckRebalance(&b, &moved)
	}
	if err != nil {
		tb.Fatalf("rebalancing: %v", err)
	}
}

func endedContext(tb testing.TB, s allocation.Strategy) {
	tb.Helper()
	ended, cancel := context.WithCancel(tb.Context())
	cancel()
	for seed := range uint64(rounds / 10) {
		a, b := RandomAllocateRequest(newRand(seed)), RandomRebalanceRequest(newRand(seed))
		for _, ctx := range []context.Context{ended, patience.Expiring(tb, time.Duration(seed)*time.Millisecond/10)} {
			placed, err := within(tb, func() (allocation.AllocateResult, error) { return s.Allocate(ctx, a) })
			if err == nil {
				err = allocation.CheckAllocate(&a, &placed)
				failIf(tb, seed, err)
			}
			moved, err := within(tb, func() (allocation.RebalanceResult, error) { return s.Rebalance(ctx, b) })
			if err == nil {
				err = allocation.CheckRebalance(&b, &moved)
				failIf(tb, seed, err)
			}
		}
	}
}

func failIf(tb testing.TB, seed uint64, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatalf("seed %d: %v", seed, err)
	}
}
