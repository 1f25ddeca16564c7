// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package process

import (
	"os"
	"syscall"
)

// attributes make the child the leader of a group of its own. The child must notice by
// itself that its host has died.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// awaitEnd cannot wait without reaping the process. So the group is killed after that,
// when in theory its number may belong to another group already.
func awaitEnd(*os.Process) bool { return false }
