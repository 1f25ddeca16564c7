// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/tools/internal/command"
)

func TestNewProject(t *testing.T) {
	t.Chdir(t.TempDir())
	status, stdout, stderr := plugin("new", "allocation", "by-label", "-lang", "python")
	require.Equal(t, command.StatusOK, status, stderr)
	require.Contains(t, stdout, filepath.Join("by-label", "src", "strategy.py")+"\n")
	require.Contains(t, stdout, "cd by-label && make\n")
	require.FileExists(t, filepath.Join("by-label", "proto", "quorate", "plugin", "v1", "allocation.proto"))

	status, stdout, stderr = plugin("new", "downing", "my-witness", "-dir", "w", "-module", "git.example/w", "-json")
	require.Equal(t, command.StatusOK, status, stderr)
	var made struct {
		Dir, Policy, Language string
		Files                 []string
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &made))
	require.Equal(t, []string{"w", "downing", "go"}, []string{made.Dir, made.Policy, made.Language})
	require.Contains(t, made.Files, "strategy.go")
	mod, err := os.ReadFile(filepath.Join("w", "go.mod"))
	require.NoError(t, err)
	require.Contains(t, string(mod), "module git.example/w\n")
}

// Each wrong input is one error, and leaves nothing behind.
func TestNewProjectSaysWhatIsWrong(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("full", 0o755))
	require.NoError(t, os.WriteFile(filepath.Join("full", "mine"), []byte("mine"), 0o600))
	cases := []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"dawning", "a"}, command.StatusUsage, `quorate: there is no policy "dawning"; there are downing, `},
		{[]string{"downing", "A/b"}, command.StatusUsage, `quorate: "A/b" is no name for a plugin: take up to 64 `},
		{[]string{"downing", "a", "-lang", "rust"}, command.StatusUsage, `quorate: there are no templates in "rust"; there are go, python`},
		{[]string{"downing", "a", "-checkout", "full"}, command.StatusUsage, "is no checkout of Quorate"},
		{[]string{"downing", "full"}, command.StatusFailed, "quorate: full is not empty: name another directory"},
		{[]string{"downing", "a", "-dir", filepath.Join("missing", "a")}, command.StatusFailed, "cannot be made"},
		{[]string{"downing"}, command.StatusUsage, `expected "<name>"`},
	}
	if runtime.GOOS != "windows" && os.Getuid() != 0 { // The administrator may write everywhere.
		require.NoError(t, os.Mkdir("shut", 0o500))
		cases = append(cases, struct {
			args   []string
			status int
			want   string
		}{[]string{"downing", "a", "-dir", filepath.Join("shut", "a")}, command.StatusFailed, "permission denied"})
	}
	for _, c := range cases {
		status, stdout, stderr := plugin(append([]string{"new"}, c.args...)...)
		require.Equal(t, c.status, status, c.args)
		require.Empty(t, stdout)
		require.Contains(t, stderr, c.want)
		require.NoDirExists(t, "a")
	}
	entries, err := os.ReadDir("full")
	require.NoError(t, err)
	require.Len(t, entries, 1)
	entries, err = os.ReadDir(".")
	require.NoError(t, err)
	for _, e := range entries {
		require.Contains(t, []string{"full", "shut"}, e.Name())
	}
}

// The help names every policy.
func TestNewProjectHelpNamesThePolicies(t *testing.T) {
	_, stdout, _ := plugin("new", "-h")
	for _, policy := range plugins.Policies() {
		require.Contains(t, stdout, string(policy))
	}
}
