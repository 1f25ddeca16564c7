// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
	"unsafe"
)

const (
	// guardShell runs guardScript.
	guardShell = "/bin/sh"
	// guardScript waits for the end of the plugin, which holds the other end of the pipe,
	// and kills the group that it belongs to itself. It ignores the signals that ask the
	// group to stop.
	guardScript = `trap "" TERM INT HUP; read -r _ <&3; kill -s KILL 0`
)

// guardChildren makes sure that processes that a plugin has forked end with it. When a
// host is killed the kernel kills the plugin, at once and with no time for anything, but
// not the plugin's children. So as soon as there is a child, a shell joins the group of
// the plugin that only waits for the plugin's end and then kills the group. A plugin
// without children has no guard, and pays a system call now and then.
//
// It returns when the guard runs, with an error if there can be none, or with the error
// of the context.
func guardChildren(ctx context.Context) error {
	if syscall.Getpgrp() != os.Getpid() {
		return nil // The group belongs to another process, which must not be killed.
	}
	tick := time.NewTicker(parentInterval)
	defer tick.Stop()
	for !hasChildren() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return startGuard()
}

// hasChildren reports whether this process has a child. It leaves the exit status of
// children to be waited for.
func hasChildren() bool {
	const (
		anybody      = 0 // P_ALL
		siginfoBytes = 128
	)
	var info [siginfoBytes / 8]uint64
	_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, anybody, 0, uintptr(unsafe.Pointer(&info)), syscall.WEXITED|syscall.WNOHANG|syscall.WNOWAIT, 0, 0)
	return errno == 0
}

// startGuard starts the guard. This process never closes its end of the pipe: the kernel
// does when the process ends.
func startGuard() error {
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd := exec.Command(guardShell, "-c", guardScript) //nolint:noctx // It outlives this process by its purpose.
	cmd.Dir, cmd.ExtraFiles = "/", []*os.File{read}
	err = cmd.Start()
	_ = read.Close() // The guard has the reading end now.
	if err != nil {
		_ = write.Close() // The guard was not started.
		return fmt.Errorf("start a guard: %w", err)
	}
	// Ends with the guard, which only the end of this process or a foreign signal ends.
	go func() {
		_ = cmd.Wait() // How it ended does not matter.
		_ = write.Close()
	}()
	return nil
}
