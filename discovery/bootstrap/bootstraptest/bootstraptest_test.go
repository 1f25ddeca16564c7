// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package bootstraptest

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/discovery/bootstrap"
)

func TestTheBuiltInRuleKeepsTheContract(t *testing.T) {
	TestJoinDecider(t, func(testing.TB) bootstrap.JoinDecider { return bootstrap.LowestAddress{} })
}

// recorder remembers a failure instead of reporting it.
type recorder struct {
	testing.TB
	failed atomic.Bool
}

func (*recorder) Helper() {}

func (r *recorder) Fatal(...any) {
	r.failed.Store(true)
	runtime.Goexit()
}

func (r *recorder) Fatalf(string, ...any) { r.Fatal() }

// finds tells whether a part of the suite finds a fault.
func finds(t *testing.T, part func(testing.TB)) bool {
	t.Helper()
	r := &recorder{TB: t}
	done := make(chan struct{})
	// The goroutine ends with the part, or with its Goexit; the test waits.
	go func() {
		defer close(done)
		part(r)
	}()
	<-done
	return r.failed.Load()
}

// wrong is a decider that decides by a function with a fault.
type wrong func(bootstrap.Observations) bootstrap.Decision

func (w wrong) Decide(_ context.Context, o bootstrap.Observations) (bootstrap.Decision, error) {
	return w(o), nil
}

// Class says that it is pure, which not all are.
func (wrong) Class() bootstrap.Class { return bootstrap.Class{Pure: true} }

// A suite that passes everything proves nothing: each part must find its fault.
func TestTheSuiteFindsFaults(t *testing.T) {
	rule := bootstrap.LowestAddress{}.DecideNow
	calls := 0
	forms := wrong(func(bootstrap.Observations) bootstrap.Decision { return bootstrap.Decision{Action: bootstrap.Form} })
	ignores := func(change func(*bootstrap.Observations)) wrong {
		return func(o bootstrap.Observations) bootstrap.Decision {
			change(&o)
			return rule(o)
		}
	}
	for name, test := range map[string]struct {
		part    func(testing.TB, bootstrap.JoinDecider)
		decider wrong
	}{
		"the required number": {decisionsKeepTheContract, ignores(func(o *bootstrap.Observations) { o.Required = 0 })},
		"the margin":          {decisionsKeepTheContract, ignores(func(o *bootstrap.Observations) { o.StableMargin = 0 })},
		"another cluster":     {decisionsKeepTheContract, ignores(func(o *bootstrap.Observations) { o.Points = forget(o.Points) })},
		"a stranger": {decisionsKeepTheContract, func(o bootstrap.Observations) bootstrap.Decision {
			d := rule(o)
			if d.Action == bootstrap.Join {
				d.SeedNodes = append(d.SeedNodes, point(99))
			}
			return d
		}},
		"changes observations": {decisionsKeepTheContract, func(o bootstrap.Observations) bootstrap.Decision {
			clear(o.Points)
			return bootstrap.Decision{}
		}},
		"every node":      {atMostOneForms, forms},
		"nobody found":    {nothingWasFound, forms},
		"a panic":         {nothingWasFound, func(o bootstrap.Observations) bootstrap.Decision { panic(o.Points) }},
		"an index":        {nothingWasFound, func(o bootstrap.Observations) bootstrap.Decision { o.Points[0].Answered = 0; return rule(o) }},
		"great and wrong": {greatObservations, func(bootstrap.Observations) bootstrap.Decision { return bootstrap.Decision{Action: 9} }},
		"ended and wrong": {endedContext, func(bootstrap.Observations) bootstrap.Decision { return bootstrap.Decision{Action: 9} }},
		"a mood": {
			func(tb testing.TB, d bootstrap.JoinDecider) { decidersDecideAlike(tb, d, d) },
			func(bootstrap.Observations) bootstrap.Decision {
				calls++
				return bootstrap.Decision{Reason: string(rune('a' + calls%26))}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.True(t, finds(t, func(tb testing.TB) { test.part(tb, test.decider) }), "the fault was not found")
		})
	}
}

// moody promises nothing, and decides by its mood.
type moody struct{ wrong }

func (moody) Class() bootstrap.Class { return bootstrap.Class{} }

// A decider that asks others need not decide alike; one that says so only now and then is found.
func TestOnlyPureDecidersHaveToDecideAlike(t *testing.T) {
	calls := 0
	mood := wrong(func(bootstrap.Observations) bootstrap.Decision {
		calls++
		return bootstrap.Decision{Reason: string(rune('a' + calls%26))}
	})
	require.False(t, finds(t, func(tb testing.TB) { decidersDecideAlike(tb, moody{mood}, moody{mood}) }))
	require.True(t, finds(t, func(tb testing.TB) { decidersDecideAlike(tb, mood, moody{mood}) }), "one says that it is pure")
}

// forget returns the contact points without the members that they name.
func forget(points []bootstrap.Observed) []bootstrap.Observed {
	var all []bootstrap.Observed
	for _, p := range points {
		p.SeedNodes = nil
		all = append(all, p)
	}
	return all
}
