// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package patience

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"
)

// Limit is the time without losses after which a wait of this package ends the test. It tells a
// test that hangs from one that goes on, and nothing else: no test asserts by it that something is quick.
const Limit = time.Minute

// pollInterval is how often [Eventually] asks.
const pollInterval = 5 * time.Millisecond

// Context returns a context for calls of the code under test. It ends with the test, or when
// [Limit] has passed without losses. Its deadline is the latest moment at which that can be.
func Context(tb testing.TB) context.Context {
	tb.Helper()
	ctx, cancel := context.WithTimeoutCause(tb.Context(), longest(), errLimit)
	tb.Cleanup(cancel)
	end := startDeadline(tb, cancel)
	tb.Cleanup(end.stop)
	return ctx
}

// Expiring returns a context that is meant to end while the test looks at what happens then: it
// ends after d, whatever the process lost.
func Expiring(tb testing.TB, d time.Duration) context.Context {
	tb.Helper()
	Watch(tb)
	ctx, cancel := context.WithTimeout(tb.Context(), d)
	tb.Cleanup(cancel)
	return ctx
}

// Ended returns a channel that is closed when [Limit] has passed without losses, for the selects
// of a test that waits for one of several things.
func Ended(tb testing.TB) <-chan struct{} {
	tb.Helper()
	ended := make(chan struct{})
	end := startDeadline(tb, func() { close(ended) })
	tb.Cleanup(end.stop)
	return ended
}

// Bound closes c when [Limit] has passed without losses, which ends a call that reads from it or
// writes to it. It stands where a connection would be given a deadline.
func Bound(tb testing.TB, c io.Closer) {
	tb.Helper()
	end := startDeadline(tb, func() { _ = c.Close() }) // The call that it ends has the error.
	tb.Cleanup(end.stop)
}

// Receive returns the next value of a channel, or the zero value if the channel is closed. When
// nothing has come within [Limit], it ends the test with the name of what was awaited.
func Receive[T any](tb testing.TB, values <-chan T, awaited string, args ...any) T {
	tb.Helper()
	ended := make(chan struct{})
	end := startDeadline(tb, func() { close(ended) })
	defer end.stop()
	select {
	case v := <-values:
		return v
	case <-ended:
		tb.Fatalf("within %v there was not: %s", Limit, fmt.Sprintf(awaited, args...))
		panic("unreachable")
	}
}

// Eventually asks ok every few milliseconds, from the goroutine of the test, until it says yes. When
// it has not within [Limit], Eventually ends the test with the name of what was awaited.
func Eventually(tb testing.TB, ok func() bool, awaited string, args ...any) {
	tb.Helper()
	ended := make(chan struct{})
	end := startDeadline(tb, func() { close(ended) })
	defer end.stop()
	for !ok() {
		select {
		case <-ended:
			if ok() { // What came in the last moment counts.
				return
			}
			tb.Fatalf("within %v it was not so: %s", Limit, fmt.Sprintf(awaited, args...))
		case <-time.After(pollInterval):
		}
	}
}

// Watch makes tb a test that is not judged when it fails after its process lost much of its time.
// Every other function of this package does so, too.
func Watch(tb testing.TB) {
	tb.Helper()
	of(tb)
}

// A Stopwatch measures the time of a test without what the process lost.
type Stopwatch struct {
	lost  func() time.Duration
	began time.Time
	gone  time.Duration // lost before it was started
}

// Start returns a stopwatch that runs.
func Start(tb testing.TB) Stopwatch {
	tb.Helper()
	lost := of(tb)
	return Stopwatch{lost: lost, began: time.Now(), gone: lost()}
}

// Elapsed returns the time since the start without losses: at least zero, and no more than the time
// of the clock. A test may require that it is below a limit of seconds.
func (s Stopwatch) Elapsed() time.Duration {
	return max(0, time.Since(s.began)-(s.lost()-s.gone))
}
