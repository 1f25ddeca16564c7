// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"sync/atomic"
	"time"
)

// A watchdog is a timer that looks after a connection while something is under way, each quarter of
// Config.MaxSilence, and rests otherwise: most connections say nothing most of the time, and a node has several with
// each other one. One goroutine receives from C, and calls rest or watch each time; any may call watch.
type watchdog struct {
	*time.Timer

	every time.Duration
	awake atomic.Bool // The timer rings within every.
}

// newWatchdog returns one that rests.
func newWatchdog(every time.Duration) *watchdog {
	w := &watchdog{Timer: time.NewTimer(every), every: every}
	w.Stop()
	return w
}

// watch has it look within the quarter: something begins.
func (w *watchdog) watch() {
	if !w.awake.Swap(true) {
		w.Reset(w.every)
	}
}

// rings is called when it has rung, before its owner looks: what begins from now on has it look again.
func (w *watchdog) rings() { w.awake.Store(false) }

// rest has it look after a longer time, unless something begins before. It is called after rings.
func (w *watchdog) rest(longer time.Duration) {
	if w.Reset(longer); w.awake.Load() {
		w.Reset(w.every)
	}
}
