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

// parentInterval is how often the parent is looked at. A call of the system that
// costs less than a microsecond may be made often, and an orphan must not linger.
const parentInterval = 200 * time.Millisecond

// awaitHost returns nil when the parent is another process than the host, which
// means that the host has ended and somebody else has adopted this process, or the
// error of the context.
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

// endGroup kills what this process has forked, and itself, if the group is its own.
func endGroup() {
	if syscall.Getpgrp() == os.Getpid() {
		_ = syscall.Kill(0, syscall.SIGKILL) // One's own group can be killed.
	}
}
