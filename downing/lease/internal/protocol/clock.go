// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import "time"

// Clock measures for how long a lease has been held. It advances by what the monotonic clock or
// the wall clock has advanced, whichever is more: the first stands still while a machine
// sleeps, the second may be set back. Ahead of real time it only shortens a holding. The zero
// value reads zero first.
type Clock struct {
	last    time.Time
	reading time.Duration
}

// Read returns the reading of the clock at a moment that time.Now has returned.
func (c *Clock) Read(t time.Time) time.Duration {
	if c.last.IsZero() {
		c.last = t
	}
	c.reading += max(t.Sub(c.last), t.Round(0).Sub(c.last.Round(0)), 0)
	if t.After(c.last) {
		c.last = t
	}
	return c.reading
}
