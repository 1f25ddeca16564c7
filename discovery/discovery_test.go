// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package discovery_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/discoverytest"
)

// The conformance suite for the list and the aggregate, then each by itself: which answer an
// aggregate takes, what it says of the methods that it passed over, when it is an error, and for
// how long its answer holds.

func newStatic(t testing.TB, endpoints ...string) *discovery.Static {
	t.Helper()
	s, err := discovery.NewStatic(endpoints)
	require.NoError(t, err)
	return s
}

func newAggregate(t testing.TB, methods ...discovery.Method) *discovery.Aggregate {
	t.Helper()
	a, err := discovery.NewAggregate(time.Second, methods...)
	require.NoError(t, err)
	return a
}

// asked is a method of discovery that calls a function.
type asked func(ctx context.Context) (discovery.Targets, error)

func (f asked) Lookup(ctx context.Context, _ discovery.Query) (discovery.Targets, error) {
	return f(ctx)
}

var errBroken = errors.New("the registry is down")

func broken(context.Context) (discovery.Targets, error) { return discovery.Targets{}, errBroken }

func empty(context.Context) (discovery.Targets, error) {
	return discovery.Targets{Reason: "no records"}, nil
}

func answer(list ...discovery.Target) asked {
	return func(ctx context.Context) (discovery.Targets, error) {
		if err := ctx.Err(); err != nil {
			return discovery.Targets{}, err
		}
		return discovery.Targets{List: slices.Clone(list), Reason: "test"}, nil
	}
}

func hang(ctx context.Context) (discovery.Targets, error) {
	<-ctx.Done()
	return discovery.Targets{}, ctx.Err()
}

func method(name string, d asked) discovery.Method { return discovery.Method{Name: name, Discovery: d} }

// numbered returns n different contact points.
func numbered(n int) []discovery.Target {
	list := make([]discovery.Target, n)
	for i := range list {
		list[i] = discovery.Target{Host: "node-" + strconv.Itoa(i), Port: 1}
	}
	return list
}

func TestDiscoveriesKeepTheContract(t *testing.T) {
	t.Run("static", func(t *testing.T) {
		discoverytest.TestSource(t, discoverytest.Source{
			Holding: func(t testing.TB, n int) discovery.Discovery {
				t.Helper()
				var endpoints []string
				for _, target := range numbered(n) {
					endpoints = append(endpoints, target.String(), target.String())
				}
				return newStatic(t, endpoints...)
			},
			Most: discovery.MaxTargets, // The bound is that of the configuration.
		})
	})
	t.Run("aggregate", func(t *testing.T) {
		discoverytest.TestSource(t, discoverytest.Source{
			Holding: func(t testing.TB, n int) discovery.Discovery {
				t.Helper()
				return newAggregate(t, method("empty", empty), method("full", answer(numbered(n)...)))
			},
			Failing: func(t testing.TB) discovery.Discovery {
				t.Helper()
				return newAggregate(t, method("empty", empty), method("broken", broken))
			},
			Silent: func(t testing.TB) discovery.Discovery {
				t.Helper()
				return newAggregate(t, method("empty", empty), method("hang", hang))
			},
		})
	})
}

func TestStaticKeepsTheOrderAndDropsDuplicates(t *testing.T) {
	found, err := newStatic(t, "b:2", "a:1", "B:2").Lookup(t.Context(), discovery.Query{})
	require.NoError(t, err)
	require.Equal(t, []discovery.Target{{Host: "b", Port: 2}, {Host: "a", Port: 1}}, found.List)
}

func TestStaticMayBeEmpty(t *testing.T) {
	found, err := new(discovery.Static).Lookup(t.Context(), discovery.Query{})
	require.NoError(t, err)
	require.Empty(t, found.List)
	require.Contains(t, found.Reason, "empty")
}

