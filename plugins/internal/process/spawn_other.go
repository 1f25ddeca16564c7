// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package process

import (
	"os"
	"syscall"
)

const openNonblock = 0

// attributes has nothing to say here.
func attributes() *syscall.SysProcAttr { return nil }

// awaitEnd does not wait: there is no group that would have to be killed before.
func awaitEnd(*os.Process) bool { return false }

// killGroup kills the process; there are no groups here.
func killGroup(p *os.Process) {
	_ = p.Kill() // It has ended already.
}

func busy(error) bool { return false }

// executable leaves it to the system to find out.
func executable(os.FileInfo) bool { return true }
