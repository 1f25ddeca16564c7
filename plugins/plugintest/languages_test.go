// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build (python || typescript || java) && !windows

package plugintest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An example in another language is copied, since what builds it leaves files behind, then
// built, tested by its own tests, and given to the kit. Its packages are kept between runs.

// maxStart is how long a start may take: an interpreter that loads its packages takes a fraction of
// a second, and many times that on a machine that does much else.
const maxStart = time.Minute

// built copies an example, has make build and test it, and returns the path of the plugin.
// The variables are those of its Makefile.
func built(t *testing.T, example, plugin string, variables ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), example)
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("..", "..", "examples", "plugins", example))))
	run := exec.CommandContext(t.Context(), "make", append([]string{"-C", dir, "PROTO=" + fromRoot(t, "plugins", "proto")}, variables...)...)
	text, err := run.CombinedOutput()
	require.NoError(t, err, "%s", text)
	t.Logf("%s", text)
	return filepath.Join(dir, "bin", plugin)
}

// tried has the command of the project try a plugin: the kit runs, and its decisions are those of
// simulated clusters.
func tried(t *testing.T, path, settings string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "settings.yaml")
	require.NoError(t, os.WriteFile(file, []byte(settings), 0o600))
	trial := exec.CommandContext(t.Context(), commandLine(t), "plugin", "test", path, "--settings", file,
		"--start-timeout", maxStart.String(), "--calls", "2000", "--for", "3s")
	text, err := trial.CombinedOutput()
	require.NoError(t, err, "%s", text)
	require.Contains(t, string(text), "ok   sim/")
}

// fromRoot returns an absolute path in the repository.
func fromRoot(t *testing.T, parts ...string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(append([]string{"..", ".."}, parts...)...))
	require.NoError(t, err)
	return path
}
