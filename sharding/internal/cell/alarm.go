// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"time"

	"github.com/quorate/quorate/machine"
)

// postponeRetry is the time after which the clock is asked for standing again.
const postponeRetry = 50 * time.Millisecond

// alarm is the part of a cell that knows when the cell is to be called again. A Tick is asked
// for at most once for the same reason; a Tick that comes without need does no harm.
type alarm struct {
	cfg       *Config
	waking    bool // An OpWake is under way.
	postponed bool // A message, a reply or a stop waits for the clock to show standing again.
}

// rang notes that the Tick has come. It reports whether what was postponed is to be tried,
// which is not so while the node is known to have no standing.
func (a *alarm) rang(suspended bool) bool {
	a.waking = false
	if !a.postponed || suspended {
		return false
	}
	a.postponed = false
	return true
}

// settled notes that nothing is postponed any more.
func (a *alarm) settled() { a.postponed = false }

// wake asks for a Tick after the time to transmit again, unless a Tick is due already.
func (a *alarm) wake(now machine.Instant, out *Actions) {
	if a.waking {
		return
	}
	a.waking = true
	out.add(Action{Op: OpWake, At: now.Add(a.cfg.Resend)})
}

// retrySoon asks for a Tick that looks whether the clock shows standing again.
func (a *alarm) retrySoon(now machine.Instant, out *Actions) {
	a.postponed, a.waking = true, true
	out.add(Action{Op: OpWake, At: now.Add(postponeRetry)})
}
