// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process && !windows

package scaffold_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/tools/internal/scaffold"
)

// A project in Go builds outside of the workspace, passes its tests, the kit over its binary among
// them, is accepted by the command that asks as a node would, and can be pinned in the file that
// its README shows. The README's commands are those of the Makefile.
func TestProjectsInGoWork(t *testing.T) {
	checkout, err := filepath.Abs(root)
	require.NoError(t, err)
	bin := t.TempDir()
	run(t, ".", nil, "go build -o '"+filepath.Join(bin, "quorate")+"' ../../cmd/quorate")
	env := []string{"GOWORK=off", "PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH")}
	for _, policy := range plugins.Policies() {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			p := project(policy, scaffold.Go)
			p.Checkout = filepath.ToSlash(checkout)
			files, err := p.Files()
			require.NoError(t, err)
			parent := t.TempDir()
			dir := filepath.Join(parent, p.Name)
			require.NoError(t, scaffold.Write(dir, files))

			require.Contains(t, run(t, dir, env, "make test check"), "\nok\n")
			readme, err := os.ReadFile(filepath.Join(dir, "README.md"))
			require.NoError(t, err)
			_, example, found := strings.Cut(string(readme), "```yaml\n")
			require.True(t, found)
			example, _, found = strings.Cut(example, "```")
			require.True(t, found)
			const node = "cluster: { name: tried }\nnode: { address: \"127.0.0.1:7946\" }\n"
			require.NoError(t, os.WriteFile(filepath.Join(parent, "cluster.yaml"), []byte(node+example), 0o600))
			run(t, parent, env, "quorate plugin pin cluster.yaml && quorate plugin pin --check cluster.yaml && quorate config check cluster.yaml")
		})
	}
}

// run runs commands of a shell, which must succeed, and returns what they print.
func run(t *testing.T, dir string, env []string, commands string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-euc", commands)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s:\n%s", commands, text)
	return string(text)
}
