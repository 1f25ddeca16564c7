// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package downingtest

import (
	"context"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
)

// witness is a testing.TB that remembers a failure instead of reporting it.
type witness struct {
	testing.TB
	failed atomic.Bool
}

func (w *witness) Helper() {}

func (w *witness) Errorf(string, ...any) { w.failed.Store(true) }

func (w *witness) Fatalf(string, ...any) {
	w.failed.Store(true)
	runtime.Goexit()
}

// fails reports whether a part of the suite fails the provider.
func fails(t *testing.T, part func(testing.TB, downing.Provider), p downing.Provider) bool {
	t.Helper()
	w := &witness{TB: t}
	done := make(chan struct{})
	// The goroutine ends with the part, or with its Goexit; this function waits.
	go func() {
		defer close(done)
		part(w, p)
	}()
	<-done
	return w.failed.Load()
}

// spoilt is keep-majority with decisions that are tampered with.
type spoilt struct {
	downing.KeepMajority
	class func() downing.Class
	spoil func(v downing.View, d *downing.Decision)
}

func (s *spoilt) Class() downing.Class {
	if s.class != nil {
		return s.class()
	}
	return s.KeepMajority.Class()
}

func (s *spoilt) Decide(ctx context.Context, v downing.View) (downing.Decision, error) {
	d, err := s.KeepMajority.Decide(ctx, v)
	if s.spoil != nil {
		s.spoil(v, &d)
	}
	return d, err
}

// A suite that passes everything proves nothing: each part must find its fault.
func TestSuiteFindsFaults(t *testing.T) {
	foreign := func(_ downing.View, d *downing.Decision) { d.Down = append(d.Down, Node(99)) }
	selfish := func(v downing.View, d *downing.Decision) {
		if d.Verdict == downing.DownSide {
			*d = downing.Decision{Verdict: downing.KeepSide, Down: IDs(v.Side().Lost())}
		}
	}
	calls := 0
	tests := []struct {
		name string
		part func(testing.TB, downing.Provider)
		p    *spoilt
	}{
		{"unknown node", decisionsKeepTheContract, &spoilt{spoil: foreign}},
		{"minority survives", decisionsKeepTheContract, &spoilt{spoil: selfish}},
		{"modified view", decisionsKeepTheContract, &spoilt{spoil: func(v downing.View, _ *downing.Decision) {
			v.Members[0].UpNumber++
		}}},
		{"class that changes", decisionsKeepTheContract, &spoilt{class: func() downing.Class {
			calls++
			return downing.Class{Pure: calls%2 == 0}
		}}},
		{"depends on who asks", pureProvidersDecideAlike, &spoilt{spoil: func(v downing.View, d *downing.Decision) {
			d.Reason += v.Self.String()
		}}},
		{"depends on the order of complaints", pureProvidersDecideAlike, &spoilt{spoil: func(v downing.View, d *downing.Decision) {
			if len(v.Unreachable) > 0 {
				d.Reason += v.Unreachable[0].Subject.String()
			}
		}}},
		{"two sides survive", atMostOneSideSurvives, &spoilt{spoil: selfish}},
		{"no reason", decisionsKeepTheContract, &spoilt{spoil: func(_ downing.View, d *downing.Decision) { d.Reason = "" }}},
		{"downs without a complaint", nobodyComplains, &spoilt{spoil: func(v downing.View, d *downing.Decision) {
			d.Down = IDs(v.Members)
		}}},
		{"wrong about many", greatViews, &spoilt{spoil: func(v downing.View, d *downing.Decision) {
			if len(v.Members) > 900 {
				foreign(v, d)
			}
		}}},
		{"remembers what it was asked", func(tb testing.TB, p downing.Provider) {
			tb.Helper()
			instancesDecideAlike(tb, p, &spoilt{})
		}, &spoilt{spoil: func(_ downing.View, d *downing.Decision) {
			calls++
			d.Reason += strconv.Itoa(calls)
		}}},
		{"instances of two classes", func(tb testing.TB, p downing.Provider) {
			tb.Helper()
			instancesDecideAlike(tb, p, &spoilt{})
		}, &spoilt{class: func() downing.Class { return downing.Class{} }}},
		{"wrong when asked at the same time", concurrentUse, &spoilt{spoil: foreign}},
		{"wrong when told to stop", endedContext, &spoilt{spoil: foreign}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if !fails(t, test.part, test.p) {
				t.Fatal("the fault was not found")
			}
		})
	}
}

// arbiter is a provider that keeps the first side which asks, even without a majority.
type arbiter struct{ asked bool }

func (a *arbiter) Class() downing.Class { return downing.Class{} }

func (a *arbiter) Decide(_ context.Context, v downing.View) (downing.Decision, error) {
	d := downing.Decision{Verdict: downing.KeepSide, Down: IDs(v.Side().Lost()), Reason: "first"}
	if a.asked {
		d = downing.Decision{Verdict: downing.DownSide, Down: IDs(v.Side().Members()), Reason: "late"}
	}
	a.asked = true
	return d, nil
}

// patient is a provider that decides nothing until the view has been stable for a
// while.
type patient struct{ downing.KeepMajority }

func (p patient) Decide(ctx context.Context, v downing.View) (downing.Decision, error) {
	if v.Unstable < time.Minute {
		return downing.Decision{Reason: "not yet"}, nil
	}
	return p.KeepMajority.Decide(ctx, v)
}

func (patient) Class() downing.Class { return downing.Class{MajorityOnly: true} }

func TestAProviderMayWait(t *testing.T) {
	TestProvider(t, func(testing.TB) downing.Provider { return patient{} })
}

func TestSplitsNeedAnArbiter(t *testing.T) {
	TestSplits(t, func(testing.TB) downing.Provider { return &arbiter{} })
	forgetful := func(tb testing.TB, _ downing.Provider) {
		tb.Helper()
		for seed := range uint64(rounds) {
			splitSurvivors(tb, seed, &spoilt{spoil: func(v downing.View, d *downing.Decision) {
				*d = downing.Decision{Verdict: downing.KeepSide, Down: IDs(v.Side().Lost())}
			}})
		}
	}
	if !fails(t, forgetful, nil) {
		t.Fatal("two sides survive, which was not found")
	}
}

// The random views of the suite must lead to every verdict.
func TestRandomViewsReachEveryVerdict(t *testing.T) {
	found := map[downing.Verdict]int{}
	indirect := 0
	for seed := range uint64(rounds) {
		v := RandomView(newRand(seed))
		d, err := downing.KeepMajority{}.DecideNow(v)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		found[d.Verdict]++
		if d.Verdict == downing.KeepSide && slices.ContainsFunc(v.Side().IndirectlyConnected(), func(m *gossip.Member) bool {
			return slices.Contains(d.Down, m.Node)
		}) {
			indirect++
		}
	}
	for _, verdict := range []downing.Verdict{downing.None, downing.KeepSide, downing.DownSide} {
		if found[verdict] < rounds/50 {
			t.Errorf("only %d of %d views lead to %v", found[verdict], rounds, verdict)
		}
	}
	if indirect == 0 {
		t.Error("no view leads to the downing of an indirectly connected member")
	}
}
