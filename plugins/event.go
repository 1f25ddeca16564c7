// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package plugins

import (
	"time"

	"go.opentelemetry.io/otel/trace"
)

// EventType says what has happened to a plugin.
type EventType string

// The types of events.
const (
	// Started: the first process is ready.
	Started EventType = "started"
	// Restarted: a process has replaced one that had ended. Away says for how long there
	// was no process.
	Restarted EventType = "restarted"
	// Swapped: calls go to another process now, as the Swap of a host wanted.
	Swapped EventType = "swapped"
	// Refused: a process could not be launched, at a start, a restart or a swap.
	Refused EventType = "refused"
	// Exited: a process has ended.
	Exited EventType = "exited"
	// Unhealthy: a process is being killed because it does not answer.
	Unhealthy EventType = "unhealthy"
	// Broken: the circuit breaker has opened after several failures.
	Broken EventType = "broken"
	// Called: a call has ended, with an error or without. Latency is how long it took.
	Called EventType = "called"
	// Closed: nothing is left of the plugin.
	Closed EventType = "closed"
)

// Event is something that happened to a plugin.
type Event struct {
	// At is when the event happened.
	At time.Time
	// Type says what happened.
	Type EventType
	// Plugin is the name of the plugin.
	Plugin string
	// PID is the process that the event is about; 0 if there is none.
	PID int
	// Manifest is what the process declares, with Started, Restarted and Swapped.
	Manifest Manifest
	// Err is the reason of the event, or the error of a call; nil if there is none.
	Err error
	// FailedInARow is [Status.FailedInARow] as of this event, with Exited, Refused and Broken.
	FailedInARow int
	// Away is how long no process was active, with Restarted, and with Swapped if none
	// was.
	Away time.Duration
	// Took is the time from the launch to readiness, with Started, Restarted and
	// Swapped.
	Took time.Duration
	// Call is "decide", "allocate" or "rebalance", with Called.
	Call string
	// Latency is the time that the call took, with Called.
	Latency time.Duration
	// Span is that of the question to which the call belongs, with Called; the zero value if it belongs to no trace.
	Span trace.SpanContext
}
