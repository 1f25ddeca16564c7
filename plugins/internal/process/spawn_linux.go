// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"syscall"
	"unsafe"
)

// attributes make the child the leader of a group of its own, and let the kernel kill the
// child when the thread that started it ends, which happens only with the host.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitEnd returns true when the process has ended, and leaves it as a zombie: until it
// is waited for no other process can get its number, so its group can be killed by that
// number.
func awaitEnd(p *os.Process) bool {
	const (
		byPID        = 1 // P_PID
		siginfoBytes = 128
	)
	var info [siginfoBytes / 8]uint64
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, byPID, uintptr(p.Pid), uintptr(unsafe.Pointer(&info)), syscall.WEXITED|syscall.WNOWAIT, 0, 0)
		if errno != syscall.EINTR {
			return errno == 0
		}
	}
}
