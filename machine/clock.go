// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"sync/atomic"
	"time"
)

// Clock supplies the time to a [Driver]. Now is called from several goroutines at
// once. The field Mono of its result never goes back from one call to a later one.
type Clock interface {
	Now() Now
}

// suspendLead is the smallest lead of the wall clock over the monotonic clock
// that counts as time that really passed. Below it lie the few hundred
// nanoseconds, rarely milliseconds, between the two readings that make up one
// reading of the system's time.
const suspendLead = 10 * time.Millisecond

// SystemClock is the clock of the machine that the process runs on.
//
// Its instants advance with the LARGER of the progress of the monotonic clock
// and the progress of the wall clock. Go's monotonic clock stands still while
// the system is suspended, the wall clock does not: a node that slept for a
// minute must find that out before it believes that it still has standing.
// The price is that a wall clock that is set forward looks like a suspend. A
// wall clock that is set back changes nothing.
//
// A reading is one reading of the system's time and one atomic load, and
// allocates nothing. The zero value is not usable, see [NewSystemClock].
type SystemClock struct {
	origin time.Time
	anchor atomic.Pointer[anchor]
	read   func() time.Time
}

// anchor is a moment at which both clocks were read. Instants after it are
// mono + lead, until the wall clock leads by suspendLead or more.
type anchor struct {
	mono time.Duration // Monotonic time since the origin.
	wall int64         // Unix nanoseconds.
	lead time.Duration // By how much suspends made instants larger than mono so far.
}

// NewSystemClock returns a clock whose origin is the present.
func NewSystemClock() *SystemClock { return newSystemClock(time.Now) }

func newSystemClock(read func() time.Time) *SystemClock {
	c := &SystemClock{origin: read(), read: read}
	c.anchor.Store(&anchor{wall: c.origin.UnixNano()})
	return c
}

// Now returns the present instant and the wall time.
func (c *SystemClock) Now() Now {
	t := c.read()
	return Now{Mono: c.instant(t), Wall: t}
}

// Instant returns the present instant alone. It is meant for fast paths.
func (c *SystemClock) Instant() Instant { return c.instant(c.read()) }

// instant maps one reading of the system's time onto the time line.
func (c *SystemClock) instant(t time.Time) Instant {
	for {
		if i, ok := c.advance(t.Sub(c.origin), t.UnixNano()); ok {
			return i
		}
		t = c.read()
	}
}

// advance returns the instant of a reading. It reports false when another reading has
// set a new anchor meanwhile.
func (c *SystemClock) advance(mono time.Duration, wall int64) (Instant, bool) {
	a := c.anchor.Load()
	lead := time.Duration(wall-a.wall) - (mono - a.mono)
	if lead > -suspendLead && lead < suspendLead {
		return Instant(mono + a.lead), true
	}
	// A new anchor in both directions: after the wall clock was set back, the
	// next suspend must not hide behind the difference.
	next := &anchor{mono: mono, wall: wall, lead: a.lead + max(lead, 0)}
	return Instant(mono + next.lead), c.anchor.CompareAndSwap(a, next)
}

var _ Clock = (*SystemClock)(nil)
