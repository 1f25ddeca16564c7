// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package bootstraptest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/bootstrap"
	"github.com/quorate/quorate/internal/patience"
)

// TestJoinDecider runs its parts in turn, each on observations that are drawn by seed. Every
// call of a decider goes through [ask], which notices a panic or a call that hangs. At the end
// of the file observations are drawn ([Random]).

// rounds is how many random observations each part of the suite uses.
const rounds = 300

// Limit is how long a node waits for a decision. Time in which the process of the test did not run, since its
// machine had other work, does not count.
const Limit = 5 * time.Second

// TestJoinDecider runs the conformance suite. The function create returns a decider that
// is ready for use; it is called for each part, and twice for the part with two deciders.
//
//   - Every decision without an error passes [bootstrap.Decision.Check]: only nodes that a
//     contact point has named are joined, and a cluster is formed only where as many contact
//     points as are required were found, none of them names a member of a cluster, and the set
//     was unchanged for the margin.
//   - Of the nodes that observe the same, at most one forms a cluster.
//   - Observations are not modified, and the class of a decider does not change. From a pure
//     one ([bootstrap.Class]) equal observations get equal decisions, from the same decider
//     asked again and from another one.
//   - No observations lead to a panic, not even those of a node that has found no contact
//     point.
//   - A thousand contact points are decided about within [Limit].
//   - A context that has ended, or ends meanwhile, leads to a decision or an error within
//     [Limit], not to a hang.
func TestJoinDecider(t *testing.T, create func(testing.TB) bootstrap.JoinDecider) {
	t.Helper()
	parts := []struct {
		name string
		run  func(testing.TB, bootstrap.JoinDecider)
	}{
		{"DecisionsKeepTheContract", decisionsKeepTheContract},
		{"AtMostOneForms", atMostOneForms},
		{"NothingWasFound", nothingWasFound},
		{"GreatObservations", greatObservations},
		{"EndedContext", endedContext},
	}
	for _, p := range parts {
		t.Run(p.name, func(t *testing.T) { p.run(t, create(t)) })
	}
	t.Run("DecidersDecideAlike", func(t *testing.T) { decidersDecideAlike(t, create(t), create(t)) })
}

// answer is the outcome of one call of a decider: a decision, an error or a panic.
type answer struct {
	decision bootstrap.Decision
	err      error
	panicked any
}

// ask returns the decision of a decider, and fails the test if the decider panics or takes
// longer than Limit.
func ask(ctx context.Context, tb testing.TB, d bootstrap.JoinDecider, o bootstrap.Observations) (bootstrap.Decision, error) {
	tb.Helper()
	answered := make(chan answer, 1)
	// The goroutine ends with the call. If the call hangs for ever, the test has failed.
	go func() {
		var a answer
		defer func() {
			a.panicked = recover()
			answered <- a
		}()
		a.decision, a.err = d.Decide(ctx, o)
	}()
	watch := patience.Start(tb)
	a := patience.Receive(tb, answered, "a decision")
	if a.panicked != nil {
		tb.Fatalf("a panic in place of an error: %v\nobservations %+v", a.panicked, o)
	}
	if took := watch.Elapsed(); took > Limit {
		tb.Fatalf("the decision took %v, more than %v", took, Limit)
	}
	return a.decision, a.err
}

func decisionsKeepTheContract(tb testing.TB, d bootstrap.JoinDecider) {
	tb.Helper()
	for seed := range uint64(rounds) {
		o := drawn(seed)
		before := fmt.Sprintf("%+v", o)
		decision, err := ask(tb.Context(), tb, d, o)
		if now := fmt.Sprintf("%+v", o); now != before {
			tb.Fatalf("seed %d: the observations were modified:\nbefore %s\nafter  %s", seed, before, now)
		}
		if err != nil {
			continue
		}
		if err := decision.Check(o); err != nil {
			tb.Fatalf("seed %d: %v\nobservations %s", seed, err, before)
		}
	}
}

// atMostOneForms asks for each contact point in turn, as if all nodes had observed the same.
func atMostOneForms(tb testing.TB, d bootstrap.JoinDecider) {
	tb.Helper()
	for seed := range uint64(rounds / 3) {
		o := drawn(seed)
		var forming []discovery.Target
		for i := range o.Points {
			o.Points[i].Answered, o.Points[i].SeedNodes = 0, nil
		}
		o.Stable = o.StableMargin
		for _, p := range o.Points {
			o.Self = p.Point
			if decision, err := ask(tb.Context(), tb, d, o); err == nil && decision.Action == bootstrap.Form {
				forming = append(forming, p.Point)
			}
		}
		if len(forming) > 1 {
			tb.Fatalf("seed %d: %v each form a cluster\nobservations %+v", seed, forming, o)
		}
	}
}

