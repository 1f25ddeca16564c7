// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"context"
	"time"

	"github.com/quorate/quorate/sharding/internal/protocol"
)

const (
	// sweepChunk is how many entities are looked at with a cell in hand: messages to
	// the shard wait for so long.
	sweepChunk = 128
	// sweepIntervalMax is for the memory of failures, which nobody configures.
	sweepIntervalMax = 15 * time.Second
)

// sweepInterval returns how often cells are swept, so that what is due after the
// given times is late by a quarter of them.
func sweepInterval(times ...time.Duration) time.Duration {
	every := sweepIntervalMax
	for _, d := range times {
		if d > 0 {
			every = min(every, max(d/4, time.Millisecond))
		}
	}
	return every
}

// sweep looks at all entities of a region again and again until ctx ends: one timer
// serves them all.
func (r *region) sweep(ctx context.Context) {
	every := r.every
	timer := time.NewTimer(every)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case every = <-r.paces:
		case <-timer.C:
		}
		for i := range r.cells {
			r.sweepCell(ctx, &r.cells[i])
		}
		timer.Reset(every)
	}
}

// sweepCell looks at the entities of a cell, a few at a time.
func (r *region) sweepCell(ctx context.Context, c *cell) {
	for over := false; !over && ctx.Err() == nil; {
		r.step(c, func(out *protocol.Actions) {
			over = c.shard.Sweep(r.system.clock.Instant(), sweepChunk, out)
			c.spare = spares{}
		})
	}
}
