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
	rules := map[string]any{"others": map[string]any{"avoid": []any{"seed"}}}
	Test(t, plugins.Config{Policy: plugins.Allocation, Path: path, Settings: rules})
}

// A new project in Python builds, passes its tests and those of the kit, and can be pinned: it
// builds the same file again.
func TestPythonProjectsPass(t *testing.T) {
	shared, err := packages()
	require.NoError(t, err)
	command := Build(t, "github.com/quorate/quorate/tools/cmd/quorate")
	for _, policy := range plugins.Policies() {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "tried")
			run(t, command, "plugin", "new", string(policy), "tried", "--lang", "python", "--dir", dir)
			run(t, "make", append(slices.Clone(shared), "-C", dir)...)
			path := filepath.Join(dir, "bin", "tried")
			first, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Contains(t, run(t, command, "plugin", "check", path), "\nok\n")
			Test(t, plugins.Config{Policy: policy, Path: path})

			run(t, "make", append(slices.Clone(shared), "-C", dir, "clean", "test")...)
			again, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, first, again)
		})
	}
}

func TestTheWalkInPythonOfTheDocumentationArrives(t *testing.T) {
	shared, err := packages()
	require.NoError(t, err)
	walk(t, "### In Python", shared[0])
}

// run runs a program, which must succeed, and returns what it prints.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	require.NoError(t, err, "%s %v:\n%s", name, args, text)
	return string(text)
}
