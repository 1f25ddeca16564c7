// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package process

import (
	"os"
	"syscall"
)

// tryLock locks the file for as long as it is open, and reports whether it could. The
// kernel releases the lock when the process ends.
func tryLock(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

// ownedByUs reports whether the file belongs to the user of this process.
func ownedByUs(info os.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Geteuid()
}
