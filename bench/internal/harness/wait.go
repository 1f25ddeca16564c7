// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Milliseconds is a duration as a number.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Microseconds is a duration as a number.
func Microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

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

// Poll looks at intervals until look says that the wait is over, and returns how long that
// took. Look is told how long the wait has been so far; it sets the limit, if there is one.
func Poll(ctx context.Context, every time.Duration, look func(waited time.Duration) (over bool, err error)) (time.Duration, error) {
	for began := time.Now(); ; {
		over, err := look(time.Since(began))
		if over || err != nil {
			return time.Since(began), err
		}
		if err := Pause(ctx, every); err != nil {
			return 0, err
		}
	}
}

// Repeat calls f one time after the other until a time has passed, once at least, and returns how
// long each call took.
func Repeat(during time.Duration, f func() error) (took []time.Duration, err error) {
	for began := time.Now(); len(took) == 0 || time.Since(began) < during; {
		once := time.Now()
		if err := f(); err != nil {
			return nil, err
		}
		took = append(took, time.Since(once))
	}
	return took, nil
}

// Together calls f with each number below n, each in a goroutine, and waits for all.
func Together(n int, f func(i int) error) error {
	faults := make([]error, n)
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() { faults[i] = f(i) })
	}
	running.Wait()
	return errors.Join(faults...)
}
