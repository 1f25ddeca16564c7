// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package awake keeps the processors of this machine awake while something is measured.
//
// A latency that is measured on an idle machine contains the time that a sleeping
// processor takes to wake up, which on a virtual machine is most of a round trip. An
// experiment that asks for it has a process beside it that always has work, but gives
// way to any other. [Possible] is false where the system has no such way to give way.
package awake

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/process"
)

// serve keeps every processor awake until the parent is gone, with work that gives way to
// any other: a latency that is measured meanwhile does not contain the time that a
// processor takes to wake up, which on a virtual machine is most of a round trip.
func serve(ctx context.Context, _ process.Spec, k *process.Link) error {
	if err := yieldToAll(); err != nil {
		return fmt.Errorf("bench: keep the processors awake: %w", err)
	}
	var spinners sync.WaitGroup
	var turns atomic.Uint64
	// Owned by serve, which waits for them: they end with ctx.
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

// Role is the role of the process that keeps the processors awake.
const Role = "awake"

// Roles returns the role of the process that keeps the processors awake.
func Roles() process.Roles { return process.Roles{Servers: map[string]process.Server{Role: serve}} }
