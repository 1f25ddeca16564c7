// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package process

import "syscall"

// attributes make the child the leader of a group of its own, and give it its user. The
// child must notice by itself that its host has died.
func attributes(as *identity) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Credential: as.credential()}
}
