// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"sync/atomic"
	"time"
)

// A reading of the clock costs more than most of what is done for a message, and one is
// needed before each message. The counter of the processor costs less. So a goroutine has a
// [Reader]: Read takes the last reading again while the counter shows that hardly any time
// has passed, and reads the clock in full otherwise. Full readings compare the counter with
// the clock (judge, compare): that is how the rate of the counter is found, and how it is
// noticed that the counter is not what it was. DESIGN.md says why that is safe.

// Counter reads a counter of ticks that runs at one rate, and says which processor was
// asked. It may be wrong: see [Filter].
type Counter func() (ticks uint64, processor uint32)

// Reading says that the present was not before From and, if the counter has not slowed down
// to less than half of its rate, was not after To. Both are equal if the clock was read in
// full, and then hold whatever the counter does.
type Reading struct{ From, To Instant }

// Full reports whether the clock was read in full.
func (r Reading) Full() bool { return r.From == r.To }

// NotAfter reports whether the reading proves that the present is not after an instant. A
// reading that is not full proves nothing if the instant is nearer than margin.
func (r Reading) NotAfter(end Instant, margin time.Duration) bool {
	if r.Full() {
		return r.To <= end
	}
	return r.To <= end.Add(-margin)
}

const (
	// readingAge is the time by the counter for which a reading of the clock is good.
	readingAge = 20 * time.Microsecond
	// readingSlack is by how much To is after From: a reading may be older than readingAge,
	// by as much as the counter is slower than it was.
	readingSlack = 2 * readingAge

	// calibration is the least time over which the rate of the counter is measured, and
	// renewal that after which the rate is measured anew.
	calibration = 250 * time.Millisecond
	renewal     = time.Second
	// measured is how many times as long as the two readings between which it is made a
	// first measurement takes, at least: a thread may be interrupted within a reading.
	measured = 1000
	// disagreement is the difference between the progress of the counter and that of the
	// clock at which the counter is not used until it has been measured anew.
	disagreement = 20 * time.Millisecond

	// rateMin and maxRate bound the ticks in a nanosecond of a counter that is used: what is
	// beyond is no counter, or a clock that jumps.
	rateMin, maxRate = 0.001, 10
)

// FilterMargin is how much longer than the time between two readings of the clock by
// [SystemClock.Now], or two calls of [Filter.Check], a reading may seem good because of a
// counter that has stopped or slowed down. It has room for two measurements of the rate
// that the fault spoils by as much as is not noticed.
const FilterMargin = 5 * disagreement

// Filter spares readings of a clock where a counter shows that hardly any time has passed
// since the last one. Use [NewFilter], or that of a [SystemClock]. Methods are safe for
// concurrent use.
type Filter struct {
	clock   func() Instant
	counter Counter // Nil: every reading is in full.
	pace    atomic.Pointer[pace]
}

// pace is what is known of a counter, since a moment at which counter and clock were read.
// It is replaced, never changed: a reader takes no reading again that was taken before.
type pace struct {
	ticks  uint64 // Of the counter, right after at was read.
	spread uint64 // The ticks between the readings of the counter before at and after at.
	at     Instant
	rate   float64 // Ticks in a nanosecond, rather too few; zero while it is measured.
	window uint64  // The ticks in readingAge; zero while the rate is measured.
}

// NewFilter returns a filter for a clock. Without a counter it spares nothing.
func NewFilter(clock func() Instant, counter Counter) *Filter {
	return &Filter{clock: clock, counter: counter}
}

// Check compares counter and clock. Who calls it now and then bounds, by the time between
// two calls, for how long a counter that has gone wrong is believed.
func (f *Filter) Check() {
	if f.counter != nil {
		m := f.mark()
		f.judge(m, f.clock())
	}
}

// Reader returns a reader for one goroutine.
func (f *Filter) Reader() Reader { return Reader{filter: f} }

// mark is one reading of the counter.
type mark struct {
	ticks     uint64
	processor uint32
}

func (f *Filter) mark() mark {
	ticks, processor := f.counter()
	return mark{ticks, processor}
}

// judge compares the counter with an instant that has been read after before. It returns
// the pace by which the instant can be taken again, and a mark that is after it; nil if it
// cannot.
func (f *Filter) judge(before mark, at Instant) (*pace, mark) {
	after, p := f.mark(), f.pace.Load()
	if after.processor != before.processor {
		return nil, after
	}
	next := p.compare(before.ticks, after.ticks, at)
	if next != p && !f.pace.CompareAndSwap(p, next) || next == nil || next.window == 0 || after.ticks-before.ticks > next.window {
		return nil, after
	}
	return next, after
}

// compare returns what is known of the counter after an instant that was read between two
// readings of the counter.
func (p *pace) compare(before, after uint64, at Instant) *pace {
	if after < before {
		return nil
	}
	here := pace{ticks: after, spread: after - before, at: at}
	if p == nil {
		return here.kept()
	}
	passed := at.Sub(p.at)
	ticks := float64(int64(before - p.ticks)) // Counters that go back are meant.
	if p.rate == 0 {
		switch sharp := uint64(max(ticks, 0) / measured); {
		case passed < calibration || here.spread > sharp && p.spread <= sharp:
			return p
		case p.spread > sharp:
			return here.kept()
		}
		return here.running(ticks / float64(passed))
	}
	if here.spread > p.window {
		return p // What came between the readings says nothing about the counter.
	}
	if off := ticks/p.rate - float64(passed); off > float64(disagreement) || off < -float64(disagreement) {
		return here.kept()
	}
	if passed < renewal {
		return p
	}
	return here.running(ticks / float64(passed))
}

// kept returns the pace with memory of its own. Most readings tell nothing new, and need none.
func (p pace) kept() *pace { return &p }

// running returns a pace with a rate that was measured, or without one if no counter has it.
func (p pace) running(rate float64) *pace {
	if rate >= rateMin && rate <= maxRate {
		p.rate, p.window = rate, uint64(rate*float64(readingAge))
	}
	return &p
}

// Reader reads a clock again and again for one goroutine, which must not share it. A
// Reader is made by [SystemClock.Reader] or [Filter.Reader].
type Reader struct {
	filter *Filter
	pace   *pace  // By which at may be taken again; nil: not at all.
	first  mark   // Of the counter, right before the clock was read.
	last   uint64 // The latest ticks that were seen.
	at     Instant
}

// Read returns a reading of the clock: the last one again while the counter says that it is
// fresh, which takes that the counter is on the processor that it was on, has gone on since
// it was last read, and by less than readingAge altogether.
func (r *Reader) Read() Reading {
	if p := r.pace; p != nil && p == r.filter.pace.Load() {
		m := r.filter.mark()
		if m.processor == r.first.processor && m.ticks > r.last && m.ticks-r.first.ticks < p.window {
			r.last = m.ticks
			return Reading{r.at, r.at.Add(readingSlack)}
		}
	}
	return r.ReadInFull()
}

// ReadInFull returns a reading for which the clock was read.
func (r *Reader) ReadInFull() Reading {
	f := r.filter
	if f.counter == nil {
		now := f.clock()
		return Reading{now, now}
	}
	r.first = f.mark()
	r.at = f.clock()
	var after mark
	r.pace, after = f.judge(r.first, r.at)
	r.last = after.ticks
	return Reading{r.at, r.at}
}
