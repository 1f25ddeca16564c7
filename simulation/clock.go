// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"math"
	"math/bits"
	"time"

	"github.com/quorate/quorate/machine"
)

// million is the denominator of clock rates.
const million = 1_000_000

// clock is the clock of one incarnation of a node. It starts at any instant, runs at
// (1 + ppm/1,000,000) times the rate of the world, and shows a wall time of its own.
type clock struct {
	started int64           // World time at which the clock showed origin.
	origin  machine.Instant // The instant that the clock showed at started.
	ppm     int64           // Above -million.
	wall    time.Duration   // By how much the node's wall clock is ahead of the world's.
}

// at returns the instant that the clock shows at a world time.
func (c *clock) at(world int64) machine.Instant {
	passed := uint64(world - c.started)
	if c.ppm == 0 {
		return c.origin + machine.Instant(passed)
	}
	hi, lo := bits.Mul64(passed, uint64(million+c.ppm))
	local, _ := bits.Div64(hi, lo, million)
	return c.origin + machine.Instant(local)
}

// world returns the first world time at which the clock shows i or later, and false
// when it never does.
func (c *clock) world(i machine.Instant) (int64, bool) {
	if i <= c.origin {
		return c.started, true
	}
	local := uint64(i - c.origin)
	if local > math.MaxInt64/2 {
		return 0, false
	}
	if c.ppm == 0 {
		return c.started + int64(local), true
	}
	rate := uint64(million + c.ppm)
	hi, lo := bits.Mul64(local, million)
	lo, carry := bits.Add64(lo, rate-1, 0)
	hi += carry
	if hi >= rate {
		return 0, false
	}
	passed, _ := bits.Div64(hi, lo, rate)
	if passed > math.MaxInt64/2 {
		return 0, false
	}
	return c.started + int64(passed), true
}
