// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// AwakePossible says whether keeping processors awake works on this system.
const AwakePossible = true

// yieldToAll has this process, and every thread that it starts from now on, run only when
// no other process wants to.
func yieldToAll() error {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, t := range threads {
		id, err := strconv.Atoi(t.Name())
		if err != nil {
			return err
		}
		if err := unix.SchedSetAttr(id, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}, 0); err != nil {
			return err
		}
	}
	return nil
}
