// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package patience

import (
	"errors"
	"sync"
	"testing"
	"time"
)

// maxStretch bounds a wait to this many times its limit, however much is lost: every wait ends.
const maxStretch = 10

var errLimit = errors.New("patience: the limit of the test has passed")

// A deadline calls expire once, when its limit has passed without losses.
type deadline struct {
	watch  Stopwatch
	limit  time.Duration
	latest time.Time
	expire func()

	mu    sync.Mutex // guards timer, which fire renews and stop ends
	timer *time.Timer
	ended bool
}

// startDeadline starts one of a test, with the limit that all waits have.
func startDeadline(tb testing.TB, expire func()) *deadline {
	return newDeadline(Start(tb), Limit, longest(), expire)
}

// newDeadline starts a deadline that lasts no longer than longest, whatever the stopwatch says was lost.
func newDeadline(watch Stopwatch, limit, longest time.Duration, expire func()) *deadline {
	d := &deadline{watch: watch, limit: limit, latest: time.Now().Add(longest), expire: expire}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.timer = time.AfterFunc(limit, d.fire)
	return d
}

// longest returns how long a wait of [Limit] may last.
func longest() time.Duration {
	if virtual() {
		return Limit
	}
	return maxStretch * Limit
}

// fire expires the deadline, or grants again what was lost since it was set.
func (d *deadline) fire() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return
	}
	left := min(d.limit-d.watch.Elapsed(), time.Until(d.latest))
	if left > 0 {
		d.timer.Reset(left)
		return
	}
	d.ended = true
	d.expire()
}

// stop ends the deadline without expiring it. It works also after that.
func (d *deadline) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true
	d.timer.Stop()
}
