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
	// guardScript waits for the end of the plugin, which holds the other end of the
	// pipe, and kills the group of which it is itself a part. The signals that ask the
	// group to stop are not meant for it.
	guardScript = `trap "" TERM INT HUP; read -r _ <&3; kill -s KILL 0`
)

// guardChildren makes sure that what a plugin has forked ends with it. When a host is
// killed the kernel kills the plugin, at once and with no time for anything, but not
// the plugin's children. So as soon as there is one, a shell joins the group of the
// plugin that does nothing but wait for the plugin's end and kill the group. A plugin
// without children has no such guard, and pays a call of the system now and then.
//
// It returns when there is a guard, with an error when there can be none, or with the
// error of the context.
func guardChildren(ctx context.Context) error {
	if syscall.Getpgrp() != os.Getpid() {
		return nil // The group is somebody else's, who did not ask to be killed.
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

// hasChildren reports whether this process has a child. It takes nobody's exit status
// away.
func hasChildren() bool {
	const (
		anybody      = 0 // P_ALL
		siginfoBytes = 128
	)
	var info [siginfoBytes / 8]uint64
	_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, anybody, 0, uintptr(unsafe.Pointer(&info)), syscall.WEXITED|syscall.WNOHANG|syscall.WNOWAIT, 0, 0)
	return errno == 0
}

// startGuard starts the guard. The end of the pipe that this process holds is closed
// with the process, and by nobody before.
func startGuard() error {
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd := exec.Command(guardShell, "-c", guardScript) //nolint:noctx // It outlives this process by its purpose.
	cmd.Dir, cmd.ExtraFiles = "/", []*os.File{read}
	err = cmd.Start()
	_ = read.Close() // The guard has it now.
	if err != nil {
		_ = write.Close() // Nobody reads it.
		return fmt.Errorf("start a guard: %w", err)
	}
	// Ends with the guard, which only the end of this process or a stranger ends.
	go func() {
		_ = cmd.Wait() // How it ended does not matter.
		_ = write.Close()
	}()
	return nil
}
