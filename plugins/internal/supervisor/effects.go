// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package supervisor

import "time"

// Generation numbers the launches of one plugin, from 1. Zero means none.
type Generation uint64

// Spec identifies what is launched: a program with its settings. The caller chooses the
// numbers.
type Spec uint64

// State sums up the condition of a plugin.
type State uint8

// The states.
const (
	Stopped  State = iota // Not started, or ended for good.
	Starting              // A process is being launched, calls fail.
	Running               // A process is active.
	Stopping              // An unhealthy process is being killed, calls fail.
	Waiting               // A restart comes after the back-off, calls fail.
	Broken                // The circuit breaker is open, one trial comes later, calls fail.
)

// String returns the state in lower case.
func (s State) String() string {
	names := [...]string{"stopped", "starting", "running", "stopping", "waiting", "broken"}
	if int(s) < len(names) {
		return names[s]
	}
	return "invalid"
}

// The inputs, besides those of package machine. [machine.Started] launches the first
// process.
type (
	// Launched says that a generation is ready: checked, connected, configured.
	Launched struct{ Gen Generation }
	// LaunchFailed says that a generation did not become ready, and has no process.
	LaunchFailed struct {
		Gen Generation
		Err error
	}
	// Exited says that the process of a launched generation has ended.
	Exited struct {
		Gen Generation
		Err error
	}
	// CallEnded says that a call to a generation ended: unanswered, that is at its
	// deadline or with the connection, or with an answer, which may be an error of the
	// strategy. Calls that their callers gave up need not be reported, nor answers since
	// which no call was unanswered.
	CallEnded struct {
		Gen        Generation
		Unanswered bool
	}
	// Drained says that a draining generation has no call in flight.
	Drained struct{ Gen Generation }
	// Swap orders the change to another spec. The config belongs to the new spec, and
	// applies from the moment when that becomes active.
	Swap struct {
		Spec   Spec
		Config Config
	}
	// Stop orders the end of the plugin.
	Stop struct{}
)

// CallHealth is the port of the [machine.Call] that asks a process for its health. The
// request is a [CheckHealth]; an answer without an error means healthy.
const CallHealth = "health"

// CheckHealth is the request of a health check.
type CheckHealth struct{ Gen Generation }

// These effects are carried out by the program that runs processes. A launch is no call,
// because its process goes on when the launch has succeeded, and may have to be ended
// before that.
type (
	// Launch starts a process. Exactly one of [Launched] and [LaunchFailed] answers, even if
	// Kill is ordered meanwhile: within a bounded time, or after Kill if a debugger may hold it.
	Launch struct {
		Gen  Generation
		Spec Spec
	}
	// Kill ends a process, or an attempt to launch it, and cuts off its calls. [Exited]
	// or [LaunchFailed] answers within a bounded time. Graceful asks the process to stop
	// by itself first.
	Kill struct {
		Gen      Generation
		Graceful bool
	}
	// Activate sends calls to a generation from now on; zero sends them nowhere. Away is
	// how long they went nowhere before, 0 if they did not.
	Activate struct {
		Gen  Generation
		Away time.Duration
	}
	// Drain waits for the calls in flight to a generation. [Drained] answers; the
	// machine itself bounds the wait.
	Drain struct{ Gen Generation }
)

// These events are published, besides [View], and besides [Exited] and [LaunchFailed] of
// generations that had not ended before.
type (
	// Unhealthy says that a process is killed because its health checks or its calls
	// failed.
	Unhealthy struct {
		Gen Generation
		Err error
	}
	// Held says that a process is not killed though its health checks or its calls failed, since a debugger may hold it:
	// Err says what failed, and is nil when it answers again.
	Held struct {
		Gen Generation
		Err error
	}
	// Opened says that the circuit breaker has opened, after so many failures since the plugin last worked.
	Opened struct {
		Failures int
		Until    time.Time
		Err      error
	}
	// Swapped answers Swap: nil when the new generation is active and the old one has
	// ended. On an error the old spec stays in use.
	Swapped struct{ Err error }
	// Ended says that no process is left and none will be launched again.
	Ended struct{}
)
