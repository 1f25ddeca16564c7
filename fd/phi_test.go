// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package fd_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/fd/fdtest"
)

func TestBuiltInDetectorsKeepTheContract(t *testing.T) {
	for _, strategy := range []string{fd.StrategyPhiAccrual, fd.StrategyDeadline} {
		t.Run(strategy, func(t *testing.T) {
			config := fd.Default()
			config.Strategy = strategy
			factory, err := fd.NewFactory(config)
			require.NoError(t, err)
			fdtest.TestDetector(t, func(testing.TB) fd.Detector { return factory() })
			t.Run("bounded", func(t *testing.T) {
				fdtest.TestDetector(t, func(testing.TB) fd.Detector {
					return fd.NewBounded(factory(), config.Bounds())
				})
			})
		})
	}
}

func newPhi(t testing.TB, config fd.Config) *fd.PhiAccrual {
	t.Helper()
	p, err := fd.NewPhiAccrual(config)
	require.NoError(t, err)
	return p
}

// beat feeds a detector with n regular answers and returns the time of the last.
func beat(d fd.Detector, now time.Time, n int, interval time.Duration) time.Time {
	for range n {
		now = now.Add(interval)
		d.Heartbeat(now)
	}
	return now
}

// The values are those of the published formula, worked out apart from the code
// with 50 digits: mean and deviation of the intervals, the pause added to the
// mean, phi = -log10(e/(1+e)) with e = exp(-y(1.5976+0.070566 y^2)).
func TestPhiIsThatOfTheFormula(t *testing.T) {
	for _, tc := range []struct {
		name     string
		interval time.Duration
		silence  time.Duration
		phi      float64
	}{
		// 1000 regular answers push the bootstrap out: mean 4 s, deviation 0.1 s.
		{"at the mean", time.Second, 4 * time.Second, math.Log10(2)},
		{"one deviation above", time.Second, 4100 * time.Millisecond, 0.7995083208},
		{"one deviation below", time.Second, 3900 * time.Millisecond, 0.0750330321},
		{"five deviations above", time.Second, 4500 * time.Millisecond, 7.2999473945},
		{"far above", time.Second, time.Hour, fd.MaxPhi},
		{"no silence", time.Second, 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newPhi(t, fd.Default())
			now := beat(p, start, 1100, tc.interval)
			require.InDelta(t, tc.phi, p.Phi(now.Add(tc.silence)), 1e-9)
		})
	}
}

func TestPhiBeginsWithABootstrapOfTheExpectedInterval(t *testing.T) {
	p := newPhi(t, fd.Default())
	require.Zero(t, p.Phi(start.Add(time.Hour)), "nothing was heard")
	p.Heartbeat(start)
	// Samples 0.75 and 1.25 s: mean 1 + 3 s, deviation 0.25 s.
	require.InDelta(t, math.Log10(2), p.Phi(start.Add(4*time.Second)), 1e-12)
	require.InDelta(t, 0.7995083208, p.Phi(start.Add(4250*time.Millisecond)), 1e-9)
}

// A node with regular answers is suspected after 4.5 s, a node with irregular answers
// after much longer, which is why there are bounds.
func TestPhiAloneHasNoUpperBound(t *testing.T) {
	crossing := func(p *fd.PhiAccrual, now time.Time) time.Duration {
		b := time.Duration(0)
		for p.Available(now.Add(b)) {
			b += 10 * time.Millisecond
		}
		return b
	}
	regular := newPhi(t, fd.Default())
	require.InDelta(t, 4.52, crossing(regular, beat(regular, start, 1100, time.Second)).Seconds(), 0.02)

	config := fd.Default()
	config.MinStdDeviation = 2 * time.Second
	irregular := newPhi(t, config)
	require.InDelta(t, 14.4, crossing(irregular, beat(irregular, start, 1100, time.Second)).Seconds(), 0.1)
}

func TestPhiDoesNotLearnFromAnOutage(t *testing.T) {
	p, twin := newPhi(t, fd.Default()), newPhi(t, fd.Default())
	now := beat(p, start, 50, time.Second)
	beat(twin, start, 50, time.Second)
	later := now.Add(time.Minute)
	require.False(t, p.Available(later))
	p.Heartbeat(later)
	require.InDelta(t, twin.Phi(now.Add(4*time.Second)), p.Phi(later.Add(4*time.Second)), 0)
}

// The sums of the history are exact, so a detector that has seen 200,000 irregular
// answers gives the verdicts of a detector that has seen only the answers in the
// history.
func TestPhiDoesNotDrift(t *testing.T) {
	config := fd.Default()
	config.MaxSampleSize = 100
	random := rand.New(rand.NewPCG(1, 2))
	old, young := newPhi(t, config), newPhi(t, config)
	now := start
	old.Heartbeat(now)
	for i := range 200_000 {
		now = now.Add(time.Duration(random.Int64N(int64(2 * time.Second))))
		old.Heartbeat(now)
		if i >= 200_000-1-config.MaxSampleSize {
			young.Heartbeat(now)
		}
	}
	for _, silence := range []time.Duration{0, time.Second, 4 * time.Second, 10 * time.Second} {
		require.InDelta(t, young.Phi(now.Add(silence)), old.Phi(now.Add(silence)), 0)
	}
}

