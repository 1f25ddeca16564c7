// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/machine/internal/counter"
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
	filter Filter
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
