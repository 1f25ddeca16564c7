// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package supervisor

import "time"

// facts is what a machine tells people and does not need itself.
type facts struct {
	since     Instant // When the state began.
	restarts  uint64
	lastErr   error
	lastErrAt Instant

	gone      bool    // No process is active, though there was one.
	goneSince Instant // Since when.
	gaps      uint64
	total     time.Duration // Of gaps that have ended.
	last      time.Duration
}

func (f *facts) failed(now Instant, err error) {
	if err != nil {
		f.lastErr, f.lastErrAt = err, now
	}
}

func (f *facts) away(now Instant) {
	if !f.gone {
		f.gone, f.goneSince = true, now
		f.gaps++
	}
}

func (f *facts) back(now Instant) {
	if f.gone {
		f.gone = false
		f.last = time.Duration(now - f.goneSince)
		f.total += f.last
	}
}

// View is a copy of what a machine knows, for people and for the errors of calls.
type View struct {
	// State is the state, and Since when it began.
	State State
	Since Instant
	// Active is the generation that calls go to; zero for none.
	Active Generation
	// Spec is what a restart launches.
	Spec Spec
	// Restarts counts the processes that replaced one that had ended by itself or
	// was killed for its health. Swaps do not count.
	Restarts uint64
	// LastErr is why a process ended or could not be launched, the latest; nil if
	// that has never happened. LastErrAt is when.
	LastErr   error
	LastErrAt Instant
	// NextTry is when the next process is launched, while Waiting or Broken.
	NextTry Instant
	// Away says that there is no active process though there was one, and
	// AwaySince since when.
	Away      bool
	AwaySince Instant
	// Gaps counts the times without an active process, the present one included.
	// AwayTotal is how long those that have ended lasted in all, AwayLast the
	// latest of them.
	Gaps      uint64
	AwayTotal time.Duration
	AwayLast  time.Duration
}

// View returns the present view.
func (m *Machine) View() View {
	v := View{
		State: m.state, Since: m.facts.since, Active: m.active, Spec: m.spec, Restarts: m.facts.restarts,
		LastErr: m.facts.lastErr, LastErrAt: m.facts.lastErrAt,
		Away: m.facts.gone, AwaySince: m.facts.goneSince,
		Gaps: m.facts.gaps, AwayTotal: m.facts.total, AwayLast: m.facts.last,
	}
	if m.state == Waiting || m.state == Broken {
		v.NextTry = m.restart
	}
	return v
}
