// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package plugintest

import (
	"context"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/plugins"
)

// The parts in which nobody waits for the plugin's answer any more: the caller gives calls up, or
// the process is stopped as if it hung.

const (
	// givenUp is how many calls are given up, each a little later than the one before.
	givenUp = 50
	// hangCall bounds a call to a process that is stopped, and hangProbe is the time between its
	// health checks: short, so that the part takes no longer than it must.
	hangCall, hangProbe = 500 * time.Millisecond, 250 * time.Millisecond
)

// survivesCallsGivenUp cancels calls, and lets others run into their deadlines. Whoever gives a
// call up gets it back at once, and the same process answers on.
func survivesCallsGivenUp(tb testing.TB, c plugins.Config) {
	tb.Helper()
	p := open(tb, c)
	pid := p.Status().PID
	for n := range givenUp {
		after := time.Duration(n) * 100 * time.Microsecond
		ctx := patience.Expiring(tb, after)
		if n%2 == 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithCancel(tb.Context())
			time.AfterFunc(after, cancel)
		}
		watch := patience.Start(tb)
		_, err := ask(ctx, tb, p)
		if took := watch.Elapsed(); took > Limit {
			tb.Fatalf("a call that was given up after %v came back after %v, %v", after, took, err)
		}
		// Hosts take a plugin for hung that leaves several calls in a row without an answer, a
		// slow one too: so each call that is given up has one behind it that is not.
		if _, err := ask(tb.Context(), tb, p); err != nil {
			tb.Fatalf("no answer after a call that was given up after %v: %v", after, err)
		}
	}
	if now := p.Status().PID; now != pid {
		tb.Fatalf("process %d has ended during calls that were given up, now there is %d", pid, now)
	}
}

// isReplacedWhenItHangs stops the process, which can then not even end by itself. A caller has to
// be told in time, so that the cluster goes by the rule of the policy, and a new process has to
// decide although the old one had no chance to clean anything up.
func isReplacedWhenItHangs(tb testing.TB, c plugins.Config) {
	tb.Helper()
	c = c.WithDefaults()
	c.CallTimeout, c.HealthInterval = hangCall, hangProbe
	p := open(tb, c)
	for _, signal := range stopSignals() {
		pid := send(tb, p, signal)
		// The system stops the threads of a process one after the other: one may still answer.
		within(tb, Limit, "a process that is stopped has no answer", func() bool {
			watch := patience.Start(tb)
			_, err := ask(tb.Context(), tb, p)
			if took := watch.Elapsed(); took > hangCall+Limit {
				tb.Fatalf("asked while process %d is stopped: %v after %v, want an error after %v", pid, err, took, hangCall)
			}
			return err != nil
		})
		within(tb, c.StartTimeout+2*Limit, "another process decides", func() bool {
			_, err := ask(tb.Context(), tb, p)
			return err == nil && p.Status().PID != pid
		})
	}
}
