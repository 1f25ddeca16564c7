// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package modules_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/tools/internal/modules"
)

const goLine = "\n\ngo 1.26.0\n"

// repository writes a small repository: fd requires nothing, gossip requires fd.
func repository(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"LICENSE":   "the licence",
		"go.work":   "go 1.26.0\n\nuse (\n\t./fd\n\t./gossip\n)\n",
		"fd/go.mod": "module " + modules.Prefix + "fd" + goLine, "fd/fd.go": "package fd\n",
		"gossip/go.mod":         "module " + modules.Prefix + "gossip" + goLine,
		"gossip/gossip.go":      "package gossip\n\nimport _ \"" + modules.Prefix + "fd\"\n",
		"docs/architecture.md":  "# A\n\n| module | what it is | imports |\n| --- | --- | --- |\n| fd | detectors | nothing |\n| gossip | state | nothing |\n\nText.\n",
		"docs/versioning.md":    "# V\n\n| package | promise | because |\n| --- | --- | --- |\n| fd | kept | |\n| gossip | kept | |\n\nText.\n",
		"gossip/testdata/x.go":  "package x\n\nimport _ \"" + modules.Prefix + "nothing\"\n",
		"gossip/inner/inner.go": "package inner\n",
	} {
		write(t, root, name, text)
	}
	return root
}

func write(t *testing.T, root, name, text string) {
	t.Helper()
	name = filepath.Join(root, filepath.FromSlash(name))
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
}

func read(t *testing.T, root, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	require.NoError(t, err)
	return string(text)
}

// A new module has what each has, is in go.work and in both tables, and stays as it is when all is derived again.
func TestAModuleIsMadeByOneCommand(t *testing.T) {
	root := repository(t)
	write(t, root, "gossip/zone/zone.go", "package zone\n\nimport _ \""+modules.Prefix+"gossip\"\n")
	require.NoError(t, modules.Create(root, "gossip/zone", "knows where members are"))
	require.NoError(t, modules.Derive(root))
	for name, want := range map[string]string{
		"gossip/zone/LICENSE":      "the licence",
		"gossip/zone/doc.go":       "// Package zone knows where members are.\npackage zone\n",
		"gossip/zone/README.md":    "Knows where members are.",
		"gossip/zone/DESIGN.md":    "# Why gossip/zone is as it is",
		"gossip/zone/CHANGELOG.md": "## Unreleased\n\n### Added\n\n- Knows where members are.\n",
		"go.work":                  "\t./gossip\n\t./gossip/zone\n",
		"docs/architecture.md":     "| gossip | state | fd |\n| gossip/zone | knows where members are | gossip |\n\nText.",
		"docs/versioning.md":       "| gossip | kept | |\n| gossip/zone | kept | |\n\nText.",
		"gossip/zone/zone.go":      "package zone\n\nimport",
	} {
		require.Contains(t, read(t, root, name), want, name)
	}
	gomod := read(t, root, "gossip/zone/go.mod")
	require.Contains(t, gomod, "require "+modules.Prefix+"gossip v0.0.0\n")
	require.Contains(t, gomod, modules.Prefix+"fd => ../../fd\n", "what gossip requires is replaced too")
	require.NoError(t, modules.Derive(root))
	require.Equal(t, gomod, read(t, root, "gossip/zone/go.mod"))
}

// A requirement that is there keeps its version and its comment.
func TestRequirementsKeepTheirVersions(t *testing.T) {
	root := repository(t)
	const pinned = "require " + modules.Prefix + "fd v0.3.0 // pending: Judge\n"
	write(t, root, "gossip/go.mod", "module "+modules.Prefix+"gossip"+goLine+"\n"+pinned)
	require.NoError(t, modules.Derive(root))
	require.Contains(t, read(t, root, "gossip/go.mod"), pinned)
	require.Contains(t, read(t, root, "gossip/go.mod"), "replace "+modules.Prefix+"fd => ../fd\n")
}

func TestWhatIsNoModuleIsRefused(t *testing.T) {
	root := repository(t)
	require.ErrorContains(t, modules.Create(root, "Gossip/../x", "is"), `"Gossip/../x" is no directory of a module`)
	require.ErrorContains(t, modules.Create(root, "zone", ""), "say in half a sentence what the module is for")
	require.ErrorContains(t, modules.Create(root, "fd", "is"), "fd is a module already")
	write(t, root, "docs/versioning.md", "# V\n")
	require.ErrorContains(t, modules.Create(root, "zone", "is"), `versioning.md: no table that begins with "| package | "`)
}
