// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/tools/internal/history"
)

// began is when the rules began: what is older stays as it is.
const began = "2026-11-29T18:00:00Z"

// The first test is the gate; the other one plants a fault for each rule.

func TestCommitsOfThisRepository(t *testing.T) {
	faults, err := history.Check(t.Context(), filepath.Join("..", "..", ".."), began)
	require.NoError(t, err)
	require.Empty(t, faults, "git rebase -i, and reword or divide the commit")
}

func TestPlantedFaults(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) {
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@localhost", "-c", "commit.gpgsign=false"}, args...)...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
	}
	commit := func(file string, lines int, message string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(strings.Repeat(file+"\n", lines)), 0o600))
		git("add", "-A")
		git("commit", "--quiet", "-m", message)
	}
	git("init", "--quiet")
	commit("a", 3000, "fd: count heartbeats\n\nAs many as may be.")
	commit("go.sum", 9000, "fd, gossip: require more")
	commit("b", 3001, "fd: divide all of it\n\nLarge: a tool did it.")
	git("mv", "b", "moved")
	commit("c", 1, "CONTRIBUTING, docs/plugins: move b")
	git("revert", "--no-edit", "HEAD")
	commit("d", 1, "Mend it")
	commit("e", 1, "fd: "+strings.Repeat("x", 69))
	commit("f", 3001, "fd: add much\n\nIt is Large: very.")

	faults, err := history.Check(t.Context(), dir, "2000-01-01T00:00:00Z")
	require.NoError(t, err)
	require.Len(t, faults, 3)
	require.Contains(t, faults[0], "3001 lines by hand, of 3000 that a commit may have")
	require.Contains(t, faults[1], "the subject has 73 columns, of 72")
	require.Contains(t, faults[2], `the subject "Mend it" is not "module: verb object"`)
	_, err = history.Check(t.Context(), filepath.Join(dir, "none"), began)
	require.ErrorContains(t, err, "history: git log in")
}
