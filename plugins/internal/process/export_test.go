// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package process

import "os"

// AwaitNothing makes the launcher behave as on systems where the end of a process
// cannot be awaited without taking the process away.
func (l *Launcher) AwaitNothing() { l.await = func(*os.Process) bool { return false } }

// TasksOf counts the processes and threads of a group.
func TasksOf(group int) (int, error) { return tasksOf(group) }
