// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A node that runs messages, in a time of the test (stage): its worker reads the clock by a
// reader, its driver once a heartbeat interval, and the threads of both are interrupted at
// random. Its counter is right (even), or goes wrong at some moment (faults). The tests ask
// whether a reading says what it should, and whether a message begins after the standing of
// the node has ended.

// heartbeats is the longest time between two readings of the clock by the driver.
const heartbeats = time.Second

// stage is a node in a time of the test.
type stage struct {
	rand    *rand.Rand
	now     time.Duration                  // What has really passed.
	ticks   func(at time.Duration) float64 // The ticks of the counter at a moment.
	offset  func(processor uint32) float64 // By how much the counter of a processor is ahead.
	lead    time.Duration                  // By how much the clock is ahead of what has passed.
	driver  time.Duration                  // When the driver reads the clock next.
	driving bool                           // The driver is running.
	frozen  bool                           // The process does not run: neither does its driver.
	pauses  float64                        // The chance of an interruption before and after each reading.
	on      uint32                         // The processor of the worker.
	clockAt time.Duration                  // When the worker read the clock last.
	countAt time.Duration                  // When the worker read the counter last.
	clocks  int                            // How often the worker read the clock.
	filter  *Filter
}

func newStage(seed uint64, ticks func(at time.Duration) float64) *stage {
	s := &stage{rand: rand.New(rand.NewPCG(seed, 1)), ticks: ticks, offset: func(uint32) float64 { return 0 }}
	s.filter = NewFilter(s.clock, s.counter)
	return s
}

// pass lets time pass for the worker; the driver reads the clock meanwhile.
func (s *stage) pass(d time.Duration) {
	if s.driving {
		s.now += d
		return
	}
	end := s.now + d
	for !s.frozen && s.driver <= end {
		s.now, s.driving = max(s.now, s.driver), true
		s.filter.Check()
		s.driving = false
		s.driver += heartbeats/2 + time.Duration(s.rand.Int64N(int64(heartbeats/2)))
	}
	s.now = max(s.now, end)
}

// interrupt may let another thread have the processor, and may move the worker.
func (s *stage) interrupt() {
	if s.driving || s.rand.Float64() >= s.pauses {
		return
	}
	s.pass(time.Duration(math.Exp(s.rand.Float64() * math.Log(float64(50*time.Millisecond)))))
	s.on = s.rand.Uint32N(2)
}

func (s *stage) clock() Instant {
	s.interrupt()
	s.pass(20)
	at := s.now
	s.pass(20)
	if !s.driving {
		s.clockAt = at
		s.clocks++
	}
	s.interrupt()
	return Instant(at + s.lead)
}

func (s *stage) counter() (uint64, uint32) {
	s.interrupt()
	s.pass(10)
	on := s.on
	if s.driving {
		on = 0
	} else {
		s.countAt = s.now
	}
	ticks := uint64(int64(s.ticks(s.now) + s.offset(on)))
	s.pass(10)
	s.interrupt()
	return ticks, on
}

// look reads the clock by a reader, and returns the reading and the moment for which it is.
func (s *stage) look(read func() Reading) (Reading, time.Duration) {
	clocks := s.clocks
	now := read()
	if s.clocks > clocks {
		return now, s.clockAt
	}
	return now, s.countAt
}

// begins reports whether a message begins before an instant, as a worker decides, and when.
func (s *stage) begins(r *Reader, end Instant) (bool, time.Duration) {
	const margin = heartbeats + FilterMargin
	now, at := s.look(r.Read)
	if !now.Full() && !now.NotAfter(end, margin) {
		now, at = s.look(r.ReadInFull)
	}
	return now.NotAfter(end, margin), at
}

// even returns the ticks of a counter that is right.
func even(rate float64) func(time.Duration) float64 {
	return func(at time.Duration) float64 { return 1e12 + rate*float64(at) }
}

// rates are those of the counters of processors, in ticks a nanosecond.
var rates = []float64{0.025, 0.1, 1, 2.45, 5}

// message draws how long a message takes: mostly very short.
func (s *stage) message() time.Duration {
	return time.Duration(math.Exp(math.Log(50) + s.rand.ExpFloat64()*2))
}

