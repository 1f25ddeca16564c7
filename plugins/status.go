// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package plugins

import "time"

// State sums up the condition of a plugin.
type State string

// The states.
const (
	StateStarting State = "starting" // A process is being launched.
	StateRunning  State = "running"  // A process is active, and calls go to it.
	StateStopping State = "stopping" // A process that does not answer is being killed.
	StateWaiting  State = "waiting"  // The next launch comes after the back-off.
	StateBroken   State = "broken"   // The circuit breaker is open.
	StateStopped  State = "stopped"  // The plugin is closed.
)

// Status is a snapshot of a plugin.
type Status struct {
	// Name is the name of the plugin, Policy what it decides.
	Name   string
	Policy Policy
	// State is the plugin's condition, which began at Since.
	State State
	Since time.Time
	// Manifest is what the last active process declared.
	Manifest Manifest
	// SHA256 is the checksum of the executable, in hexadecimal digits.
	SHA256 string
	// PID is the active process, which was launched at Started; 0 if there is none.
	PID     int
	Started time.Time
	// Debug says that the active process may be held by a debugger: it is not killed when it does not answer.
	Debug bool
	// Restarts counts processes that replaced one that had ended, Swaps the swaps.
	Restarts, Swaps uint64
	// FailedInARow counts the processes that have ended by themselves, did not answer or could not be launched since the
	// plugin last worked: since one ran for 10 s and there was no failure for a minute. 0 while it works.
	FailedInARow int
	// LastError is why a process last failed, and LastErrorAt when; nil if none has.
	LastError   error
	LastErrorAt time.Time
	// NextTry is when the next process is launched; zero unless waiting or broken.
	NextTry time.Time
	// Away is how long there has been no active process; 0 if there is one.
	Away time.Duration
	// AwayTotal is how long in all there was no active process since the plugin was
	// opened, Away included, in Gaps stretches. AwayLast is the length of the last
	// stretch that is over.
	AwayTotal, AwayLast time.Duration
	Gaps                uint64
	// Calls counts the calls that have ended, Failures those with an error. Late counts
	// the answers that came after their process was given up, and were dropped.
	Calls, Failures, Late uint64
	// LastCall is the call that has ended last; the zero value before there is one.
	LastCall Call
	// Resent counts the requests that were sent again as a whole, because the process did
	// not have the members that they left out: one for each process that replaces another,
	// and more if the plugin says that it keeps what it does not.
	Resent uint64
	// OutputLeftOut counts the bytes that the plugin printed and that were not logged,
	// because they were more than is logged.
	OutputLeftOut uint64
}

// Call is a call that has ended.
type Call struct {
	// Name is the method, such as "decide".
	Name string
	// At is when it began, and Took how long it took.
	At   time.Time
	Took time.Duration
	// Err is why there is no answer; nil if there is one.
	Err error
}
