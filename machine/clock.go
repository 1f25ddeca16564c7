// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/machine/internal/counter"
)

// A reading of the system's time ([SystemClock.Now], [SystemClock.Instant]) is a sample of its
// two clocks. [SystemClock.place] maps the sample onto the time line by the anchor, and
// [SystemClock.advance] sets a new anchor when the clocks have run apart.

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
// A reading is one reading of the system's time and one atomic load, and allocates nothing; only when the two clocks
// disagree they are read a second time. The zero value is not usable, see [NewSystemClock].
type SystemClock struct {
	origin time.Time
	anchor atomic.Pointer[anchor]
	read   func() time.Time
	again  func() sample // Reads once more; made once, for all readings.
	filter Filter
}

// anchor is a moment at which both clocks were read. Instants after it are
// mono + lead, until the wall clock leads by suspendLead or more.
type anchor struct {
	sample

	lead time.Duration // By how much suspends made instants larger than mono so far.
}

// NewSystemClock returns a clock whose origin is the present.
func NewSystemClock() *SystemClock { return newSystemClock(time.Now) }

func newSystemClock(read func() time.Time) *SystemClock {
	c := &SystemClock{origin: read(), read: read}
	c.again = func() sample { return c.sampleOf(c.read()) }
	c.anchor.Store(&anchor{sample: c.sampleOf(c.origin)})
	c.filter.clock = c.Instant
	return c
}

// UseCounter lets readers spare readings of the clock by the counter of the processor. The
// error says why there is no counter that can be used; readers then read the clock each
// time, as they do without a call of UseCounter. It is called before the clock is shared.
func (c *SystemClock) UseCounter() error {
	if err := counter.Usable(); err != nil {
		return err
	}
	return c.use(counter.Read)
}

// stillAfter is how often a clock is read before it is said to stand still.
const stillAfter = 1000

func (c *SystemClock) use(counter Counter) error {
	for began, i := c.read(), 0; !c.read().After(began); i++ {
		if i == stillAfter {
			return errors.New("the clock stands still while the counter runs, as that of a test does")
		}
	}
	c.filter.counter = counter
	return nil
}

// Reader returns a reader for one goroutine.
func (c *SystemClock) Reader() Reader { return c.filter.Reader() }

// Now returns the present instant and the wall time, and compares the clock with the
// counter, if one is used.
func (c *SystemClock) Now() Now {
	if c.filter.counter == nil {
		t := c.read()
		return Now{Mono: c.instant(t), Wall: t}
	}
	m := c.filter.mark()
	t := c.read()
	now := Now{Mono: c.instant(t), Wall: t}
	c.filter.judge(m, now.Mono)
	return now
}

// Instant returns the present instant alone. It is meant for fast paths.
func (c *SystemClock) Instant() Instant { return c.instant(c.read()) }

// sample is one reading of the system's time: the monotonic clock, since the origin, and the
// wall clock, in Unix nanoseconds. The system reads the one after the other.
type sample struct {
	mono time.Duration
	wall int64
}

// instant maps one reading of the system's time onto the time line.
func (c *SystemClock) instant(t time.Time) Instant { return c.place(c.sampleOf(t)) }

func (c *SystemClock) sampleOf(t time.Time) sample { return sample{t.Sub(c.origin), t.UnixNano()} }

// place maps a sample onto the time line. A sample in which one clock has run away from the
// other is not believed: the process may have been stopped between the readings of the two,
// and that time would count twice, now and when the next sample shows that there is no such
// difference. What a second sample shows too has happened.
func (c *SystemClock) place(s sample) Instant {
	if a := c.anchor.Load(); a.near(s) {
		return Instant(s.mono + a.lead)
	}
	for {
		if i, ok := c.advance(c.again()); ok {
			return i
		}
	}
}

// advance returns the instant of a sample, which sets a new anchor if one clock has run away
// from the other. It reports false when another sample has set a new anchor meanwhile.
func (c *SystemClock) advance(s sample) (Instant, bool) {
	a := c.anchor.Load()
	if a.near(s) {
		return Instant(s.mono + a.lead), true
	}
	// A new anchor in both directions: after the wall clock was set back, the
	// next suspend must not hide behind the difference.
	next := &anchor{sample: s, lead: a.lead + max(a.leadOf(s), 0)}
	return Instant(s.mono + next.lead), c.anchor.CompareAndSwap(a, next)
}

// leadOf returns by how much the wall clock has advanced more than the monotonic one.
func (a *anchor) leadOf(s sample) time.Duration {
	return time.Duration(s.wall-a.wall) - (s.mono - a.mono)
}

// near reports whether the two clocks have advanced by the same since the anchor.
func (a *anchor) near(s sample) bool {
	lead := a.leadOf(s)
	return lead > -suspendLead && lead < suspendLead
}

var _ Clock = (*SystemClock)(nil)
