// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package alarm is the timer of a driver whose machine says after each step when it wants the
// next one.
//
// An [Alarm] is not safe for concurrent use: the lock of the driver guards it. What it calls
// runs in a goroutine of the timer, and may still run after [Alarm.Stop].
package alarm

import "time"

// Alarm calls a function when it is time. The zero value is not set.
type Alarm struct {
	timer *time.Timer // nil before the first Set
}

// Set lets the alarm call ring after a while, in place of what it was set to before: at once if
// the while is zero or less. Each Set of an alarm gives the same function.
func (a *Alarm) Set(after time.Duration, ring func()) {
	after = max(after, 0)
	if a.timer == nil {
		a.timer = time.AfterFunc(after, ring)
		return
	}
	a.timer.Reset(after)
}

// Stop unsets the alarm.
func (a *Alarm) Stop() {
	if a.timer != nil {
		a.timer.Stop()
	}
}
