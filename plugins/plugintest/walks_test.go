// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build (process || python || typescript || java) && !windows

package plugintest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// page is the page about plugins.
const page = "../../docs/plugins.md"

// commandLine builds the command of the project, and returns its path, which ends in its name.
func commandLine(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "quorate")
	require.NoError(t, os.Rename(Build(t, "github.com/quorate/quorate/tools/cmd/quorate"), path))
	return path
}

// walk runs the commands under a heading of the page in an empty directory that has the file of
// the cluster under that heading. The projects build with this checkout.
func walk(t *testing.T, command, heading string, env ...string) {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(page))
	require.NoError(t, err)
	_, section, found := strings.Cut(string(text), "\n"+heading+"\n")
	require.True(t, found, heading)
	block := func(language string) string {
		_, text, found := strings.Cut(section, "\n```"+language+"\n")
		require.True(t, found, "no block of %s follows %s", language, heading)
		text, _, found = strings.Cut(text, "\n```\n")
		require.True(t, found)
		return text + "\n"
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cluster.yaml"), []byte(block("yaml")), 0o600))
	checkout, err := filepath.Abs(filepath.FromSlash("../.."))
	require.NoError(t, err)

	commands := exec.CommandContext(t.Context(), "sh", "-eu")
	commands.Dir, commands.Stdin = dir, strings.NewReader(block("sh"))
	commands.Env = append(append(os.Environ(), env...), "GOWORK=off", "QUORATE_CHECKOUT="+checkout,
		"PATH="+filepath.Dir(command)+string(os.PathListSeparator)+os.Getenv("PATH"))
	printed, err := commands.CombinedOutput()
	require.NoError(t, err, "%s", printed)
	require.Contains(t, string(printed), "\nok\n", "it was not checked")
	file, err := os.ReadFile(filepath.Join(dir, "cluster.yaml"))
	require.NoError(t, err)
	require.Regexp(t, `(?m)^    sha256: "?[0-9a-f]{64}`, string(file), "it was not pinned")
}
