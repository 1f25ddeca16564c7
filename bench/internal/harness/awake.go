// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/quorate/quorate/bench/internal/figure"
)

// The processors of this machine are kept awake while something is measured.
//
// A latency that is measured on an idle machine contains the time that a sleeping
// processor takes to wake up, which on a virtual machine is most of a round trip. An
// experiment that asks for it has a process beside it that always has work, but gives
// way to any other. [AwakePossible] is false where the system has no such way to give way.

// RoleAwake is the role of the process that keeps the processors awake.
const RoleAwake = "awake"

// ServeAwake keeps every processor awake until the parent is gone, with work that gives way to
// any other.
func ServeAwake(ctx context.Context, _ Spec, k *Link) error {
	if err := yieldToAll(); err != nil {
		return fmt.Errorf("bench: keep the processors awake: %w", err)
	}
	var spinners sync.WaitGroup
	var turns atomic.Uint64
	// Owned by this function, which waits for them: they end with ctx.
	for range runtime.NumCPU() {
		spinners.Go(func() {
			for ctx.Err() == nil {
				turns.Add(1)
			}
		})
	}
	defer spinners.Wait()
	return k.Send(figure.Outcome{})
}
