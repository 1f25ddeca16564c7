// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build python && !windows

package plugintest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/plugins"
)

// packages installs the packages for Python into .tmp, unless they are there, and returns the
// arguments by which the Makefile of a project uses them.
var packages = sync.OnceValues(func() ([]string, error) {
	venv, err := filepath.Abs(filepath.FromSlash("../../.tmp/python"))
	if err != nil {
		return nil, err
	}
	installed := filepath.Join(venv, "installed")
	text, err := exec.Command("make", "-C", "../../examples/plugins/python", "VENV="+venv, installed).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, text)
	}
	return []string{"VENV=" + venv, "--assume-old=" + installed}, nil
})

func TestPythonExamplePasses(t *testing.T) {
	shared, err := packages()
	require.NoError(t, err)
	path := built(t, "python", "labels", shared...)
	tried(t, path, "others: {avoid: [seed]}\n")
}

// A new project in Python builds, passes its tests and those of the kit, and is accepted by the
// command that asks as a node would.
func TestPythonProjectsPass(t *testing.T) {
	shared, err := packages()
	require.NoError(t, err)
	command := commandLine(t)
	for _, policy := range plugins.Policies() {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "tried")
			run(t, command, "plugin", "new", string(policy), "tried", "--lang", "python", "--dir", dir)
			run(t, "make", append(slices.Clone(shared), "-C", dir)...)
			path := filepath.Join(dir, "bin", "tried")
			require.Contains(t, run(t, command, "plugin", "check", path, "--start-timeout", maxStart.String()), "\nok\n")
			Test(t, plugins.Config{Policy: policy, Path: path, StartTimeout: maxStart})
		})
	}
	t.Run("walk of the documentation", func(t *testing.T) {
		t.Parallel()
		walk(t, command, "### In Python", shared[0])
	})
}

// A plugin in Python can be pinned: the same sources make the same file, at another time and in
// another directory.
func TestPythonFilesAreEqual(t *testing.T) {
	shared, err := packages()
	require.NoError(t, err)
	var files [2][]byte
	for i := range files {
		files[i], err = os.ReadFile(built(t, "python", "labels", append(slices.Clone(shared), "bin/labels")...))
		require.NoError(t, err)
	}
	require.Equal(t, files[0], files[1])
}

// run runs a program, which must succeed, and returns what it prints.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	require.NoError(t, err, "%s %v:\n%s", name, args, text)
	return string(text)
}
