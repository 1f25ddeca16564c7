// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package follow_test

// All tests run in virtual time: a registry that the test directs tells and fails, and the
// clock shows when conversations begin and end.

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/follow"
)

var errDown = errors.New("the registry is down")

// registry is a source whose conversations the test directs: each tells the values that come
// from the channel says, and ends with the error that comes from the channel fails.
type registry struct {
	says   chan string
	fails  chan error
	began  atomic.Int64
	active atomic.Int64
}

func newRegistry() *registry {
	return &registry{says: make(chan string), fails: make(chan error)}
}

func (r *registry) follow(ctx context.Context, _ string, tell func(string)) error {
	r.began.Add(1)
	r.active.Add(1)
	defer r.active.Add(-1)
	for {
		select {
		case value := <-r.says:
			tell(value)
		case err := <-r.fails:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func limits() follow.Limits {
	return follow.Limits{Keys: 2, Idle: time.Minute, PauseMin: time.Second, PauseMax: 4 * time.Second}
}

func newSet(t *testing.T, source follow.Source[string, string]) *follow.Set[string, string] {
	t.Helper()
	set := follow.New(limits(), source)
	t.Cleanup(func() { require.NoError(t, set.Close()) })
	return set
}

func TestLatestWaitsForWhatIsToldFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRegistry()
		set := newSet(t, r.follow)
		synctest.Wait()
		require.Zero(t, r.began.Load(), "nothing starts before somebody asks")
		go func() { r.says <- "first" }() // Ends when the source has taken the value.
		value, err := set.Latest(t.Context(), "bank")
		require.NoError(t, err)
		require.Equal(t, "first", value)
		r.says <- "second"
		synctest.Wait()
		value, err = set.Latest(t.Context(), "bank")
		require.NoError(t, err)
		require.Equal(t, "second", value)
		require.EqualValues(t, 1, r.began.Load(), "one conversation serves all questions")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = set.Latest(ctx, "bank")
		require.ErrorIs(t, err, context.Canceled, "although there is an answer")
	})
}

func TestLatestEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := newSet(t, newRegistry().follow)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		_, err := set.Latest(ctx, "bank")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 3*time.Second, time.Since(began))
		_, err = set.Latest(ctx, "bank")
		require.ErrorIs(t, err, context.DeadlineExceeded, "an ended context is told even if there is an answer")
	})
}

// A value from before a failure is never an answer, for it may be wrong by now.
func TestAFailureIsToldUntilTheRegistryAnswersAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRegistry()
		set := newSet(t, r.follow)
		go func() { r.says <- "old" }() // Ends when the source has taken the value.
		_, err := set.Latest(t.Context(), "bank")
		require.NoError(t, err)
		r.fails <- errDown
		synctest.Wait()
		began := time.Now()
		_, err = set.Latest(t.Context(), "bank")
		require.ErrorIs(t, err, errDown)
		require.ErrorContains(t, err, "asked again in 1")
		require.Zero(t, time.Since(began), "nobody waits for the end of a pause")
		go func() { r.says <- "new" }() // Ends when the next conversation has begun.
		<-time.After(1500 * time.Millisecond)
		value, err := set.Latest(t.Context(), "bank")
		require.NoError(t, err)
		require.Equal(t, "new", value)
	})
}

func TestASourceThatEndsWithoutAnErrorHasFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := newSet(t, func(context.Context, string, func(string)) error { return nil })
		_, err := set.Latest(t.Context(), "bank")
		require.ErrorIs(t, err, follow.ErrEnded)
	})
}

// A value that is out of date is no answer while the source begins anew.
func TestASourceMayBeginAnewAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRegistry()
		set := newSet(t, r.follow)
		go func() { r.says <- "old" }() // Ends when the source has taken the value.
		_, err := set.Latest(t.Context(), "bank")
		require.NoError(t, err)
		<-time.After(time.Second)
		r.fails <- fmt.Errorf("gone: %w", follow.ErrAgain)
		synctest.Wait()
		require.EqualValues(t, 2, r.began.Load())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		_, err = set.Latest(ctx, "bank")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		r.fails <- follow.ErrAgain
		_, err = set.Latest(t.Context(), "bank")
		require.ErrorIs(t, err, follow.ErrAgain, "it began anew less than a pause ago")
		require.EqualValues(t, 2, r.began.Load())
	})
}

