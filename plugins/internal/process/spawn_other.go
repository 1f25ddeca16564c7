// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package process

import (
	"os"
	"syscall"
)

const openNonblock = 0

// attributes sets nothing on this system.
func attributes() *syscall.SysProcAttr { return nil }

// awaitEnd does not wait: on this system there is no group to kill first.
func awaitEnd(*os.Process) bool { return false }

// killGroup kills the process; this system has no groups.
func killGroup(p *os.Process) {
	_ = p.Kill() // The process has ended already.
}

func busy(error) bool { return false }

// executable cannot tell on this system: the launch will.
func executable(os.FileInfo) bool { return true }