func TestReadingsHoldThePresent(t *testing.T) {
	for seed := range uint64(10) {
		rate := rates[seed%uint64(len(rates))]
		s := newStage(seed, even(rate))
		s.pauses = 0.001
		s.pass(3 * time.Second)
		r := s.filter.Reader()
		var last Reading
		for range 20_000 {
			began := s.now
			now, looked := s.look(r.Read)
			at := Instant(looked)
			require.LessOrEqual(t, now.From, at, "seed %d", seed)
			require.GreaterOrEqual(t, now.To, at, "seed %d: at %v, read since %v", seed, s.now, began)
			require.LessOrEqual(t, now.To.Sub(now.From), readingSlack)
			require.GreaterOrEqual(t, now.From, last.From, "a reader's time goes back")
			last = now
			s.pass(s.message())
		}
		require.NotNil(t, s.filter.pace.Load())
	}
}

func TestReadersSpareMostReadings(t *testing.T) {
	for _, rate := range rates {
		s := newStage(0, even(rate))
		s.pass(3 * time.Second)
		r := s.filter.Reader()
		for range 10_000 {
			r.Read()
			s.pass(200)
		}
		require.Less(t, s.clocks, 10_000/50, "rate %v", rate)
	}
}

// fault makes a counter go wrong at a moment; size says by how much.
type fault struct {
	name  string
	ticks func(rate, size float64, since time.Duration) float64 // What is added to the ticks of an even counter.
}

var faults = []fault{
	{"nothing", func(_, _ float64, _ time.Duration) float64 { return 0 }},
	{"stops", func(rate, _ float64, since time.Duration) float64 { return -rate * float64(since) }},
	{"stops for a while", func(rate, size float64, since time.Duration) float64 {
		return -rate * min(float64(since), size*1e9)
	}},
	{"goes back", func(rate, size float64, _ time.Duration) float64 { return -rate * size * 3e9 }},
	{"jumps ahead", func(rate, size float64, _ time.Duration) float64 { return rate * size * 1e12 }},
	{"runs backwards", func(rate, _ float64, since time.Duration) float64 { return -2 * rate * float64(since) }},
	{"slows down", func(rate, size float64, since time.Duration) float64 {
		return (math.Pow(10, -6*size) - 1) * rate * float64(since)
	}},
	{"speeds up", func(rate, size float64, since time.Duration) float64 {
		return (math.Pow(10, 6*size) - 1) * rate * float64(since)
	}},
	{"comes to rest", func(rate, size float64, since time.Duration) float64 {
		return -rate * (float64(since) - size*1e6*(1-math.Exp(-float64(since)/(size*1e6))))
	}},
	{"goes in steps", func(rate, size float64, since time.Duration) float64 {
		return rate * (math.Floor(float64(since)/(size*1e9))*size*1e9 - float64(since))
	}},
}

// Whatever the counter does, nothing begins after the standing has ended, as long as the
// driver of the node reads the clock.
func TestNothingBeginsAfterTheEndWhateverTheCounterDoes(t *testing.T) {
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			for seed := range uint64(200) {
				late(t, seed, f)
			}
		})
	}
}

// late runs messages around the moment at which the counter goes wrong, and around the end
// of the standing.
func late(t *testing.T, seed uint64, f fault) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 2))
	rate, size := rates[rnd.IntN(len(rates))], rnd.Float64()
	wrong := 2*time.Second + time.Duration(rnd.Int64N(int64(2*time.Second)))
	right := even(rate)
	s := newStage(seed, func(at time.Duration) float64 {
		if at < wrong {
			return right(at)
		}
		return right(at) + f.ticks(rate, size, at-wrong)
	})
	s.pauses = 0.0005
	length := float64(time.Microsecond) * math.Pow(10, 5*rnd.Float64()) // Of most messages.
	end := wrong + time.Duration(min(length*math.Pow(10, 3*rnd.Float64()), float64(4*time.Second)))
	if seed%2 == 0 { // Near the end of what a reading may be believed for.
		length, size = float64(10*time.Millisecond), 1-size/4
		end = wrong + heartbeats + FilterMargin + time.Duration(rnd.Int64N(int64(heartbeats)))
	}
	s.pass(wrong - time.Duration(10*length))
	r := s.filter.Reader()
	for s.now < end+time.Duration(10*length) {
		if begins, at := s.begins(&r, Instant(end)); begins {
			require.LessOrEqual(t, at, end, "seed %d: a message begins %v late, the counter is wrong since %v before the end", seed, at-end, end-wrong)
		}
		s.pass(time.Duration(length * rnd.ExpFloat64()))
	}
}

