// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package cluster

import "syscall"

// access reports why this user cannot make files in a directory.
func access(dir string) error {
	const write, search = 2, 1
	return syscall.Access(dir, write|search)
}
