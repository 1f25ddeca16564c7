// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package process

import "os"

// tryLock cannot lock on this system. It returns true, so that no directory is taken for
// abandoned: the directories of hosts that died are left to the system.
func tryLock(*os.File) bool { return true }

// ownedByUs cannot tell on this system, so nothing is removed.
func ownedByUs(os.FileInfo) bool { return false }
