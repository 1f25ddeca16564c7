// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package fd_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/fd"
)

// start is the moment at which the traces of tests begin, an arbitrary one.
var start = time.Unix(1_000_000, 0)

func TestBoundsReportEveryFault(t *testing.T) {
	require.NoError(t, fd.Bounds{MinSilence: 1, MaxSilence: 1}.Validate())
	require.ErrorContains(t, fd.Bounds{}.Validate(), "min-silence")
	err := fd.Bounds{MinSilence: -1, MaxSilence: -2}.Validate()
	require.ErrorContains(t, err, "min-silence")
	require.ErrorContains(t, err, "max-silence")
}

// stubborn is a detector that never changes its verdict, so that the bounds have to
// overrule it.
type stubborn struct{ available bool }

func (stubborn) Heartbeat(time.Time)        {}
func (s stubborn) Available(time.Time) bool { return s.available }
func (stubborn) Monitoring() bool           { return true }

func TestBoundsOverruleTheDetector(t *testing.T) {
	bounds := fd.Bounds{MinSilence: 3 * time.Second, MaxSilence: 5 * time.Second}
	for _, tc := range []struct {
		name  string
		inner fd.Detector
		limit time.Duration
	}{
		{"always available", stubborn{true}, bounds.MaxSilence},
		{"never available", stubborn{false}, bounds.MinSilence},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := fd.NewBounded(tc.inner, bounds)
			require.True(t, b.Available(start), "nothing was heard yet")
			_, heard := b.Limit()
			require.False(t, heard, "a node never heard has no limit")

			b.Heartbeat(start)
			limit, heard := b.Limit()
			require.True(t, heard)
			require.Equal(t, tc.limit, limit.Sub(start))
			require.True(t, b.Available(limit.Add(-1)))
			require.False(t, b.Available(limit))
			again, heard := b.Limit()
			require.True(t, heard, "a limit that has passed is a limit still")
			require.Equal(t, limit, again)
		})
	}
}

func TestEqualBoundsLeaveTheDetectorNoSay(t *testing.T) {
	b := fd.NewBounded(stubborn{false}, fd.Bounds{MinSilence: 5, MaxSilence: 5})
	b.Heartbeat(start)
	limit, _ := b.Limit()
	require.Equal(t, time.Duration(5), limit.Sub(start))
}

// The verdict changes exactly at the moment that Limit returns, within the bounds,
// whatever the history is. Covers I11.
func TestBoundedTurnsExactlyAtTheMomentNamed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		config := drawConfig(t)
		factory, err := fd.NewFactory(config)
		require.NoError(t, err)
		b := fd.NewBounded(factory(), config.Bounds())
		now := start
		for _, gap := range rapid.SliceOfN(drawGap, 1, 50).Draw(t, "gaps") {
			now = now.Add(gap)
			b.Heartbeat(now)
		}
		limit, heard := b.Limit()
		require.True(t, heard)
		silence := limit.Sub(now)
		require.GreaterOrEqual(t, silence, config.AcceptableHeartbeatPause)
		require.LessOrEqual(t, silence, config.MaxSilence)
		require.True(t, b.Available(limit.Add(-1)))
		require.False(t, b.Available(limit))
		if silence > config.AcceptableHeartbeatPause && silence < config.MaxSilence {
			require.True(t, b.Unwrap().Available(limit.Add(-1)), "the detector would wait no longer")
			require.False(t, b.Unwrap().Available(limit), "the detector would still wait")
		}
	})
}

// An outage that max-silence ended is not learnt from, although phi alone would have
// held the node available: otherwise each outage would make the next one longer.
func TestBoundedKeepsAnOutageOutOfTheHistory(t *testing.T) {
	config := fd.Default()
	for name, gap := range map[string]time.Duration{"just over": config.MaxSilence, "long": time.Minute} {
		t.Run(name, func(t *testing.T) {
			irregular, err := fd.NewPhiAccrual(config)
			require.NoError(t, err)
			b := fd.NewBounded(irregular, config.Bounds())
			now := start
			b.Heartbeat(now)
			for i := range 20 { // Intervals of 0.2 and 4.4 s: phi alone waits beyond 5 s.
				now = now.Add(200*time.Millisecond + time.Duration(i%2)*4200*time.Millisecond)
				b.Heartbeat(now)
			}
			probe := 8 * time.Second
			before := irregular.Phi(now.Add(probe))
			require.True(t, irregular.Available(now.Add(config.MaxSilence)), "phi alone holds it available")
			now = now.Add(gap)
			b.Heartbeat(now)
			require.InDelta(t, before, irregular.Phi(now.Add(probe)), 0, "the history is unchanged")
			require.True(t, b.Available(now))
		})
	}
}

func TestBoundedIgnoresAnOldAnswer(t *testing.T) {
	b := fd.NewBounded(stubborn{true}, fd.Bounds{MinSilence: 1, MaxSilence: 10})
	b.Heartbeat(start)
	b.Heartbeat(start.Add(-5))
	limit, _ := b.Limit()
	require.Equal(t, time.Duration(10), limit.Sub(start))
}

// drawGap is a time between two answers: of any scale up to two hours.
var drawGap = rapid.Custom(func(t *rapid.T) time.Duration {
	scale := rapid.SampledFrom([]time.Duration{
		time.Microsecond, time.Millisecond, time.Second, 10 * time.Second, 2 * time.Hour,
	}).Draw(t, "scale")
	return time.Duration(rapid.Int64Range(0, int64(scale)).Draw(t, "gap"))
})

func drawConfig(t *rapid.T) fd.Config {
	c := fd.Default()
	c.Strategy = rapid.SampledFrom([]string{fd.StrategyPhiAccrual, fd.StrategyDeadline}).Draw(t, "strategy")
	c.Threshold = rapid.Float64Range(1, 30).Draw(t, "threshold")
	c.MaxSampleSize = rapid.IntRange(2, 40).Draw(t, "samples")
	c.MinStdDeviation = time.Duration(rapid.Int64Range(4, int64(time.Second)).Draw(t, "deviation"))
	c.HeartbeatInterval = time.Duration(rapid.Int64Range(4, int64(5*time.Second)).Draw(t, "interval"))
	c.AcceptableHeartbeatPause = time.Duration(rapid.Int64Range(4, int64(10*time.Second)).Draw(t, "pause"))
	c.MaxSilence = max(c.HeartbeatInterval+1, c.AcceptableHeartbeatPause) +
		time.Duration(rapid.Int64Range(0, int64(10*time.Second)).Draw(t, "slack"))
	return c
}
