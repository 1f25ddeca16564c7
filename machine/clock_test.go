// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// covers F24, F53, I14
//
// The two clocks of one time.Time cannot be moved apart through package time,
// so the test gives both progresses itself.
func TestInstantTakesTheLargerProgress(t *testing.T) {
	wall := time.Unix(1_000_000, 0)
	var ahead time.Duration // By how much the wall clock is ahead of the monotonic one.
	var mono time.Duration
	c := newSystemClock(func() time.Time { return wall })
	at := func() Instant {
		i, ok := c.advance(sample{mono, wall.Add(mono + ahead).UnixNano()})
		require.True(t, ok)
		return i
	}

	mono = time.Second
	require.Equal(t, Instant(time.Second), at(), "equal progress")

	mono, ahead = 2*time.Second, time.Millisecond
	require.Equal(t, Instant(2*time.Second), at(), "small differences are noise")

	mono, ahead = 3*time.Second, time.Minute
	require.Equal(t, Instant(3*time.Second+time.Minute), at(), "a suspend of a minute is seen")

	mono = 4 * time.Second
	require.Equal(t, Instant(4*time.Second+time.Minute), at(), "and counted once")

	mono, ahead = 5*time.Second, -time.Hour
	require.Equal(t, Instant(5*time.Second+time.Minute), at(), "a wall clock that is set back changes nothing")

	mono, ahead = 6*time.Second, -time.Hour+20*time.Second
	require.Equal(t, Instant(6*time.Second+80*time.Second), at(), "and hides no later suspend")
}

// A process that is stopped after it has read one clock and before it reads the other sees two
// clocks that disagree, once. The stop counts as the time that it took, and not twice.
func TestAStopBetweenTheTwoClocksCountsOnce(t *testing.T) {
	const second = int64(time.Second)
	for name, torn := range map[string]sample{
		"the wall clock was read before the stop": {3 * time.Second, second},
		"the wall clock was read after the stop":  {time.Second, 3 * second},
	} {
		t.Run(name, func(t *testing.T) {
			c := newSystemClock(func() time.Time { return time.Unix(0, 0) })
			c.again = func() sample { return sample{3 * time.Second, 3 * second} }
			require.Equal(t, Instant(3*time.Second), c.place(torn))
			require.Equal(t, Instant(4*time.Second), c.place(sample{4 * time.Second, 4 * second}))

			c.again = func() sample { return sample{5 * time.Second, 9 * second} }
			require.Equal(t, Instant(9*time.Second), c.place(sample{5 * time.Second, 9 * second}), "a suspend is shown twice")
			require.Equal(t, Instant(10*time.Second), c.place(sample{6 * time.Second, 10 * second}), "and counted once")
		})
	}
}

func TestSystemClockNeverGoesBack(t *testing.T) {
	c := NewSystemClock()
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			last := c.Instant()
			for range 10_000 {
				now := c.Now().Mono
				if now < last {
					t.Errorf("went back from %d to %d", last, now)
					return
				}
				last = now
			}
		})
	}
	group.Wait()
	require.Zero(t, testing.AllocsPerRun(100, func() { c.Instant() }))
}

func BenchmarkSystemClock(b *testing.B) {
	c := NewSystemClock()
	b.ReportAllocs()
	for b.Loop() {
		_ = c.Instant()
	}
}

// What a look at the clock costs before a message, with the counter and without.
func BenchmarkReader(b *testing.B) {
	for _, with := range []bool{false, true} {
		b.Run(map[bool]string{false: "clock", true: "counter"}[with], func(b *testing.B) {
			c := NewSystemClock()
			if with {
				if err := c.UseCounter(); err != nil {
					b.Log(err) // Then both are the same.
				}
			}
			r := c.Reader()
			for began := c.Instant(); c.Instant() < began.Add(2*calibration); {
				c.Now() // The counter is measured.
			}
			b.ReportAllocs()
			for b.Loop() {
				_ = r.Read()
			}
		})
	}
}
