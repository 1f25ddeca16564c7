// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package process

import (
	"os"
	"syscall"
)

// attributes make the child the leader of a group of its own. That its host has
// died it must notice by itself.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// awaitEnd cannot wait without taking the process away: its group is killed after
// that, when in theory its number can be somebody else's already.
func awaitEnd(*os.Process) bool { return false }
