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

// killGroup kills the process and its whole group.
func killGroup(p *os.Process) {
	_ = syscall.Kill(-p.Pid, syscall.SIGKILL) // Only an empty group refuses.
}

// busy reports whether an exec failed because the file is open for writing: a child that
// another goroutine forked while the copy was written holds its descriptor until that
// child has executed its own program.
func busy(err error) bool { return errors.Is(err, syscall.ETXTBSY) }

// executable reports whether some user may execute the file.
func executable(info os.FileInfo) bool { return info.Mode()&0o111 != 0 }
