// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package harness

import (
	"syscall"
	"time"
)

// CPUTime returns the processor time that this process has used.
func CPUTime() time.Duration { return usedBy(syscall.RUSAGE_SELF) }

// ChildrenCPUTime returns the processor time that children of this process have used which have
// ended.
func ChildrenCPUTime() time.Duration { return usedBy(syscall.RUSAGE_CHILDREN) }

func usedBy(whom int) time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(whom, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
