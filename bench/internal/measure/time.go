// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"time"
)

// Milliseconds is a duration as a number.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Pause waits for d or the end of ctx.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// Microseconds is a duration as a number.
func Microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
