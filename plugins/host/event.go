// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"time"

	"github.com/quorate/quorate/plugins"
)

// EventKind says what happened.
type EventKind string

// The kinds of events.
const (
	// Started: the first process is ready.
	Started EventKind = "started"
	// Restarted: a process has replaced one that had ended. Away says for how long
	// there was none.
	Restarted EventKind = "restarted"
	// Swapped: calls go to another process now, as [Plugin.Swap] wanted.
	Swapped EventKind = "swapped"
	// Refused: a process could not be launched, at a start, a restart or a swap.
	Refused EventKind = "refused"
	// Exited: a process has ended.
	Exited EventKind = "exited"
	// Unhealthy: a process is being killed because it does not answer.
	Unhealthy EventKind = "unhealthy"
	// Broken: the circuit breaker has opened after several failures.
	Broken EventKind = "broken"
	// Called: a call has ended, with an error or without. Latency is what it took.
	Called EventKind = "called"
	// Closed: nothing is left of the plugin.
	Closed EventKind = "closed"
)

// Event is something that happened to a plugin.
type Event struct {
	// At is when.
	At time.Time
	// Kind is what.
	Kind EventKind
	// Plugin is the name of the plugin.
	Plugin string
	// PID is the process concerned; 0 if there is none.
	PID int
	// Manifest is what the process says about itself, with Started, Restarted and
	// Swapped.
	Manifest plugins.Manifest
	// Err is why, or the error of a call; nil if there is none.
	Err error
	// Away is for how long no process was active, with Restarted, and with Swapped
	// if there was none.
	Away time.Duration
	// Took is the time from the launch to readiness, with Started, Restarted and
	// Swapped.
	Took time.Duration
	// Call is "decide", "allocate" or "rebalance", with Called.
	Call string
	// Latency is the time that the call took, with Called.
	Latency time.Duration
}
