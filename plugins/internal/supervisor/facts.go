// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"time"

	"github.com/quorate/quorate/machine"
)

// facts are what a machine reports to people and does not need itself.
type facts struct {
	since     time.Time // When the state began.
	restarts  uint64
	failures  uint64 // Number of errors so far.
	loop      int    // Failures since the plugin last worked.
	lastErr   error
	lastErrAt time.Time

	inGap     bool        // No process is active, though one was before.
	gapSince  machine.Now // When the last active process ended.
	gaps      uint64
	gapsTotal time.Duration // Sum of the gaps that have ended.
	gapLast   time.Duration
}

// noteFailure notes the error of a process that ended or did not start.
func (f *facts) noteFailure(now machine.Now, err error) {
	if err != nil {
		f.lastErr, f.lastErrAt = err, now.Wall
		f.failures++
	}
}

// beginGap notes that no process is active any more.
func (f *facts) beginGap(now machine.Now) {
	if !f.inGap {
		f.inGap, f.gapSince = true, now
		f.gaps++
	}
}

// endGap ends the gap, if there is one, and returns its length.
func (f *facts) endGap(now machine.Now) time.Duration {
	if !f.inGap {
		return 0
	}
	f.inGap = false
	f.gapLast = now.Mono.Sub(f.gapSince.Mono)
	f.gapsTotal += f.gapLast
	return f.gapLast
}

// View is what a machine knows, for people and for the errors of calls. It is published
// when it has changed, before the effects of the same step.
type View struct {
	// State is the state, and Since when it began.
	State State
	Since time.Time
	// Active is the generation that calls go to; zero for none.
	Active Generation
	// Spec is what a restart launches.
	Spec Spec
	// Restarts counts the processes that replaced one that had ended by itself or
	// was killed for its health. Swaps do not count.
	Restarts uint64
	// LastErr is why a process last ended or could not be launched, and LastErrAt when;
	// nil if that has never happened. Failures counts these errors.
	LastErr   error
	LastErrAt time.Time
	Failures  uint64
	// Loop counts the failures since the plugin last worked: since a process had run for ProvedAfter while nothing had
	// failed within BreakerWindow.
	Loop int
	// NextTry is when the next process is launched, while Waiting or Broken; else zero.
	NextTry time.Time
	// Away says that no process is active though one was before, and AwaySince since
	// when.
	Away      bool
	AwaySince time.Time
	// Gaps counts the times without an active process, the present one included.
	// AwayTotal is the sum of those that have ended, AwayLast the last of them.
	Gaps      uint64
	AwayTotal time.Duration
	AwayLast  time.Duration
}

// same reports whether two views are equal. Errors are told apart by their number: not
// every error can be compared.
func (v View) same(other View) bool {
	v.LastErr, other.LastErr = nil, nil
	return v == other
}

// View returns the present view.
func (m *Machine) View() View {
	v := View{
		State: m.state, Since: m.facts.since, Active: m.active, Spec: m.spec, Restarts: m.facts.restarts,
		LastErr: m.facts.lastErr, LastErrAt: m.facts.lastErrAt, Failures: m.facts.failures, Loop: m.facts.loop,
		Away: m.facts.inGap, AwaySince: m.facts.gapSince.Wall,
		Gaps: m.facts.gaps, AwayTotal: m.facts.gapsTotal, AwayLast: m.facts.gapLast,
	}
	if m.waits() {
		v.NextTry = m.restart.Wall
	}
	return v
}
