// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package discoverytest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/internal/patience"
)

// Source makes methods whose source, a server, a file or other nodes, is in a state
// that the suite asks for. What a method holds is released by a Cleanup of the test.
type Source struct {
	// Holding returns a method whose source has the given number of different contact points
	// for [Query], and does not change. The number is from 0 to one more than
	// [discovery.MaxTargets]. Required.
	Holding func(t testing.TB, contactPoints int) discovery.Discovery
	// Most is the largest number of contact points that fit into the source, at least 3.
	// 0: one more than [discovery.MaxTargets] fit.
	Most int
	// Failing returns a method whose source answers each request with an error. It is
	// nil only for a method without a source that could fail.
	Failing func(t testing.TB) discovery.Discovery
	// Silent returns a method whose source takes requests and answers none. It is nil
	// only for a method that never waits, or that takes silence for an empty answer.
	Silent func(t testing.TB) discovery.Discovery
}

// TestSource runs the whole conformance suite: what [TestDiscovery] checks, and what
// a method makes of a source that is empty, large, failing or silent.
func TestSource(t *testing.T, source Source) {
	t.Helper()
	TestDiscovery(t, func(t testing.TB) discovery.Discovery { return source.Holding(t, 3) })
	for _, part := range sourceParts() {
		t.Run(part.name, func(t *testing.T) { part.check(t, source) })
	}
}

type sourcePart struct {
	name  string
	check func(testing.TB, Source)
}

func sourceParts() []sourcePart {
	return []sourcePart{
		{"that there are none is an answer", checkEmpty},
		{"many contact points are found, all of them", checkMany},
		{"too many contact points are an error", checkTooMany},
		{"a source that fails is an error", checkFailing},
		{"a silent source takes as long as the context", checkSilent},
	}
}

func checkEmpty(t testing.TB, source Source) {
	t.Helper()
	found := lookup(t, source.Holding(t, 0))
	if len(found.List) > 0 {
		t.Errorf("found %v where there are no contact points", found.List)
	}
	if found.Reason == "" {
		t.Errorf("the empty answer has no reason")
	}
	if found.TTL < 0 {
		t.Errorf("the empty answer holds for %v", found.TTL)
	}
}

func checkMany(t testing.TB, source Source) {
	t.Helper()
	many := discovery.MaxTargets
	if source.Most > 0 {
		many = min(many, source.Most)
	}
	found := lookup(t, source.Holding(t, many))
	unique, err := discovery.Distinct(found.List)
	if err != nil {
		t.Errorf("the answer: %v", err)
	} else if len(unique) != many || len(found.List) != many {
		t.Errorf("found %d contact points, %d of them different, want %d", len(found.List), len(unique), many)
	}
}

func checkTooMany(t testing.TB, source Source) {
	t.Helper()
	if source.Most > 0 && source.Most <= discovery.MaxTargets {
		return // Other bounds of the source come first.
	}
	found, err := ask(t.Context(), t, source.Holding(t, discovery.MaxTargets+1), Query())
	if err == nil || errors.Is(err, errNoAnswer) {
		t.Errorf("found %d contact points and the error %v, want an error", len(found.List), err)
	}
}

func checkFailing(t testing.TB, source Source) {
	t.Helper()
	if source.Failing == nil {
		return
	}
	found, err := ask(t.Context(), t, source.Failing(t), Query())
	if err == nil || errors.Is(err, errNoAnswer) {
		t.Errorf("error is %v, want one: an answer without contact points says that there are none", err)
	}
	if len(found.List) > 0 {
		t.Errorf("found %v beside the error", found.List)
	}
}

// checkSilent ends a lookup by a deadline, and one by cancelling it.
func checkSilent(t testing.TB, source Source) {
	t.Helper()
	if source.Silent == nil {
		return
	}
	const moment = 50 * time.Millisecond
	if _, err := ask(patience.Expiring(t, moment), t, source.Silent(t), Query()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error after the deadline is %v, want one that wraps %v", err, context.DeadlineExceeded)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	defer cancel()
	later := time.AfterFunc(moment, cancel)
	defer later.Stop()
	if _, err := ask(cancelled, t, source.Silent(t), Query()); !errors.Is(err, context.Canceled) {
		t.Errorf("error after cancelling is %v, want one that wraps %v", err, context.Canceled)
	}
}
