// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package downingtest

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/internal/patience"
)

// The suite: TestProvider runs its parts, each on random views drawn by seed
// (views.go); TestSplits lets the sides of random splits decide. At the end, views of
// a thousand members, concurrent use, and contexts that end.

// rounds is how many random views each part of the suite uses.
const rounds = 500

// TestProvider runs the conformance suite. The function create returns a
// provider that is ready for use; it is called once for each part.
//
//   - Every decision without an error passes [downing.Check] with the class of
//     the provider, which does not change.
//   - Views are not modified.
//   - A pure provider decides the same when asked again, whichever node of the
//     side asks, for how long the view has been stable, and in whatever order the complaints
//     came. Members and what else is sorted by contract come in their order.
//   - So do two instances of it, whatever each has been asked before.
//   - Of the sides of one cluster, split for an hour, a majority-only provider keeps
//     at most one; for others there is [TestSplits].
//   - Nobody is downed when nobody complains, and whoever is downed is told why.
//   - A view of a thousand members is decided within [Limit].
//   - Several goroutines may ask at the same time.
//   - A context that has ended, or ends meanwhile, leads to a decision or an error
//     within [Limit], not to a hang.
func TestProvider(t *testing.T, create func(testing.TB) downing.Provider) {
	t.Helper()
	parts := []struct {
		name string
		run  func(testing.TB, downing.Provider)
	}{
		{"DecisionsKeepTheContract", decisionsKeepTheContract},
		{"PureProvidersDecideAlike", pureProvidersDecideAlike},
		{"AtMostOneSideSurvives", atMostOneSideSurvives},
		{"NobodyComplains", nobodyComplains},
		{"GreatViews", greatViews},
		{"ConcurrentUse", concurrentUse},
		{"EndedContext", endedContext},
	}
	for _, p := range parts {
		t.Run(p.name, func(t *testing.T) { p.run(t, create(t)) })
	}
	t.Run("InstancesDecideAlike", func(t *testing.T) { instancesDecideAlike(t, create(t), create(t)) })
}

// TestSplits splits clusters and lets each side decide, whatever the class of the
// provider: at most one side survives. It is for providers that are not
// majority-only but ask an arbiter outside. The function create is called once for
// each split, and returns a provider with an arbiter that knows nothing yet; all
// sides ask it, in an order that varies.
func TestSplits(t *testing.T, create func(testing.TB) downing.Provider) {
	t.Helper()
	for seed := range uint64(rounds) {
		splitSurvivors(t, seed, create(t))
	}
}

// Limit is how long a caller waits for a decision. Time in which the process of the test did not run, since its
// machine had other work, does not count.
const Limit = 5 * time.Second

// within returns the decision of a provider, and fails the test if it takes longer
// than Limit.
func within(ctx context.Context, tb testing.TB, p downing.Provider, v downing.View) (downing.Decision, error) {
	tb.Helper()
	type answer struct {
		d   downing.Decision
		err error
	}
	answered := make(chan answer, 1)
	// The goroutine ends with the call. If it hangs for ever, the test has failed.
	go func() {
		d, err := p.Decide(ctx, v)
		answered <- answer{d, err}
	}()
	watch := patience.Start(tb)
	a := patience.Receive(tb, answered, "a decision")
	if took := watch.Elapsed(); took > Limit {
		tb.Fatalf("the decision took %v, more than %v", took, Limit)
	}
	return a.d, a.err
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
		if len(d.Down) > 0 && d.Reason == "" {
			tb.Fatalf("seed %d: members are downed without a reason: %v", seed, d)
		}
	}
	if p.Class() != class {
		tb.Fatalf("the class changed from %v to %v", class, p.Class())
	}
}

