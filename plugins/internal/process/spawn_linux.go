// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What Linux can keep.
const (
	limitsMemory     = true
	limitsTasks      = true
	limitsPrivileges = true
)

// attributes make the child the leader of a group of its own, let the kernel kill the
// child when the thread that started it ends, which happens only with the host, and give
// it its user. The kernel forgets the signal when the user changes; package syscall asks
// for it after that.
func attributes(as *identity) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Credential: as.credential()}
}

// onOwnThread runs f on a thread that nothing else uses and that ends with f. What is set
// for the thread, such as [forbidPrivileges], reaches no other. The main thread of the
// program is left alone: it cannot be ended, and may be needed by the program.
func onOwnThread(f func()) {
	go func() { // Ends with f, or at once.
		runtime.LockOSThread() // And no unlock: the runtime ends the thread.
		if unix.Gettid() != os.Getpid() {
			f()
			return
		}
		locked := make(chan struct{})
		go func() { // Ends with f.
			runtime.LockOSThread()
			close(locked)
			f()
		}()
		<-locked
		runtime.UnlockOSThread()
	}()
}

// forbidPrivileges has the kernel refuse new rights to whatever this thread executes, and
// to what that executes: a program that belongs to root runs without the rights of root.
// It cannot be taken back.
func forbidPrivileges() error { return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }

// limit sets the limits of a process that has just started, and runs on the thread that
// started it. The process cannot raise them, and what it starts inherits them. Memory that
// it has already and processes that it started before stay: the executable has run for some
// microseconds at most.
func limit(pid int, c Confinement, as *identity) error {
	var err error
	if c.MemoryBytes > 0 {
		err = limitOne(pid, unix.RLIMIT_DATA, uint64(c.MemoryBytes), as)
	}
	// The kernel counts the tasks of a user in all its programs, so the limit would mean
	// nothing for a plugin that shares its user with the node.
	if err == nil && c.Tasks > 0 && c.User != "" {
		err = limitOne(pid, unix.RLIMIT_NPROC, uint64(c.Tasks), as)
	}
	return err
}

// limitOne sets one limit. Even root needs a capability to limit a process of another user,
// which containers withhold (CAP_SYS_RESOURCE); but whoever has the same real user and group
// needs none. So this thread takes those, which ends with the process and is used for nothing
// else. Its rights go by the effective user, which stays.
func limitOne(pid, resource int, most uint64, as *identity) error {
	err := unix.Prlimit(pid, resource, &unix.Rlimit{Cur: most, Max: most}, nil)
	if errors.Is(err, unix.EPERM) && as != nil {
		const same = ^uintptr(0)
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESGID, uintptr(as.gid), same, same); errno != 0 {
			return os.NewSyscallError("setresgid", errno)
		}
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(as.uid), same, same); errno != 0 {
			return os.NewSyscallError("setresuid", errno)
		}
		err = unix.Prlimit(pid, resource, &unix.Rlimit{Cur: most, Max: most}, nil)
	}
	if errors.Is(err, unix.ESRCH) { // It has ended.
		return nil
	}
	return os.NewSyscallError("prlimit", err)
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
