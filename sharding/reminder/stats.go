// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package reminder

import (
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/sharding/reminder/internal/buckets"
)

// Stats are what a node has and has done. Counters begin with the service.
type Stats struct {
	// What the buckets of this node have at present.
	Buckets   int // How many are here.
	Reminders int // Of the pages that are open.
	InFlight  int // Deliveries under way.
	Retrying  int // Reminders whose delivery was not acknowledged, and is to be repeated.
	Closed    int // Pages that are not open: being read, or not readable.

	// What they have done.
	Fired          uint64 // Deliveries begun, repetitions included.
	Acknowledged   uint64
	Unacknowledged uint64
	PagesClosed    uint64 // Pages that could not be read or saved, each time.

	// Late counts the first deliveries by how late they began: as many as were late by at most the
	// time of the same index in [LateBounds], and not by that of an index before; the last are later
	// than all. A reminder that was due when it was set counts from then.
	Late [lateSteps + 1]uint64
	// LateMax is how late the latest first delivery began.
	LateMax time.Duration
}

// lateSteps is how many bounds there are.
const lateSteps = 6

// LateBounds returns the bounds of [Stats.Late]: 10 ms, 100 ms, 1 s, 10 s, 1 min and 10 min.
func LateBounds() [lateSteps]time.Duration {
	return [...]time.Duration{10 * time.Millisecond, 100 * time.Millisecond, time.Second, 10 * time.Second, time.Minute, 10 * time.Minute}
}

// counts are those of [Stats].
type counts struct {
	fired, acknowledged, unacknowledged, closed atomic.Uint64

	lateness [lateSteps + 1]atomic.Uint64
	latest   atomic.Int64
	logged   atomic.Int64 // When a closed page was logged, in Unix nanoseconds.
}

// late notes how late a first delivery began.
func (c *counts) late(by time.Duration) {
	i := 0
	for _, bound := range LateBounds() {
		if by > bound {
			i++
		}
	}
	c.lateness[i].Add(1)
	for latest := c.latest.Load(); int64(by) > latest && !c.latest.CompareAndSwap(latest, int64(by)); {
		latest = c.latest.Load()
	}
}

// gauge notes what a bucket has, or that it is gone.
func (s *Service) gauge(b *bucket, g buckets.Gauges, gone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if gone {
		delete(s.gauges, b)
		return
	}
	s.gauges[b] = g
}

// Stats returns what this node has and has done.
func (s *Service) Stats() Stats {
	c := &s.counts
	all := Stats{
		Fired: c.fired.Load(), Acknowledged: c.acknowledged.Load(), Unacknowledged: c.unacknowledged.Load(),
		PagesClosed: c.closed.Load(), LateMax: time.Duration(c.latest.Load()),
	}
	for i := range all.Late {
		all.Late[i] = c.lateness[i].Load()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all.Buckets = len(s.gauges)
	for _, g := range s.gauges {
		all.Reminders += g.Reminders
		all.InFlight += g.InFlight
		all.Retrying += g.Retrying
		all.Closed += g.Closed
	}
	return all
}
