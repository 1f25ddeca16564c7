// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"time"

	"github.com/quorate/quorate/machine"
)

// postponeRetry is the time after which the clock is asked for standing again.
const postponeRetry = 50 * time.Millisecond

// alarm is the part of a cell that knows when the cell is to be called again. One Tick is under
// way at most, the earliest that was asked for; a Tick that comes without need does no harm.
type alarm struct {
	cfg       *Config
	next      machine.Instant // When the Tick under way comes; 0: none is.
	postponed bool            // A message, a reply or a stop waits for the clock to show standing again.
}

// rang notes that the Tick has come. It reports whether what was postponed is to be tried,
// which is not so while the node is known to have no standing.
func (a *alarm) rang(suspended bool) bool {
	a.next = 0
	if !a.postponed || suspended {
		return false
	}
	a.postponed = false
	return true
}

// settled notes that nothing is postponed any more.
func (a *alarm) settled() { a.postponed = false }

// wake asks for a Tick after the time to transmit again.
func (a *alarm) wake(now machine.Instant, out *Actions) { a.at(now.Add(a.cfg.Resend), out) }

// retrySoon asks for a Tick that looks whether the clock shows standing again.
func (a *alarm) retrySoon(now machine.Instant, out *Actions) {
	a.postponed = true
	a.at(now.Add(postponeRetry), out)
}

// at asks for a Tick at a time, unless one is due before. The runtime keeps the last OpWake only.
func (a *alarm) at(when machine.Instant, out *Actions) {
	if a.next != 0 && a.next <= when {
		return
	}
	a.next = when
	out.add(Action{Op: OpWake, At: when})
}
