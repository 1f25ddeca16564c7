// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package management

import (
	"math"
	"syscall"
)

// descriptors returns how many files and connections the process may have open.
func descriptors() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return math.MaxInt
	}
	return int(min(uint64(limit.Cur), math.MaxInt)) //nolint:unconvert // Cur is signed on some systems.
}
