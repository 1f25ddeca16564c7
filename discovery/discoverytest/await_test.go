// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package discoverytest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/quorate/quorate/discovery"
)

// changing answers each lookup with the next entry of a list, and from then on with the last.
type changing struct {
	answers []discovery.Targets
	errs    []error
	calls   int
}

func (c *changing) Lookup(context.Context, discovery.Query) (discovery.Targets, error) {
	i := min(c.calls, len(c.answers)-1)
	c.calls++
	return c.answers[i], c.errs[i]
}

// newChanging returns a method that finds a contact point, then fails, then finds another.
func newChanging() *changing {
	list := func(host string) discovery.Targets {
		return discovery.Targets{List: []discovery.Target{{Host: host, Port: 1}}}
	}
	return &changing{
		answers: []discovery.Targets{list("a"), {}, list("b")},
		errs:    []error{nil, errors.New("the source is away"), nil},
	}
}

func TestAwaitEndsWithTheLookupThatIsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newChanging()
		AwaitTargets(t, d, Query(), "b:1")
		if d.calls != 3 {
			t.Errorf("%d lookups, want 3", d.calls)
		}
		d = newChanging()
		if err := AwaitError(t, d, Query(), "is away"); err == nil || d.calls != 2 {
			t.Errorf("error %v after %d lookups, want one after 2", err, d.calls)
		}
	})
}

// A test that waits for contact points or an error that never come fails, and so does one that
// gets an error which is not fit for a line of a log.
func TestAwaitFailsATestThatWaitsForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for what, check := range map[string]func(testing.TB){
			"targets": func(t testing.TB) { AwaitTargets(t, newChanging(), Query(), "b:1", "c:1") },
			"error":   func(t testing.TB) { _ = AwaitError(t, newChanging(), Query(), "another message") },
			"lines": func(t testing.TB) {
				_ = AwaitError(t, &changing{answers: make([]discovery.Targets, 1), errs: []error{errors.New("a\nb")}}, Query(), "a")
			},
			"length": func(t testing.TB) {
				_ = AwaitError(t, &changing{answers: make([]discovery.Targets, 1), errs: []error{errors.New(strings.Repeat("a", 1001))}}, Query(), "a")
			},
		} {
			if !finds(t, check) {
				t.Errorf("%s: the test passes", what)
			}
		}
	})
}
