// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"os"
	"syscall"
	"time"
)

// UsageNow returns what this process has used so far.
func UsageNow() (Usage, error) {
	u := Usage{At: time.Duration(time.Now().UnixNano()), CPU: CPUTime()}
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return u, err
	}
	u.Sleeps = r.Nvcsw
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return u, err
	}
	var size, resident, shared int64
	if _, err := fmt.Sscan(string(text), &size, &resident, &shared); err != nil {
		return u, fmt.Errorf("/proc/self/statm: %w", err)
	}
	page := int64(os.Getpagesize())
	u.Resident, u.Own = resident*page, (resident-shared)*page
	u.Sockets, err = SocketsNow()
	return u, err
}
