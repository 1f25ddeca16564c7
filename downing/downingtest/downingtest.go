// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package downingtest

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"testing"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
)

// rounds is how many random views each part of the suite asks about.
const rounds = 500

// TestProvider runs the conformance suite. The function create returns a
// provider that is ready for use; it is called once for each part.
//
//   - Every decision without an error passes [downing.Check] with the class of
//     the provider, which does not change.
//   - Views are not modified.
//   - A pure provider decides the same when asked again, whichever node of the
//     side asks, and for how long the view has been stable.
//   - Of two sides of one cluster, a majority-only provider keeps at most one.
//   - Several goroutines may ask at the same time.
//   - A context that has ended leads to a decision or an error, not to a hang.
func TestProvider(t *testing.T, create func(testing.TB) downing.Provider) {
	t.Helper()
	parts := []struct {
		name string
		run  func(testing.TB, downing.Provider)
	}{
		{"DecisionsKeepTheContract", decisionsKeepTheContract},
		{"PureProvidersDecideAlike", pureProvidersDecideAlike},
		{"AtMostOneSideSurvives", atMostOneSideSurvives},
		{"ConcurrentUse", concurrentUse},
		{"EndedContext", endedContext},
	}
	for _, p := range parts {
		t.Run(p.name, func(t *testing.T) { p.run(t, create(t)) })
	}
}

func decisionsKeepTheContract(tb testing.TB, p downing.Provider) {
	tb.Helper()
	class := p.Class()
	for seed := range uint64(rounds) {
		v := RandomView(newRand(seed))
		before := describe(v)
		d, err := p.Decide(tb.Context(), v)
		if now := describe(v); now != before {
			tb.Fatalf("seed %d: the view was modified:\nbefore %s\nafter  %s", seed, before, now)
		}
		if err != nil {
			continue
		}
		if err := downing.Check(v, class, d); err != nil {
			tb.Fatalf("seed %d: %v\nview %s\ndecision %v", seed, err, before, d)
		}
	}
	if p.Class() != class {
		tb.Fatalf("the class changed from %v to %v", class, p.Class())
	}
}

// describe prints a view with the members that it points to.
func describe(v downing.View) string {
	members := make([]gossip.Member, len(v.Members))
	for i, m := range v.Members {
		members[i] = *m
	}
	return fmt.Sprint(v.Self, members, v.Unreachable, v.Seen, v.Base, v.Stable, v.Unstable)
}

func pureProvidersDecideAlike(tb testing.TB, p downing.Provider) {
	tb.Helper()
	if !p.Class().Pure {
		return
	}
	for seed := range uint64(rounds) {
		v := RandomView(newRand(seed))
		first, err := p.Decide(tb.Context(), v)
		if err != nil {
			continue
		}
		for _, m := range v.Members {
			if m.Status == gossip.Down {
				continue
			}
			other := v
			other.Self, other.Stable, other.Unstable = m.Node, v.Stable+1, v.Unstable*2
			d, err := p.Decide(tb.Context(), other)
			if err != nil || !reflect.DeepEqual(first, d) {
				tb.Fatalf("seed %d: %v decides %v, but %v decides %v, %v", seed, v.Self, first, m.Node, d, err)
			}
		}
	}
}

// atMostOneSideSurvives splits clusters and lets each side decide.
func atMostOneSideSurvives(tb testing.TB, p downing.Provider) {
	tb.Helper()
	if !p.Class().MajorityOnly {
		return
	}
	for seed := range uint64(rounds) {
		survivors := 0
		sides := RandomSplit(newRand(seed))
		for _, v := range sides {
			d, err := p.Decide(tb.Context(), v)
			if err == nil && Survives(v, d) {
				survivors++
			}
		}
		if survivors > 1 {
			tb.Fatalf("seed %d: %d of %d sides survive", seed, survivors, len(sides))
		}
	}
}

func concurrentUse(tb testing.TB, p downing.Provider) {
	tb.Helper()
	// The goroutines belong to this function, which waits for them.
	var group sync.WaitGroup
	for worker := range uint64(4) {
		group.Go(func() {
			for seed := range uint64(rounds / 10) {
				v := RandomView(newRand(worker<<32 | seed))
				d, err := p.Decide(tb.Context(), v)
				if err != nil {
					continue
				}
				if err := downing.Check(v, p.Class(), d); err != nil {
					tb.Errorf("worker %d, seed %d: %v", worker, seed, err)
				}
			}
		})
	}
	group.Wait()
}

func endedContext(tb testing.TB, p downing.Provider) {
	tb.Helper()
	ctx, cancel := context.WithCancel(tb.Context())
	cancel()
	for seed := range uint64(rounds / 10) {
		v := RandomView(newRand(seed))
		d, err := p.Decide(ctx, v)
		if err != nil {
			continue
		}
		if err := downing.Check(v, p.Class(), d); err != nil {
			tb.Fatalf("seed %d: %v", seed, err)
		}
	}
}
