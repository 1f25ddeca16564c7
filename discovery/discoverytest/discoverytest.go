// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package discoverytest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/internal/patience"
)

// The checks that need a method with some contact points and nothing else: parts lists them,
// with a sentence for each. All of them look up through ask, which survives a lookup that
// panics or hangs. Checks that change the source of the method are in source.go, and what
// waits for a change of the answer is in await.go.

// Query is what the suite asks for. An implementation under test must have at
// least one contact point for it.
func Query() discovery.Query {
	return discovery.Query{Service: "quorate", Port: "management", Protocol: "tcp"}
}

// TestDiscovery runs the part of the suite that needs one state of the source only;
// [TestSource] has all of it. Each call of newDiscovery returns an
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
		{"equal queries get equal answers if the method is pure", checkPure},
		{"lookups may run at the same time", checkConcurrency},
		{"an ended context is reported", checkContext},
		{"a strange query does no harm", checkStrangeQueries},
		{"a closed method says so", checkClose},
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
	if err := found.Check(); err != nil {
		t.Errorf("%v", err)
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

// checkPure asks a method that says that it is pure several times about each query.
func checkPure(t testing.TB, d discovery.Discovery) {
	t.Helper()
	if !discovery.ClassOf(d).Pure {
		return
	}
	for _, q := range []discovery.Query{Query(), {}, {Service: "no such service"}, {Service: Query().Service}} {
		first, err := ask(t.Context(), t, d, q)
		if err != nil {
			continue
		}
		for range 8 {
			again, err := ask(t.Context(), t, d, q)
			if err == nil && !slices.Equal(again.List, first.List) {
				t.Errorf("%+v: found %v, and then %v", q, first.List, again.List)
			}
		}
	}
}

func checkConcurrency(t testing.TB, d discovery.Discovery) {
	t.Helper()
	want := sorted(lookup(t, d))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			found, err := ask(t.Context(), t, d, Query())
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
	if _, err := ask(ctx, t, d, Query()); !errors.Is(err, context.Canceled) {
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
		found, err := ask(t.Context(), t, d, q)
		if errors.Is(err, errNoAnswer) {
			t.Errorf("a strange query: %v", err)
		}
		if err != nil {
			continue
		}
		if err := found.Check(); err != nil {
			t.Errorf("a strange query: %v", err)
		}
	}
	if got := sorted(lookup(t, d)); !slices.Equal(got, want) {
		t.Errorf("found %v after strange queries, want %v", got, want)
	}
}

// checkClose closes a method while lookups are under way, as a node does that stops.
// A method that holds nothing has nothing to close.
func checkClose(t testing.TB, d discovery.Discovery) {
	t.Helper()
	closer, ok := d.(io.Closer)
	if !ok {
		return
	}
	lookup(t, d)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if _, err := ask(t.Context(), t, d, Query()); err != nil && !errors.Is(err, discovery.ErrClosed) {
				t.Errorf("a lookup while the method is closed: %v, want an answer or %v", err, discovery.ErrClosed)
			}
		})
	}
	for range 2 {
		if err := closer.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	all.Wait()
	if _, err := ask(t.Context(), t, d, Query()); !errors.Is(err, discovery.ErrClosed) {
		t.Errorf("a lookup after close: %v, want an error that wraps %v", err, discovery.ErrClosed)
	}
}

func lookup(t testing.TB, d discovery.Discovery) discovery.Targets {
	t.Helper()
	found, err := ask(t.Context(), t, d, Query())
	if err != nil {
		t.Fatalf("lookup: %v", err)
	}
	return found
}

// errNoAnswer is wrapped by the error of a lookup that gave neither an answer nor an
// error: it panicked, or did not return in time.
var errNoAnswer = errors.New("no answer")

// ask looks up, and survives a lookup that panics or hangs.
func ask(ctx context.Context, t testing.TB, d discovery.Discovery, q discovery.Query) (discovery.Targets, error) {
	t.Helper()
	return askUntil(ctx, patience.Ended(t), d, q)
}

// askUntil does so until the time is over.
func askUntil(ctx context.Context, late <-chan struct{}, d discovery.Discovery, q discovery.Query) (discovery.Targets, error) {
	type answer struct {
		found discovery.Targets
		err   error
	}
	answers := make(chan answer, 1)
	// The goroutine ends with the lookup. A lookup that hangs cannot be ended: the test
	// fails and leaves the goroutine behind.
	go func() {
		a := answer{err: fmt.Errorf("%w: the lookup panicked", errNoAnswer)}
		defer func() {
			if value := recover(); value != nil {
				a = answer{err: fmt.Errorf("%w: the lookup panicked: %v", errNoAnswer, value)}
			}
			answers <- a
		}()
		a.found, a.err = d.Lookup(ctx, q)
	}()
	select {
	case a := <-answers:
		return a.found, a.err
	case <-late:
		return discovery.Targets{}, fmt.Errorf("%w: the lookup did not return within %v", errNoAnswer, patience.Limit)
	}
}

func sorted(found discovery.Targets) []discovery.Target {
	return slices.SortedFunc(slices.Values(found.List), discovery.Target.Compare)
}
