// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os/exec"
	"syscall"
)

// dieWithParent has the system kill the process when the demo dies. A node
// notices that by itself at the end of its standard input, unless it is frozen
// at that moment.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
