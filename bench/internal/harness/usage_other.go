// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package harness

import "time"

// UsageNow returns the processor time alone.
func UsageNow() (Usage, error) {
	return Usage{At: time.Duration(time.Now().UnixNano()), CPU: CPUTime()}, nil
}