// covers B13, see docs/verification.md.
func TestStaticReportsEveryBadEntry(t *testing.T) {
	_, err := discovery.NewStatic([]string{"a:1", "", "b", "c:0"})
	require.ErrorIs(t, err, discovery.ErrBadTarget)
	require.ErrorContains(t, err, "endpoint 1: ")
	require.ErrorContains(t, err, "endpoint 2: ")
	require.ErrorContains(t, err, "endpoint 3: ")
	require.NotContains(t, err.Error(), "endpoint 0: ")
}

func TestAggregateTakesTheFirstAnswer(t *testing.T) {
	one := discovery.Target{Host: "one", Port: 1}
	for _, tc := range []struct {
		name    string
		methods []discovery.Method
	}{
		{"first", []discovery.Method{method("a", answer(one)), method("b", answer(discovery.Target{Host: "two"}))}},
		{"after an error", []discovery.Method{method("a", broken), method("b", answer(one))}},
		{"after an empty answer", []discovery.Method{method("a", empty), method("b", answer(one))}},
		{"after an invalid answer", []discovery.Method{
			method("a", answer(discovery.Target{Host: "two", Port: 2}, discovery.Target{Host: "../etc"})),
			method("b", answer(one)),
		}},
		{"after too large an answer", []discovery.Method{
			method("a", answer(make([]discovery.Target, discovery.MaxTargets+1)...)), method("b", answer(one)),
		}},
		{"without duplicates", []discovery.Method{method("a", answer(one, one))}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			found, err := newAggregate(t, tc.methods...).Lookup(t.Context(), discovery.Query{Service: "s"})
			require.NoError(t, err)
			require.Equal(t, []discovery.Target{one}, found.List)
			require.NotEmpty(t, found.Reason)
		})
	}
}

func TestAggregateSaysWhichMethodsItPassedOver(t *testing.T) {
	a := newAggregate(t, method("dns", broken), method("file", empty),
		method("list", answer(discovery.Target{Host: "a"})))
	found, err := a.Lookup(t.Context(), discovery.Query{})
	require.NoError(t, err)
	require.Equal(t, "dns: the registry is down; file: found none: no records; list: test", found.Reason)
}

func TestAggregateReportsAllErrors(t *testing.T) {
	other := errors.New("no route")
	a := newAggregate(t, method("dns", broken), method("file", empty),
		method("consul", func(context.Context) (discovery.Targets, error) { return discovery.Targets{}, other }))
	_, err := a.Lookup(t.Context(), discovery.Query{})
	require.ErrorIs(t, err, errBroken)
	require.ErrorIs(t, err, other)
	require.ErrorContains(t, err, "discovery: dns: the registry is down")
	require.ErrorContains(t, err, "discovery: consul: no route")
	var first *discovery.LookupError
	require.ErrorAs(t, err, &first)
	require.Equal(t, "dns", first.Method)
}

// That all methods found nothing is an answer; that one of them could not find out is an
// error, since the difference decides whether a node may form a cluster.
func TestAggregateTellsNothingFoundFromNotKnown(t *testing.T) {
	found, err := newAggregate(t, method("a", empty), method("b", empty)).Lookup(t.Context(), discovery.Query{})
	require.NoError(t, err)
	require.Empty(t, found.List)
	require.Contains(t, found.Reason, "b: found none: no records")
	_, err = newAggregate(t, method("a", broken), method("b", empty)).Lookup(t.Context(), discovery.Query{})
	require.ErrorIs(t, err, errBroken)
}

func TestAggregateRemembersNothing(t *testing.T) {
	up := true
	a := newAggregate(t, method("a", func(ctx context.Context) (discovery.Targets, error) {
		if up {
			return answer(discovery.Target{Host: "a"})(ctx)
		}
		return broken(ctx)
	}))
	_, err := a.Lookup(t.Context(), discovery.Query{})
	require.NoError(t, err)
	up = false
	_, err = a.Lookup(t.Context(), discovery.Query{})
	require.ErrorIs(t, err, errBroken, "the answer of before is not given again")
}

func TestAggregatePassesOverAMethodThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		a := newAggregate(t, method("slow", hang), method("list", answer(discovery.Target{Host: "a"})))
		found, err := a.Lookup(t.Context(), discovery.Query{})
		require.NoError(t, err)
		require.Len(t, found.List, 1)
		require.Contains(t, found.Reason, "slow: context deadline exceeded")
		require.Equal(t, time.Second, time.Since(begun), "the limit of one method")
	})
}

func TestAggregateAsksNoFurtherWhenItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		a := newAggregate(t, method("slow", hang), method("next", func(context.Context) (discovery.Targets, error) {
			t.Error("asked although the context has ended")
			return discovery.Targets{}, nil
		}))
		_, err := a.Lookup(ctx, discovery.Query{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "discovery: slow: ")
	})
}

func TestNewAggregateReportsEveryFault(t *testing.T) {
	_, err := discovery.NewAggregate(0)
	require.ErrorContains(t, err, "time limit 0s")
	require.ErrorContains(t, err, "no method given")
	_, err = discovery.NewAggregate(1, method("", empty), method("a", empty), method("a", empty),
		discovery.Method{Name: "b"})
	require.ErrorContains(t, err, "method 0 has no name")
	require.ErrorContains(t, err, `method "a" is given twice`)
	require.ErrorContains(t, err, `method "b" has no implementation`)
}

// An answer holds as long as that of each method which was asked, and not at all after a
// method failed, which may answer at any moment.
func TestAggregateHoldsNoLongerThanEachOfItsMethods(t *testing.T) {
	holding := func(ttl time.Duration, list ...discovery.Target) asked {
		return func(context.Context) (discovery.Targets, error) {
			return discovery.Targets{List: list, Reason: "test", TTL: ttl}, nil
		}
	}
	one := discovery.Target{Host: "one"}
	for _, tc := range []struct {
		name    string
		methods []discovery.Method
		want    time.Duration
	}{
		{"one method", []discovery.Method{method("a", holding(time.Minute, one))}, time.Minute},
		{"an empty answer before", []discovery.Method{
			method("a", holding(time.Second)), method("b", holding(time.Minute, one)),
		}, time.Second},
		{"an error before", []discovery.Method{method("a", broken), method("b", holding(time.Minute, one))}, 0},
		{"a method that does not say", []discovery.Method{
			method("a", empty), method("b", holding(time.Minute, one)),
		}, 0},
		{"all empty", []discovery.Method{method("a", holding(time.Minute)), method("b", holding(time.Hour))}, time.Minute},
	} {
		t.Run(tc.name, func(t *testing.T) {
			found, err := newAggregate(t, tc.methods...).Lookup(t.Context(), discovery.Query{})
			require.NoError(t, err)
			require.Equal(t, tc.want, found.TTL)
		})
	}
	_, err := newAggregate(t, method("a", holding(-1, one))).Lookup(t.Context(), discovery.Query{})
	require.ErrorContains(t, err, "holds for -1ns")
}

func TestDistinctKeepsTheOrderAndRefusesWhatIsBad(t *testing.T) {
	a, b := discovery.Target{Host: "a", Port: 1}, discovery.Target{Host: "b", Port: 2}
	given := []discovery.Target{b, a, b}
	list, err := discovery.Distinct(given)
	require.NoError(t, err)
	require.Equal(t, []discovery.Target{b, a}, list)
	require.Equal(t, []discovery.Target{b, a, b}, given)
	_, err = discovery.Distinct([]discovery.Target{a, {Host: "B"}})
	require.ErrorIs(t, err, discovery.ErrBadTarget)
	_, err = discovery.Distinct(make([]discovery.Target, discovery.MaxTargets+1))
	require.ErrorContains(t, err, "10001 contact points are more than 10000")
}