// A process that is stopped, or that no processor is given to, has a counter that goes on,
// or that begins anew. What it does first afterwards knows of the pause, before the driver.
func TestAPauseIsSeenByTheFirstReading(t *testing.T) {
	for seed := range uint64(50) {
		for _, after := range []func(now, last float64) float64{
			func(now, _ float64) float64 { return now },           // It went on.
			func(_, _ float64) float64 { return 0 },               // It was reset.
			func(_, last float64) float64 { return last / 2 },     // That of another machine, which is behind.
			func(now, last float64) float64 { return now + last }, // That of another machine, which is ahead.
		} {
			right := even(2.45)
			ticks := right
			s := newStage(seed, func(at time.Duration) float64 { return ticks(at) })
			s.pass(3 * time.Second)
			r := s.filter.Reader()
			for range s.rand.IntN(200) {
				r.Read()
				s.pass(s.message())
			}
			pause := 50*time.Microsecond + time.Duration(s.rand.Int64N(int64(10*time.Second)))
			last, thaw := ticks(s.now), s.now+pause
			begin := after(right(thaw), last)
			ticks = func(at time.Duration) float64 { return begin + 2.45*float64(at-thaw) }
			s.frozen = true
			s.pass(pause)
			end := Instant(s.now - 1)
			begins, _ := s.begins(&r, end)
			require.False(t, begins, "seed %d: a pause of %v is not seen", seed, pause)
		}
	}
}

// A machine that stands still with its counter, and is told the time afterwards, may take an
// old reading for as long as a reading is good, and no longer: see DESIGN.md for where a
// kernel lets that happen.
func TestACounterThatSleptIsBelievedForAMomentOnly(t *testing.T) {
	for seed := range uint64(50) {
		slept := time.Duration(0)
		right := even(2.45)
		s := newStage(seed, func(at time.Duration) float64 { return right(at - slept) })
		s.pass(3 * time.Second)
		r := s.filter.Reader()
		r.Read()
		slept = 5 * time.Second
		s.frozen = true
		s.pass(slept)
		woken, end := s.now, Instant(s.now-1)
		for s.now < woken+time.Millisecond {
			if begins, at := s.begins(&r, end); begins {
				require.Less(t, at-woken, readingAge, "seed %d", seed)
			}
			s.pass(s.message())
		}
	}
}

// Each processor has a counter of its own, they differ, and a reader is moved between them
// all the time. A difference of a millisecond is more than kernels let pass; readings hold
// the present all the same. A larger one spoils the rate that is measured across it, by no
// more than the margin has room for.
func TestCountersThatDifferProlongNothing(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		rate := rates[rnd.IntN(len(rates))]
		skew := math.Pow(10, 10*rnd.Float64()) // From 1 ns to 10 s.
		s := newStage(seed, even(rate))
		s.offset = func(processor uint32) float64 { return rate * skew * (0.5 - float64(processor)) }
		s.pauses = 0.02
		end := time.Duration(rnd.Int64N(int64(4 * time.Second)))
		r := s.filter.Reader()
		for s.now < end+50*time.Millisecond {
			now, at := s.look(r.Read)
			if skew < float64(time.Millisecond) {
				require.GreaterOrEqual(t, now.To, Instant(at), "seed %d: counters differ by %v", seed, time.Duration(skew))
			}
			if begins, at := s.begins(&r, Instant(end)); begins {
				require.LessOrEqual(t, at, end, "seed %d: a message begins %v late", seed, at-end)
			}
			s.pass(s.message() + time.Duration(rnd.Int64N(int64(100*time.Microsecond))))
		}
	}
}

