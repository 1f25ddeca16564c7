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

// A judge that decides in place of a detector: whatever it says and whenever it comes and goes,
// the bounds hold and no verdict flaps; and what it says is done, within the bounds.

// Whoever decides, and however often that changes, a node is available before MinSilence and
// unavailable at MaxSilence, and turns at most once between two answers; Limit agrees with
// Available all the while.
func TestNoJudgeStretchesTheBoundsOrMakesAVerdictFlap(t *testing.T) {
	bounds := fd.Bounds{MinSilence: 3 * time.Second, MaxSilence: 5 * time.Second}
	factory, err := fd.NewFactory(fd.Default())
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		b := fd.NewBounded(factory(), bounds)
		now, last, lost := start, start, false
		b.Heartbeat(now)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(1500*time.Millisecond)).Draw(t, "gap")))
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				b.Heartbeat(now)
				last, lost = now, false
			case 1:
				b.Judged(rapid.Bool().Draw(t, "judged"), now)
			case 2, 3:
				asOf := now.Add(-time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "age")))
				if b.Accuse(asOf, now) {
					require.False(t, asOf.Before(last), "a judge that knew of everything")
				}
			}
			silence, available := now.Sub(last), b.Available(now)
			require.True(t, available || silence >= bounds.MinSilence, "accused after %v", silence)
			require.True(t, !available || silence < bounds.MaxSilence, "available after %v", silence)
			require.False(t, lost && available, "available again without an answer")
			lost = !available
			limit, heard := b.Limit()
			require.True(t, heard)
			require.Equal(t, available, now.Before(limit))
		}
	})
}

func TestAJudgeIsHeardWithinTheBounds(t *testing.T) {
	config := fd.Default() // Between 3 s and 5 s.
	at := func(d time.Duration) time.Time { return start.Add(d) }
	answered := func() *fd.Registry[string] {
		r := newRegistry(t, config)
		r.Expect("a", start)
		r.Expect("b", start)
		for i := range 10 {
			r.Heartbeat("a", at(time.Duration(i-9)*time.Second))
		}
		return r
	}
	turns := func(r *fd.Registry[string]) time.Duration {
		limit, ok := r.Limit("a")
		require.True(t, ok)
		return limit.Sub(start)
	}
	r := answered()
	alone := turns(r)
	require.Less(t, alone, config.MaxSilence)
	require.False(t, r.Accuse("a", start, at(time.Second)), "nobody has made it a judge")
	unheard, _ := r.Limit("b")
	r.Judged(true, start)
	require.Equal(t, config.MaxSilence, turns(r), "a judge that says nothing holds it available")
	same, _ := r.Limit("b")
	require.Equal(t, unheard, same, "no judge is told of a node that has not answered")
	require.False(t, r.Accuse("b", start, at(time.Second)))
	require.False(t, r.Accuse("a", at(-1), at(3500*time.Millisecond)), "it did not know of the last answer")
	require.True(t, r.Accuse("a", start, at(3500*time.Millisecond)))
	require.Equal(t, 3500*time.Millisecond, turns(r))
	require.False(t, r.Accuse("a", start, at(4*time.Second)), "it is accused already")
	require.True(t, r.Accuse("a", start, at(time.Second)))
	require.Equal(t, config.AcceptableHeartbeatPause, turns(r), "not before the acceptable pause")

	r = answered()
	r.Judged(true, start)
	r.Judged(false, at(time.Second))
	require.Equal(t, alone, turns(r), "the detector has gone on learning")
	r.Judged(true, at(alone))
	require.Equal(t, alone, turns(r), "who is unavailable stays so")
	require.True(t, r.Heartbeat("a", at(alone+time.Second)))
	require.Equal(t, alone+time.Second+config.MaxSilence, turns(r))
	r.Heartbeat("b", at(alone+time.Second))
	limit, _ := r.Limit("b")
	require.Equal(t, turns(r), limit.Sub(start), "it decides about a node from its first answer on")
}
