// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package process

import (
	"errors"
	"os"
	"syscall"
)

// openNonblock keeps the opening of a named pipe from waiting for a writer.
const openNonblock = syscall.O_NONBLOCK

// killGroup kills the process and all that belong to its group.
func killGroup(p *os.Process) {
	_ = syscall.Kill(-p.Pid, syscall.SIGKILL) // Only an empty group refuses.
}

// busy reports whether an exec failed because somebody has the file open for
// writing: a child that another goroutine forked while the copy was written holds
// its descriptor until it has executed its own program.
func busy(err error) bool { return errors.Is(err, syscall.ETXTBSY) }

// executable reports whether somebody may execute the file.
func executable(info os.FileInfo) bool { return info.Mode()&0o111 != 0 }
