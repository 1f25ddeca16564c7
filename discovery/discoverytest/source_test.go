// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package discoverytest

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/quorate/quorate/discovery"
)

// counted is a method whose source holds count contact points, with one fault.
type counted struct {
	count   int
	fault   string
	silent  bool
	failing bool
	// over ends a lookup that ignores its context, when the test ends.
	over <-chan struct{}
}

func (c *counted) Lookup(ctx context.Context, _ discovery.Query) (discovery.Targets, error) {
	switch {
	case ctx.Err() != nil:
		return discovery.Targets{}, ctx.Err()
	case c.failing && c.fault == "failure is an empty answer":
		return discovery.Targets{Reason: "down"}, nil
	case c.failing && c.fault == "failure with contact points":
		return discovery.Targets{List: []discovery.Target{{Host: "a"}}}, errSpoilt
	case c.failing && c.fault == "panics when the source fails":
		panic(c.fault)
	case c.failing:
		return discovery.Targets{}, errSpoilt
	case c.silent && c.fault == "silence is an empty answer":
		return discovery.Targets{Reason: "silent"}, nil
	case c.silent && c.fault == "hangs":
		<-c.over
		return discovery.Targets{}, errSpoilt
	case c.silent && c.fault == "the error of the context is lost":
		<-ctx.Done()
		return discovery.Targets{}, errSpoilt
	case c.silent:
		<-ctx.Done()
		return discovery.Targets{}, ctx.Err()
	}
	return c.answer()
}

func (c *counted) answer() (discovery.Targets, error) {
	switch {
	case c.count > discovery.MaxTargets && c.fault != "no bound":
		return discovery.Targets{}, errSpoilt
	case c.count == 0 && c.fault == "empty is an error":
		return discovery.Targets{}, errSpoilt
	case c.count == 0 && c.fault == "empty without reason":
		return discovery.Targets{}, nil
	}
	found := discovery.Targets{Reason: "test"}
	for i := range c.count {
		found.List = append(found.List, discovery.Target{Host: "node-" + strconv.Itoa(i)})
	}
	if c.fault == "first page only" && c.count > 100 {
		found.List = found.List[:100]
	}
	if c.fault == "duplicates among many" && c.count > 100 {
		found.List[1] = found.List[0]
	}
	return found, nil
}

func faultySource(fault string, over <-chan struct{}) Source {
	return Source{
		Holding: func(_ testing.TB, n int) discovery.Discovery { return &counted{count: n, fault: fault} },
		Failing: func(testing.TB) discovery.Discovery { return &counted{failing: true, fault: fault} },
		Silent: func(testing.TB) discovery.Discovery {
			return &counted{silent: true, fault: fault, over: over}
		},
	}
}

// Each fault of a method that only some state of its source brings to light is found
// by the part that is for it. Virtual time lets a lookup that hangs be given up at once.
func TestSuiteFindsFaultsThatAStateOfTheSourceShows(t *testing.T) {
	for fault, by := range map[string]string{
		"none":                             "",
		"empty is an error":                "that there are none is an answer",
		"empty without reason":             "that there are none is an answer",
		"first page only":                  "many contact points are found, all of them",
		"duplicates among many":            "many contact points are found, all of them",
		"no bound":                         "too many contact points are an error",
		"failure is an empty answer":       "a source that fails is an error",
		"failure with contact points":      "a source that fails is an error",
		"panics when the source fails":     "a source that fails is an error",
		"silence is an empty answer":       "a silent source takes as long as the context",
		"hangs":                            "a silent source takes as long as the context",
		"the error of the context is lost": "a silent source takes as long as the context",
	} {
		t.Run(fault, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				over := make(chan struct{})
				defer close(over)
				for _, part := range sourceParts() {
					if by != "" && by != part.name {
						continue
					}
					failed := finds(t, func(t testing.TB) { part.check(t, faultySource(fault, over)) })
					if by != "" && !failed {
						t.Errorf("%q lets it pass", part.name)
					}
					if by == "" && failed {
						t.Errorf("%q fails an implementation without a fault", part.name)
					}
				}
			})
		})
	}
}

// The suite leaves out the checks that need a state in which the source cannot be.
func TestSuiteAcceptsASourceWithFewStates(t *testing.T) {
	small := faultySource("none", nil)
	small.Most, small.Failing, small.Silent = 5, nil, nil
	small.Holding = func(t testing.TB, n int) discovery.Discovery {
		t.Helper()
		if n > small.Most {
			t.Errorf("asked for %d contact points, more than %d", n, small.Most)
		}
		return &counted{count: n}
	}
	TestSource(t, small)
}
