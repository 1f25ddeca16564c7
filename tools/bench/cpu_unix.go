// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package bench

import (
	"os"
	"syscall"
	"time"
)

// cpuTime returns the processor time that this process has used.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// interrupts are the signals that end the program in order.
func interrupts() []os.Signal { return []os.Signal{os.Interrupt, syscall.SIGTERM} }
