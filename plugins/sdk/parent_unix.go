// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !windows

package sdk

import (
	"context"
	"os"
	"syscall"
	"time"
)

// parentInterval is how often the parent is checked. The system call costs less than a
// microsecond, so it may be frequent, and an orphan must not linger.
const parentInterval = 200 * time.Millisecond

// awaitHost returns nil when the parent is another process than the host, which means
// that the host has ended and this process was adopted, or the error of the context.
func awaitHost(ctx context.Context, host int) error {
	tick := time.NewTicker(parentInterval)
	defer tick.Stop()
	for os.Getppid() == host {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// endGroup kills the processes that this one has forked, and itself, if the group is its
// own.
func endGroup() {
	if syscall.Getpgrp() == os.Getpid() {
		_ = syscall.Kill(0, syscall.SIGKILL) // A process may kill its own group.
	}
}
