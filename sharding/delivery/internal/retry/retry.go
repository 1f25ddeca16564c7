// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package retry says how long an attempt that had no success is let rest.
package retry

import (
	"math/rand/v2"
	"time"
)

// Pause returns the pause before the next attempt after some that had no success: least before the first, twice as long
// before each that follows, most at last, and at random down to a half of that, so that those who failed in one moment
// do not come again in one.
func Pause(r *rand.Rand, least, most time.Duration, failures int) time.Duration {
	pause := least
	for ; failures > 0 && pause < most-pause; failures-- {
		pause *= 2
	}
	if failures > 0 {
		pause = most
	}
	return pause/2 + time.Duration(r.Int64N(int64(pause/2)+1))
}
