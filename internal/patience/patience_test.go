// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package patience

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A recorder is a test that ends when it is told to, and keeps what it was told.
type recorder struct {
	testing.TB
	ctx      context.Context //nolint:containedctx // It stands in for that of a test.
	cleanups []func()
	failed   bool
	log      strings.Builder
}

func (r *recorder) Helper()                  {}
func (r *recorder) Context() context.Context { return r.ctx }
func (r *recorder) Cleanup(f func())         { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Failed() bool             { return r.failed }
func (r *recorder) Log(args ...any)          { fmt.Fprintln(&r.log, args...) }
func (r *recorder) Fatalf(format string, args ...any) {
	r.failed = true
	fmt.Fprintf(&r.log, format+"\n", args...)
	runtime.Goexit()
}

// run runs a test to its end, with its cleanups.
func (r *recorder) run(test func()) {
	done := make(chan struct{})
	go func() { // It ends with the test; run waits for it.
		defer close(done)
		defer func() {
			for _, cleanup := range slices.Backward(r.cleanups) {
				cleanup()
			}
		}()
		test()
	}()
	<-done
}

func TestWhatIsLost(t *testing.T) {
	for _, c := range []struct {
		name                 string
		passed               time.Duration
		runnable, processors int
		lost                 time.Duration
	}{
		{"on time and alone", tick, 1, 2, 0},
		{"a little late", 2 * tick, 1, 2, 0},
		{"late", 5 * tick, 1, 2, 3 * tick},
		{"as many threads as processors", tick, 2, 2, 0},
		{"five times as many", tick, 10, 2, tick * 4 / 5},
		{"late, and many", 5 * tick, 4, 2, 4 * tick},
		{"the system does not say", tick, 0, 2, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.lost, lostIn(c.passed, c.runnable, c.processors))
		})
	}
}

func TestTheSystemSaysHowManyThreadsCanRun(t *testing.T) {
	require.Equal(t, 4, parseRunnable("2.22 1.97 1.60 4/104 2489\n"))
	for _, other := range []string{"", "2.22", "a b c d", "1 2 3 /4 5"} {
		require.Zero(t, parseRunnable(other))
	}
}

// A failed test is judged when it lost little, and says why not when it lost much.
func TestAFailureAfterLossesIsNotJudged(t *testing.T) {
	for lost, line := range map[time.Duration]string{
		0: "", 6 * time.Second: "", time.Minute: NotJudged + "the process did not run for 60.0 s of 61.0 s\n",
	} {
		r := &recorder{ctx: t.Context()}
		w := watch{tests: map[testing.TB]time.Duration{}}
		require.True(t, w.enter(r))
		require.False(t, w.enter(r))
		r.failed = true
		w.mu.Lock()
		w.tests[r] -= lost // As if it had been lost since.
		w.mu.Unlock()
		w.leave(r, time.Now().Add(-61*time.Second))
		require.Equal(t, line, r.log.String())
	}
}

func TestAWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r := &recorder{ctx: t.Context()}
		r.run(func() { Eventually(r, func() bool { return false }, "the %s", "end") })
		require.Equal(t, "within 1m0s it was not so: the end\n", r.log.String())
		require.WithinDuration(t, began.Add(Limit), time.Now(), pollInterval)

		r = &recorder{ctx: t.Context()}
		r.run(func() { Receive(r, make(chan int), "a number") })
		require.Equal(t, "within 1m0s there was not: a number\n", r.log.String())

		ctx := Context(t)
		deadline, ok := ctx.Deadline()
		require.True(t, ok)
		require.Equal(t, time.Now().Add(Limit), deadline)
		require.NoError(t, ctx.Err())
		<-Ended(t)
		synctest.Wait()
		require.Error(t, ctx.Err())
		<-Expiring(t, time.Second).Done()

		reader, writer := io.Pipe()
		Bound(t, writer)
		_, err := reader.Read(make([]byte, 1)) // Nothing ever comes.
		require.ErrorIs(t, err, io.EOF)
	})
}

// What was lost is granted again, up to the latest moment.
func TestALimitStretches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			lost, ends time.Duration // all lost is lost in the first minute
		}{
			{0, Limit},
			{30 * time.Second, Limit + 30*time.Second},
			{time.Hour, 5 * Limit},
		} {
			began, ended := time.Now(), make(chan struct{})
			d := newDeadline(Stopwatch{lost: func() time.Duration { return c.lost }, began: began}, Limit, 5*Limit, func() { close(ended) })
			<-ended
			require.Equal(t, c.ends, time.Since(began))
			d.stop()
		}
	})
}

// The goroutine of the watch is there as long as a test is.
func TestTheWatchEndsWithTheLastTest(t *testing.T) {
	first, second := &recorder{ctx: t.Context()}, &recorder{ctx: t.Context()}
	w := watch{tests: map[testing.TB]time.Duration{}}
	w.enter(first)
	w.enter(second)
	done := w.done
	w.leave(first, time.Now())
	select {
	case <-done:
		t.Fatal("it ended before the last test")
	default:
	}
	w.leave(second, time.Now())
	<-done
}

func TestTimeWithoutLosses(t *testing.T) {
	w := Start(t)
	require.Equal(t, 7, Receive(t, func() <-chan int { c := make(chan int, 1); c <- 7; return c }(), "seven"))
	Eventually(t, func() bool { return w.Elapsed() > 0 }, "time passes")
	require.LessOrEqual(t, w.Elapsed(), time.Since(w.began))
}