func nothingWasFound(tb testing.TB, d bootstrap.JoinDecider) {
	tb.Helper()
	o := bootstrap.Observations{Service: "shop", Self: point(0), Required: 1}
	if decision, err := ask(tb.Context(), tb, d, o); err == nil && decision.Action != bootstrap.Probe {
		tb.Fatalf("nothing was found, and the decision is to %v", decision.Action)
	}
}

func greatObservations(tb testing.TB, d bootstrap.JoinDecider) {
	tb.Helper()
	o := bootstrap.Observations{Service: "shop", Self: point(0), Required: bootstrap.MaxPoints}
	for i := range bootstrap.MaxPoints {
		o.Points = append(o.Points, bootstrap.Observed{Point: point(i)})
	}
	slices.SortFunc(o.Points, byAddress)
	decision, err := ask(tb.Context(), tb, d, o)
	if err == nil {
		err = decision.Check(o)
	}
	if err != nil {
		tb.Fatalf("%d contact points: %v", len(o.Points), err)
	}
}

func endedContext(tb testing.TB, d bootstrap.JoinDecider) {
	tb.Helper()
	ended, end := context.WithCancel(tb.Context())
	end()
	for _, ctx := range []context.Context{ended, patience.Expiring(tb, time.Microsecond)} {
		o := drawn(1)
		if decision, err := ask(ctx, tb, d, o); err == nil {
			if err := decision.Check(o); err != nil {
				tb.Fatal(err)
			}
		}
	}
}

func decidersDecideAlike(tb testing.TB, one, other bootstrap.JoinDecider) {
	tb.Helper()
	class := bootstrap.ClassOf(one)
	if is := bootstrap.ClassOf(other); is != class {
		tb.Fatalf("one decider has the class %+v, another one %+v", class, is)
	}
	if !class.Pure {
		return
	}
	for seed := range uint64(rounds) {
		o := drawn(seed)
		first, err := ask(tb.Context(), tb, one, o)
		if err != nil {
			continue
		}
		for _, d := range []bootstrap.JoinDecider{one, other} {
			again, err := ask(tb.Context(), tb, d, o)
			if err == nil && !reflect.DeepEqual(first, again) {
				tb.Fatalf("seed %d: equal observations, but first %+v and then %+v\nobservations %+v", seed, first, again, o)
			}
		}
	}
}

func drawn(seed uint64) bootstrap.Observations { return Random(rand.New(rand.NewPCG(seed, 0xb007))) }

func byAddress(a, b bootstrap.Observed) int { return bootstrap.Compare(a.Point, b.Point) }

// point returns the i-th contact point: most are addresses of version 4, some of version 6
// and some names, several on one host.
func point(i int) discovery.Target {
	t := discovery.Target{Port: uint16(7946 + i%2)}
	switch n := i / 2; n % 5 {
	case 3:
		t.Host = fmt.Sprintf("fd00::%x", n+1)
	case 4:
		t.Host = fmt.Sprintf("node-%d.shop", n)
	default:
		t.Host = fmt.Sprintf("10.0.%d.%d", n/200, n%200+1)
	}
	return t
}

// Random draws what a node may observe: from none to a dozen contact points, of which some
// are silent and, in half of the draws, some are in a cluster; before and after the margin.
func Random(r *rand.Rand) bootstrap.Observations {
	const most = 12
	o := bootstrap.Observations{
		Service: "shop", Self: point(r.IntN(most)), Required: 1 + r.IntN(5),
		StableMargin: 5 * time.Second, Stable: time.Duration(r.Int64N(int64(10 * time.Second))),
	}
	clusters := r.IntN(2) == 0
	for i := range most {
		if r.IntN(2) == 0 {
			continue
		}
		p := bootstrap.Observed{Point: point(i), Answered: time.Duration(r.Int64N(int64(time.Second)))}
		switch {
		case p.Point == o.Self:
			p.Answered = 0
		case r.IntN(4) == 0:
			p.Answered = -1
		case clusters && r.IntN(3) == 0:
			p.SeedNodes = []discovery.Target{p.Point, point(r.IntN(most))}
		}
		o.Points = append(o.Points, p)
	}
	slices.SortFunc(o.Points, byAddress)
	return o
}
