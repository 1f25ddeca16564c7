// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAKilledDemoLeavesNoFrozenNodeBehind kills the demo while its nodes are frozen. They
// cannot notice that, and end all the same.
func TestAKilledDemoLeavesNoFrozenNodeBehind(t *testing.T) {
	demo := play(t)
	for _, pid := range children(t, demo.cmd.Process.Pid) {
		require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
		t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) }) // The node has ended, if all is well.
	}
	require.NoError(t, demo.cmd.Process.Kill())
	require.Error(t, demo.cmd.Wait())
	demo.awaitNobody(t)
}

// children returns the processes that a process has started.
func children(t *testing.T, parent int) []int {
	t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	require.NoError(t, err)
	var pids []int
	for _, list := range lists {
		text, err := os.ReadFile(list)
		require.NoError(t, err)
		for word := range strings.FieldsSeq(string(text)) {
			pid, err := strconv.Atoi(word)
			require.NoError(t, err)
			pids = append(pids, pid)
		}
	}
	require.Len(t, pids, firstNodes)
	return pids
}
