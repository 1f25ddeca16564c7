// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package discoverytest

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/quorate/quorate/discovery"
)

// A method with one fault at a time must be found by the part of the suite that is for that
// fault, and by no part if it has none.

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

// fails reports whether a part of the suite fails an implementation.
func fails(t *testing.T, p part, d discovery.Discovery) bool {
	t.Helper()
	return finds(t, func(t testing.TB) { p.check(t, d) })
}

// finds reports whether a check fails.
func finds(t *testing.T, check func(testing.TB)) bool {
	t.Helper()
	w := &witness{TB: t}
	done := make(chan struct{})
	// The goroutine ends with the check, or with its Goexit; this function waits.
	go func() {
		defer close(done)
		check(w)
	}()
	<-done
	return w.failed.Load()
}

// spoilt gives a right answer with one fault.
type spoilt struct {
	shared []discovery.Target
	calls  atomic.Int64
	upset  atomic.Bool
	closed atomic.Bool
	fault  string
}

var errSpoilt = errors.New("spoilt")

func (s *spoilt) Lookup(ctx context.Context, q discovery.Query) (discovery.Targets, error) {
	if err := ctx.Err(); err != nil && s.fault != "context ignored" {
		return discovery.Targets{}, err
	}
	if s.closed.Load() && s.fault != "usable after close" {
		return discovery.Targets{}, discovery.ErrClosed
	}
	right := discovery.Targets{List: []discovery.Target{{Host: "a", Port: 1}, {Host: "b", Port: 2}}, Reason: "test"}
	call := s.calls.Add(1)
	switch s.fault {
	case "nothing":
		right.List = nil
	case "no reason":
		right.Reason = ""
	case "negative time to live":
		right.TTL = -1
	case "panics":
		panic(s.fault)
	case "ends its goroutine":
		runtime.Goexit()
	case "invalid":
		right.List[0].Host = "A/"
	case "twice":
		right.List[1] = right.List[0]
	case "always an error":
		return discovery.Targets{}, errSpoilt
	case "answer shared":
		if s.shared == nil {
			s.shared = right.List
		}
		right.List = s.shared
	case "one at a time":
		if call > 1 {
			return discovery.Targets{}, errSpoilt
		}
	case "other answer later":
		if call > 1 {
			right.List = right.List[:1]
		}
	case "pure, and is not":
		if q != Query() && call%3 == 0 {
			right.List = right.List[:1]
		}
	case "upset by a strange query":
		if q != Query() {
			s.upset.Store(true)
		}
		if s.upset.Load() {
			right.List = right.List[:1]
		}
	case "invalid for a strange query":
		if q != Query() {
			right.List[0].Host = q.Service
		}
	case "panics at a strange query":
		if q != Query() {
			panic(s.fault)
		}
	}
	return right, nil
}

func (s *spoilt) Class() discovery.Class { return discovery.Class{Pure: s.fault == "pure, and is not"} }

func (s *spoilt) Close() error {
	if s.closed.Swap(true) && s.fault == "closes once" {
		return errSpoilt
	}
	return nil
}

// A suite that passes everything proves nothing: each fault is found by the part
// that is for it, and an implementation without one passes.
func TestSuiteFindsFaults(t *testing.T) {
	for fault, by := range map[string]string{
		"none":                        "",
		"nothing":                     "finds valid targets without duplicates and says why",
		"no reason":                   "finds valid targets without duplicates and says why",
		"invalid":                     "finds valid targets without duplicates and says why",
		"twice":                       "finds valid targets without duplicates and says why",
		"always an error":             "finds valid targets without duplicates and says why",
		"answer shared":               "the answer belongs to the caller",
		"pure, and is not":            "equal queries get equal answers if the method is pure",
		"one at a time":               "lookups may run at the same time",
		"other answer later":          "lookups may run at the same time",
		"negative time to live":       "finds valid targets without duplicates and says why",
		"panics":                      "lookups may run at the same time",
		"ends its goroutine":          "lookups may run at the same time",
		"panics at a strange query":   "a strange query does no harm",
		"usable after close":          "a closed method says so",
		"closes once":                 "a closed method says so",
		"context ignored":             "an ended context is reported",
		"upset by a strange query":    "a strange query does no harm",
		"invalid for a strange query": "a strange query does no harm",
	} {
		t.Run(fault, func(t *testing.T) {
			for _, part := range parts() {
				if by != "" && by != part.name {
					continue
				}
				failed := fails(t, part, &spoilt{fault: fault})
				if by != "" && !failed {
					t.Errorf("%q lets it pass", part.name)
				}
				if by == "" && failed {
					t.Errorf("%q fails an implementation without a fault", part.name)
				}
			}
		})
	}
}
