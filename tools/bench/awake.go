// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

// serveAwake keeps every processor awake until the parent is gone, with work that
// gives way to any other: what is measured beside it does not contain the time that a
// processor takes to wake up, which on a virtual machine is most of a round trip.
func serveAwake(ctx context.Context, _ spec, k *link) error {
	if err := yieldToAll(); err != nil {
		return fmt.Errorf("bench: keep the processors awake: %w", err)
	}
	var spinners sync.WaitGroup
	var turns atomic.Uint64
	// Owned by serveAwake, which waits for them: they end with ctx.
	for range runtime.NumCPU() {
		spinners.Go(func() {
			for ctx.Err() == nil {
				turns.Add(1)
			}
		})
	}
	defer spinners.Wait()
	return k.send(outcome{})
}
