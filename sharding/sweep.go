// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"context"
	"time"

	"github.com/quorate/quorate/sharding/internal/cell"
)

const (
	// sweepChunk is how many entities are looked at in one go with a slot in hand:
	// messages to the shard wait meanwhile.
	sweepChunk = 128
	// sweepIntervalMax bounds the sweep interval, so that failures are forgotten in time
	// whatever is configured.
	sweepIntervalMax = 15 * time.Second
)

// sweepInterval returns the interval at which cells are swept, so that an action that is
// due after one of the given times is late by a quarter of that time at most.
func sweepInterval(times ...time.Duration) time.Duration {
	every := sweepIntervalMax
	for _, d := range times {
		if d > 0 {
			every = min(every, max(d/4, time.Millisecond))
		}
	}
	return every
}

// sweep looks at all entities of a kind at each interval until ctx ends: one timer
// serves all entities.
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
		r.step(sl, func(out *cell.Actions) {
			over = sl.cell.Sweep(r.system.clock.Instant(), sweepChunk, out)
			sl.free = freeList{}
		})
	}
}
