// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package fdtest

import (
	"math"
	"testing"
	"time"

	"github.com/quorate/quorate/fd"
)

// witness is a testing.TB that remembers a failure instead of reporting it.
type witness struct {
	testing.TB
	failed bool
}

func (w *witness) Helper()               {}
func (w *witness) Errorf(string, ...any) { w.failed = true }
func (w *witness) Logf(string, ...any)   {}
func (w *witness) Failed() bool          { return w.failed }

// spoilt is a deadline detector with one fault.
type spoilt struct {
	*fd.Deadline
	last  time.Time
	asked int
	fault string
}

func (s *spoilt) Heartbeat(at time.Time) {
	if s.fault == "old answers count" || at.After(s.last) {
		s.last = at
	}
	s.Deadline.Heartbeat(at)
}

func (s *spoilt) Monitoring() bool {
	return s.fault == "monitoring unheard" || s.fault != "never monitoring" && s.Deadline.Monitoring()
}

func (s *spoilt) Available(at time.Time) bool {
	s.asked++
	silence := at.Sub(s.last)
	switch s.fault {
	case "old answers count":
		return !s.Monitoring() || silence < limit
	case "flaps":
		return silence%(2*limit) < limit
	case "questions count":
		return silence < limit+time.Duration(s.asked)*time.Millisecond
	case "origin matters":
		return s.Deadline.Available(at) && silence < limit-time.Duration(at.Unix()%2)*time.Second
	}
	return s.Deadline.Available(at)
}

// Phi makes spoilt an accrual detector, whose phi can be faulty too.
func (s *spoilt) Phi(at time.Time) float64 {
	switch silence := at.Sub(s.last).Seconds(); s.fault {
	case "phi falls":
		return 100 - silence
	case "phi is infinite":
		return math.Inf(1)
	case "phi is no number":
		return math.NaN()
	default:
		return silence
	}
}

const limit = 4 * time.Second

// A suite that passes everything proves nothing: each fault is found by its part of
// the suite, and a detector without a fault passes.
func TestSuiteFindsFaults(t *testing.T) {
	for fault, by := range map[string]string{
		"none":               "",
		"monitoring unheard": "a node that was never heard is available",
		"never monitoring":   "an answer makes it monitored and available",
		"flaps":              "in silence the verdict turns at most once",
		"phi falls":          "in silence the verdict turns at most once",
		"phi is infinite":    "in silence the verdict turns at most once",
		"phi is no number":   "in silence the verdict turns at most once",
		"questions count":    "questions change nothing",
		"old answers count":  "an answer older than the latest is ignored",
		"origin matters":     "the origin of time does not matter",
	} {
		t.Run(fault, func(t *testing.T) {
			for _, part := range parts() {
				if by != "" && by != part.name {
					continue
				}
				w := &witness{TB: t}
				part.run(w, func(testing.TB) fd.Detector {
					d, err := fd.NewDeadline(limit)
					if err != nil {
						t.Fatal(err)
					}
					return &spoilt{Deadline: d, fault: fault}
				})
				if by != "" && !w.failed {
					t.Errorf("%q lets it pass", part.name)
				}
				if by == "" && w.failed {
					t.Errorf("%q fails a detector without a fault", part.name)
				}
			}
		})
	}
}