// Pauses double from the shortest to the longest, however many questions come, and are
// short again after a conversation that lasted.
func TestPausesGrowAndAreShortAgainAfterALongConversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begins := make(chan time.Time)
		lasts := make(chan time.Duration, 1)
		set := newSet(t, func(ctx context.Context, _ string, tell func(string)) error {
			select {
			case begins <- time.Now():
			case <-ctx.Done():
			}
			tell("here")
			select {
			case d := <-lasts:
				<-time.After(d)
			default:
			}
			return errDown
		})
		next := func() time.Time {
			for {
				go func() { _, _ = set.Latest(t.Context(), "bank") }() // Ends with the answer, at the latest in the Cleanup.
				select {
				case began := <-begins:
					return began
				case <-time.After(time.Second / 10):
				}
			}
		}
		last := next()
		for i, pause := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 4 * time.Second} {
			if i == 3 {
				lasts <- 10 * time.Second
			}
			began := next()
			require.GreaterOrEqual(t, began.Sub(last), pause, "pause %d", i)
			require.LessOrEqual(t, began.Sub(last), pause+pause/5, "pause %d", i)
			last = began
		}
		require.LessOrEqual(t, next().Sub(last), 10*time.Second+limits().PauseMin*6/5)
	})
}

func TestAKeyThatNobodyAsksForIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRegistry()
		set := newSet(t, r.follow)
		go func() { r.says <- "first" }() // Ends when the source has taken the value.
		_, err := set.Latest(t.Context(), "bank")
		require.NoError(t, err)
		<-time.After(50 * time.Second)
		_, err = set.Latest(t.Context(), "bank")
		require.NoError(t, err)
		<-time.After(50 * time.Second)
		synctest.Wait()
		require.EqualValues(t, 1, r.active.Load(), "it was asked for less than a minute ago")
		<-time.After(11 * time.Second)
		synctest.Wait()
		require.Zero(t, r.active.Load())
		go func() { r.says <- "again" }() // Ends when the source has taken the value.
		value, err := set.Latest(t.Context(), "bank")
		require.NoError(t, err)
		require.Equal(t, "again", value)
	})
}

func TestAKeyForWhichSomebodyWaitsIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRegistry()
		set := newSet(t, r.follow)
		done := make(chan error)
		// Ends with the answer, for which the test waits.
		go func() {
			_, err := set.Latest(t.Context(), "bank")
			done <- err
		}()
		<-time.After(10 * time.Minute)
		r.says <- "late"
		require.NoError(t, <-done)
		require.EqualValues(t, 1, r.began.Load())
	})
}

func TestTheKeyAskedForLongestAgoMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var active atomic.Int64
		set := newSet(t, func(ctx context.Context, key string, tell func(string)) error {
			active.Add(1)
			defer active.Add(-1)
			if key != "silent" {
				tell(key)
			}
			<-ctx.Done()
			return ctx.Err()
		})
		failed := make(chan error)
		// Ends when the key is given up, for which the test waits.
		go func() {
			_, err := set.Latest(t.Context(), "silent")
			failed <- err
		}()
		synctest.Wait()
		for i := range 5 {
			<-time.After(time.Millisecond)
			key := fmt.Sprint(i)
			value, err := set.Latest(t.Context(), key)
			require.NoError(t, err)
			require.Equal(t, key, value)
			synctest.Wait()
			require.LessOrEqual(t, active.Load(), int64(2))
		}
		require.ErrorIs(t, <-failed, follow.ErrCrowded)
	})
}

func TestCloseEndsEverythingAndWorksTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRegistry()
		set := newSet(t, r.follow)
		failed := make(chan error)
		// Ends at Close, for which the test waits.
		go func() {
			_, err := set.Latest(t.Context(), "bank")
			failed <- err
		}()
		synctest.Wait()
		require.NoError(t, set.Close())
		require.Zero(t, r.active.Load())
		require.ErrorIs(t, <-failed, discovery.ErrClosed)
		require.NoError(t, set.Close())
		_, err := set.Latest(t.Context(), "bank")
		require.ErrorIs(t, err, discovery.ErrClosed)
		require.NoError(t, newSet(t, r.follow).Close(), "without a start")
	})
}

func TestLimitsOutOfRangeAreAFaultOfTheProgram(t *testing.T) {
	for _, bad := range []follow.Limits{
		{},
		{Keys: 1, Idle: 1, PauseMin: 2, PauseMax: 1},
		{Keys: 1, Idle: 1, PauseMax: 1},
		{Keys: 1, PauseMin: 1, PauseMax: 1},
		{Idle: 1, PauseMin: 1, PauseMax: 1},
	} {
		require.Panics(t, func() { follow.New[string, string](bad, nil) })
	}
	require.NotPanics(t, func() { follow.New[string, string](follow.DefaultLimits(), nil) })
}