// The system's time is two clocks that are read one after the other, and the thread may be
// stopped in between. The clock then takes the pause for a suspend as well, and runs ahead
// by it. So it may seem to be faster than it is, never slower: a counter is never taken to
// be faster than it is, and a standing never to last longer.
func TestAStopBetweenTheTwoClocksFoolsNoMeasurement(t *testing.T) {
	torn := 0
	for seed := range uint64(60) {
		s := newStage(seed, even(2.45))
		s.pauses = 0.02
		began := time.Unix(1_000_000, 0)
		clock := newSystemClock(func() time.Time { return began })
		stops := rand.New(rand.NewPCG(seed, 4))
		type pair struct {
			passed time.Duration
			shown  Instant
		}
		var last pair
		s.filter.clock = func() Instant {
			s.interrupt()
			wall := began.Add(s.now).UnixNano()
			if s.interrupt(); stops.IntN(2000) == 0 {
				s.pass(time.Duration(stops.Int64N(int64(200 * time.Millisecond))))
				torn++
			}
			mono := s.now
			shown, ok := clock.advance(sample{mono, wall})
			require.True(t, ok, "nobody else sets an anchor")
			if mono >= last.passed {
				require.GreaterOrEqual(t, shown.Sub(last.shown), mono-last.passed, "the clock is slow")
				last = pair{mono, shown}
			}
			if !s.driving {
				s.clockAt = mono
				s.clocks++
			}
			s.interrupt()
			return shown
		}
		r := s.filter.Reader()
		from := r.ReadInFull().From
		standing := heartbeats + FilterMargin + time.Duration(stops.Int64N(int64(2*time.Second)))
		end, ended := from.Add(standing), s.clockAt+standing
		for s.now < ended+10*time.Millisecond {
			if begins, at := s.begins(&r, end); begins {
				require.LessOrEqual(t, at, ended, "seed %d: a message begins %v late", seed, at-ended)
			}
			if p := s.filter.pace.Load(); p != nil {
				require.LessOrEqual(t, p.rate, 2.45*(1+1e-6), "seed %d: the counter is taken to be faster", seed)
			}
			s.pass(s.message() + time.Duration(stops.Int64N(int64(time.Millisecond))))
		}
	}
	require.NotZero(t, torn)
}

// What makes a reader read the clock although the counter shows a short time.
func TestDoubtsEndAReading(t *testing.T) {
	s := newStage(0, even(1))
	s.pass(3 * time.Second)
	r := s.filter.Reader()
	fresh := func() bool {
		before := s.clocks
		r.Read()
		return s.clocks == before
	}
	require.False(t, fresh(), "a reader has no reading at first")
	require.True(t, fresh())

	s.on = 1
	require.False(t, fresh(), "another processor")
	require.True(t, fresh())

	at := s.now
	s.ticks = func(time.Duration) float64 { return even(1)(at) }
	require.True(t, fresh(), "the counter has gone on since the last reading")
	require.False(t, fresh(), "the counter stands still")
	require.False(t, fresh())
	s.ticks = even(1)
	require.True(t, fresh())

	s.lead = time.Minute
	s.filter.Check()
	require.False(t, fresh(), "somebody has seen the clock jump")
	require.False(t, fresh(), "the counter is measured anew")
	s.pass(2 * heartbeats)
	require.False(t, fresh())
	require.True(t, fresh(), "it was measured")
}

// Where there is no counter, the clock is read each time.
func TestWithoutACounterEveryReadingIsFull(t *testing.T) {
	s := newStage(0, even(1))
	s.filter = NewFilter(s.clock, nil)
	r := s.filter.Reader()
	for range 100 {
		s.filter.Check()
		require.True(t, r.Read().Full())
	}
}

func TestCountersThatAreNoneAreNotUsed(t *testing.T) {
	for _, rate := range []float64{0, 1e-6, 1e3, -1} {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			s := newStage(0, even(rate))
			r := s.filter.Reader()
			for range 1000 {
				require.True(t, r.Read().Full())
				require.True(t, r.Read().Full())
				s.pass(10 * time.Millisecond)
			}
		})
	}
}
