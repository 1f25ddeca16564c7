// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package discoverytest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/internal/patience"
)

const (
	// awaitPause is the time between two lookups of a test that waits.
	awaitPause = 5 * time.Millisecond
	// maxErrorBytes is the longest error of a lookup: it is one line of a log.
	maxErrorBytes = 1000
)

// AwaitTargets looks contact points up again and again until a lookup finds those that are
// wanted, written as [discovery.Target.String] writes them, in that order and no others. It is
// for a method that keeps its answer current by itself, after the test has changed the source.
// The test fails if a minute is not enough, in which no time counts that its process lost to other work of the machine.
func AwaitTargets(t testing.TB, d discovery.Discovery, q discovery.Query, want ...string) {
	t.Helper()
	await(t, fmt.Sprintf("the contact points %v", want), func(late <-chan struct{}) (bool, string) {
		found, err := askUntil(t.Context(), late, d, q)
		return err == nil && fmt.Sprint(found.List) == fmt.Sprint(want), fmt.Sprintf("%v, error %v", found.List, err)
	})
}

// AwaitError looks contact points up again and again until a lookup fails with an error whose
// text contains a message, and returns that error. The text must be fit for one line of a log:
// at most 1,000 bytes without a line feed. The test fails as that of [AwaitTargets] does.
func AwaitError(t testing.TB, d discovery.Discovery, q discovery.Query, message string) error {
	t.Helper()
	var failure error
	await(t, fmt.Sprintf("an error with %q", message), func(late <-chan struct{}) (bool, string) {
		found, err := askUntil(t.Context(), late, d, q)
		failure = err
		return err != nil && strings.Contains(err.Error(), message), fmt.Sprintf("%v, error %v", found.List, err)
	})
	if text := failure.Error(); len(text) > maxErrorBytes || strings.ContainsRune(text, '\n') {
		t.Errorf("the error is not fit for one line of a log: %q", text)
	}
	return failure
}

// await calls look, with a pause after each time, until look returns true. What look returned
// last is told when the time is over, which also ends a look.
func await(t testing.TB, what string, look func(late <-chan struct{}) (bool, string)) {
	t.Helper()
	late := patience.Ended(t)
	pause := time.NewTicker(awaitPause)
	defer pause.Stop()
	for {
		done, seen := look(late)
		if done {
			return
		}
		select {
		case <-pause.C:
		case <-late:
			t.Fatalf("waited %v for %s, the last lookup gave %s", patience.Limit, what, seen)
		}
	}
}