// Covers I11: phi is finite, at least 0, non-decreasing in silence, and an answer
// resets it below any allowed threshold.
func TestPhiRisesInSilenceAndFallsWithAnAnswer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		config := drawConfig(t)
		p, err := fd.NewPhiAccrual(config)
		require.NoError(t, err)
		now := start
		for _, gap := range rapid.SliceOfN(drawGap, 1, 60).Draw(t, "gaps") {
			now = now.Add(gap)
			p.Heartbeat(now)
			require.Less(t, p.Phi(now), 0.31, "an answer resets phi")
			require.True(t, p.Available(now))
		}
		at, before := now.Add(-time.Minute), 0.0
		for _, step := range rapid.SliceOfN(drawStep, 1, 60).Draw(t, "steps") {
			at = at.Add(step)
			suspicion := p.Phi(at)
			checkPhi(t, suspicion)
			require.GreaterOrEqual(t, suspicion, before, "phi fell in silence")
			before = suspicion
		}
	})
}

// drawStep is often a nanosecond, where rounding would show.
var drawStep = rapid.OneOf(rapid.Just(time.Duration(1)), drawGap)

func checkPhi(t require.TestingT, phi float64) {
	require.False(t, math.IsNaN(phi) || math.IsInf(phi, 0), "phi is %v", phi)
	require.GreaterOrEqual(t, phi, 0.0)
	require.LessOrEqual(t, phi, float64(fd.MaxPhi))
}

// FuzzPhiTrace reads a history of gaps and checks every judgement on the way.
// Covers I11.
func FuzzPhiTrace(f *testing.F) {
	f.Add([]byte{}, uint16(8))                                   // Nothing heard.
	f.Add([]byte{0, 1}, uint16(8))                               // One answer.
	f.Add([]byte{40, 1, 40, 1, 40, 1}, uint16(8))                // Regular.
	f.Add([]byte{0, 0, 0, 0, 0, 0}, uint16(1))                   // All at once.
	f.Add([]byte{33, 9, 50, 200, 33, 9, 63, 255}, uint16(20))    // An outage, and hours.
	f.Add([]byte{128 + 30, 7, 30, 9, 128 + 45, 3}, uint16(999))  // Answers from the past.
	f.Add([]byte{62, 255, 62, 255, 62, 255, 40, 1}, uint16(300)) // Nothing but outages.
	f.Fuzz(func(t *testing.T, gaps []byte, threshold uint16) {
		config := fd.Default()
		config.Threshold = 1 + float64(threshold%(fd.MaxPhi-1))
		config.MaxSampleSize = 2 + int(threshold%50)
		p := newPhi(t, config)
		b := fd.NewBounded(newPhi(t, config), config.Bounds())
		now := start
		for ; len(gaps) >= 2; gaps = gaps[2:] {
			at := now.Add(fuzzGap(gaps[0], gaps[1]))
			checkPhi(t, p.Phi(at))
			p.Heartbeat(at)
			b.Heartbeat(at)
			if at.After(now) || !p.Monitoring() {
				now = at
			}
			checkPhi(t, p.Phi(now.Add(1<<62)))
			require.True(t, b.Available(at))
			require.True(t, p.Available(at))
			if limit, heard := b.Limit(); heard {
				require.True(t, b.Available(limit.Add(-1)))
				require.False(t, b.Available(limit))
			}
		}
	})
}

// fuzzGap is a mantissa and an exponent, with the highest bit for the sign.
func fuzzGap(exponent, mantissa byte) time.Duration {
	gap := time.Duration(mantissa) << min(exponent&0x7f, 52)
	if exponent&0x80 != 0 {
		return -gap
	}
	return gap
}

// False suspicions of a healthy node stay below the rate at which chance loses
// as many answers in a row as a suspicion takes, over a grid of loss, jitter and
// pauses, and a dead node is found within the bounds. The history is seeded, so
// the figures are the same in each run. Covers I11.
func TestFalseSuspicionsAndDetectionTimeStayWithinBounds(t *testing.T) {
	const hours = 20
	for _, tc := range []struct {
		name         string
		loss         float64
		jitter       time.Duration
		pause        time.Duration // Once a minute.
		perHourLimit float64
	}{
		{"quiet", 0, 10 * time.Millisecond, 0, 0},
		{"jitter", 0, 900 * time.Millisecond, 0, 0},
		{"pauses", 0, 100 * time.Millisecond, 2500 * time.Millisecond, 0},
		{"loss 1 %", 0.01, 100 * time.Millisecond, 0, 3600 * math.Pow(0.01, 4) * 10},
		{"loss 5 %", 0.05, 100 * time.Millisecond, 0, 3600 * math.Pow(0.05, 4) * 4},
		{"loss 10 % and jitter", 0.1, 500 * time.Millisecond, 0, 3600 * math.Pow(0.1, 4) * 4},
	} {
		t.Run(tc.name, func(t *testing.T) {
			config := fd.Default()
			b := fd.NewBounded(newPhi(t, config), config.Bounds())
			random := rand.New(rand.NewPCG(7, 11))
			suspicions, last := 0, start
			b.Heartbeat(start)
			for i := 1; i <= hours*3600; i++ {
				at := start.Add(time.Duration(i)*time.Second + time.Duration(random.Int64N(int64(tc.jitter))))
				if i%60 == 0 {
					at = at.Add(tc.pause)
				}
				if random.Float64() < tc.loss || at.Before(last) {
					continue
				}
				if !b.Available(at.Add(-1)) {
					suspicions++
				}
				b.Heartbeat(at)
				last = at
			}
			require.LessOrEqual(t, float64(suspicions)/hours, tc.perHourLimit)
			limit, _ := b.Limit()
			require.GreaterOrEqual(t, limit.Sub(last), config.AcceptableHeartbeatPause)
			require.LessOrEqual(t, limit.Sub(last), config.MaxSilence)
		})
	}
}
