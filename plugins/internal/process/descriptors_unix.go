// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package process

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// inheritable returns the descriptors beyond standard input, output and error that a child
// of this program would inherit. What Go opens is not among them: these are descriptors
// that the program was started with, or that other languages in it have opened.
func inheritable() ([]int, error) {
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		return nil, err
	}
	var all []int
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd <= 2 {
			continue
		}
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err == nil && flags&unix.FD_CLOEXEC == 0 { // An error says that it is closed.
			all = append(all, fd)
		}
	}
	return all, nil
}
