// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package process

import "os"

// What these systems can keep: they count memory in other ways, or do not offer to limit
// another process.
const (
	limitsMemory     = false
	limitsTasks      = false
	limitsPrivileges = false
)

// onOwnThread runs f on any thread: nothing is set for one on this system.
func onOwnThread(f func()) { go f() }

// forbidPrivileges does nothing on this system.
func forbidPrivileges() error { return nil }

// limit sets nothing on this system.
func limit(int, Confinement, *identity) error { return nil }

// awaitEnd cannot wait without reaping the process. So the group is killed after that,
// when in theory its number may belong to another group already.
func awaitEnd(*os.Process) bool { return false }

// tasksOf cannot count on this system.
func tasksOf(int) (int, error) { return 0, nil }
