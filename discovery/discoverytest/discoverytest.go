// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package discoverytest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/quorate/quorate/discovery"
)

// Query is what the suite asks for. An implementation under test must have at
// least one contact point for it.
func Query() discovery.Query {
	return discovery.Query{Service: "quorate", Port: "management", Protocol: "tcp"}
}

// TestDiscovery runs the conformance suite. Each call of newDiscovery returns an
// implementation that finds the same contact points for [Query], which do not
// change while the test runs.
func TestDiscovery(t *testing.T, newDiscovery func(testing.TB) discovery.Discovery) {
	t.Helper()
	for _, part := range parts() {
		t.Run(part.name, func(t *testing.T) { part.check(t, newDiscovery(t)) })
	}
}

type part struct {
	name  string
	check func(testing.TB, discovery.Discovery)
}

func parts() []part {
	return []part{
		{"finds valid targets without duplicates and says why", checkTargets},
		{"the answer belongs to the caller", checkOwnership},
		{"lookups may run at the same time", checkConcurrency},
		{"an ended context is reported", checkContext},
		{"a strange query does no harm", checkStrangeQueries},
	}
}

func checkTargets(t testing.TB, d discovery.Discovery) {
	t.Helper()
	found := lookup(t, d)
	if len(found.List) == 0 {
		t.Errorf("nothing found for %+v", Query())
	}
	if found.Reason == "" {
		t.Errorf("the answer has no reason")
	}
	for i, target := range found.List {
		if err := target.Validate(); err != nil {
			t.Errorf("target %d: %v", i, err)
		}
		if slices.Contains(found.List[:i], target) {
			t.Errorf("target %d: %v is there twice", i, target)
		}
	}
}

func checkOwnership(t testing.TB, d discovery.Discovery) {
	t.Helper()
	first := lookup(t, d)
	kept := sorted(first)
	clear(first.List)
	if got := sorted(lookup(t, d)); !slices.Equal(got, kept) {
		t.Errorf("found %v after the first answer was overwritten, want %v", got, kept)
	}
}

func checkConcurrency(t testing.TB, d discovery.Discovery) {
	t.Helper()
	want := sorted(lookup(t, d))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			found, err := d.Lookup(t.Context(), Query())
			if err != nil {
				t.Errorf("lookup: %v", err)
			} else if got := sorted(found); !slices.Equal(got, want) {
				t.Errorf("found %v, want %v", got, want)
			}
		})
	}
	all.Wait()
}

func checkContext(t testing.TB, d discovery.Discovery) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Lookup(ctx, Query()); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want one that wraps %v", err, context.Canceled)
	}
}

func checkStrangeQueries(t testing.TB, d discovery.Discovery) {
	t.Helper()
	want := sorted(lookup(t, d))
	for _, q := range []discovery.Query{
		{},
		{Service: "no such service"},
		{Service: "a\x00b/../c", Port: "\xff", Protocol: "%s"},
		{Service: string(make([]byte, 100_000))},
	} {
		// Whether it is an error or an empty answer is up to the method.
		found, err := d.Lookup(t.Context(), q)
		if err != nil {
			continue
		}
		for _, target := range found.List {
			if err := target.Validate(); err != nil {
				t.Errorf("target for a strange query: %v", err)
			}
		}
	}
	if got := sorted(lookup(t, d)); !slices.Equal(got, want) {
		t.Errorf("found %v after strange queries, want %v", got, want)
	}
}

func lookup(t testing.TB, d discovery.Discovery) discovery.Targets {
	t.Helper()
	found, err := d.Lookup(t.Context(), Query())
	if err != nil {
		t.Fatalf("lookup: %v", err)
	}
	return found
}

func sorted(found discovery.Targets) []discovery.Target {
	return slices.SortedFunc(slices.Values(found.List), discovery.Target.Compare)
}