// describe prints a view, with the members to which it points.
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
		rnd := newRand(seed)
		v := RandomView(rnd)
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
			other.Unreachable = slices.Clone(v.Unreachable)
			rnd.Shuffle(len(other.Unreachable), func(i, j int) {
				other.Unreachable[i], other.Unreachable[j] = other.Unreachable[j], other.Unreachable[i]
			})
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
		splitSurvivors(tb, seed, p)
	}
}

// splitSurvivors lets the sides of one split decide, and fails the test if two
// survive. The views say that the split has lasted an hour, so that a provider that
// waits has waited. A side that is told to wait on, although members are lost, does not
// survive by that: it stops its work.
func splitSurvivors(tb testing.TB, seed uint64, p downing.Provider) {
	tb.Helper()
	rnd := newRand(seed)
	sides := RandomSplit(rnd)
	rnd.Shuffle(len(sides), func(i, j int) { sides[i], sides[j] = sides[j], sides[i] })
	survivors := 0
	for _, v := range sides {
		v.Stable, v.Unstable = time.Hour, time.Hour
		d, err := p.Decide(tb.Context(), v)
		if err == nil && Survives(v, d) && (d.Verdict == downing.KeepSide || len(v.Side().Lost()) == 0) {
			survivors++
		}
	}
	if survivors > 1 {
		tb.Fatalf("seed %d: %d of %d sides survive", seed, survivors, len(sides))
	}
}

// instancesDecideAlike gives the same views to two instances of a pure provider in
// opposite orders.
func instancesDecideAlike(tb testing.TB, p, q downing.Provider) {
	tb.Helper()
	if p.Class() != q.Class() {
		tb.Fatalf("one instance has class %v, another %v", p.Class(), q.Class())
	}
	if !p.Class().Pure {
		return
	}
	const n = rounds / 5
	var first [n]downing.Decision
	for seed := range uint64(n) {
		first[seed], _ = p.Decide(tb.Context(), RandomView(newRand(seed)))
	}
	for seed := range uint64(n) {
		seed = n - 1 - seed
		d, err := q.Decide(tb.Context(), RandomView(newRand(seed)))
		if err == nil && !reflect.DeepEqual(first[seed], d) {
			tb.Fatalf("seed %d: one instance decides %v, another %v", seed, first[seed], d)
		}
	}
}

func nobodyComplains(tb testing.TB, p downing.Provider) {
	tb.Helper()
	for seed := range uint64(rounds / 10) {
		v := RandomView(newRand(seed))
		v.Unreachable, v.Seen = nil, IDs(v.Members)
		d, err := p.Decide(tb.Context(), v)
		if err == nil && len(d.Down) > 0 {
			tb.Fatalf("seed %d: nobody is unreachable, but %v are downed", seed, d.Down)
		}
	}
}

// greatViews lets two sides of a thousand members decide.
func greatViews(tb testing.TB, p downing.Provider) {
	tb.Helper()
	members := Members(1000)
	for _, n := range []int{700, 300} {
		v := SplitView(members, func(id gossip.NodeID) bool { return id.Compare(members[n].Node) < 0 }, gossip.Base{IDs(members[:9])})
		// Ten monitors a node complain, not everybody about everybody.
		v.Unreachable = v.Unreachable[:10*(len(members)-n)]
		d, err := within(tb.Context(), tb, p, v)
		if err != nil {
			continue
		}
		if err := downing.Check(v, p.Class(), d); err != nil {
			tb.Fatalf("%d of %d members: %v", n, len(members), err)
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
	ended, cancel := context.WithCancel(tb.Context())
	cancel()
	for seed := range uint64(rounds / 10) {
		v := RandomView(newRand(seed))
		for _, ctx := range []context.Context{ended, patience.Expiring(tb, time.Duration(seed)*time.Millisecond/10)} {
			d, err := within(ctx, tb, p, v)
			if err != nil {
				continue
			}
			if err := downing.Check(v, p.Class(), d); err != nil {
				tb.Fatalf("seed %d: %v", seed, err)
			}
		}
	}
}
