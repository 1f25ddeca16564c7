// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"context"
	"time"

	"github.com/quorate/quorate/sharding/internal/protocol"
)

const (
	// sweepChunk is how many entities are looked at with a slot in hand: messages to
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

// sweep looks at all entities of a kind again and again until ctx ends: one timer
// serves them all.
func (r *router) sweep(ctx context.Context) {
	every := r.interval
	timer := time.NewTimer(every)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case every = <-r.intervals:
		case <-timer.C:
		}
		for i := range r.slots {
			r.sweepSlot(ctx, &r.slots[i])
		}
		timer.Reset(every)
	}
}

// sweepSlot looks at the entities of a shard, a few at a time.
func (r *router) sweepSlot(ctx context.Context, sl *slot) {
	for over := false; !over && ctx.Err() == nil; {
		r.step(sl, func(out *protocol.Actions) {
			over = sl.cell.Sweep(r.system.clock.Instant(), sweepChunk, out)
			sl.free = freeList{}
		})
	}
}
