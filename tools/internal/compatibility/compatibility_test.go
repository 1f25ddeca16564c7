// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package compatibility

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../../.."

// copied returns a directory with the page and the sources of this repository.
func copied(t *testing.T) string {
	t.Helper()
	to := t.TempDir()
	names := []string{pageName}
	for _, s := range sources() {
		if s.name == "" {
			require.NoError(t, os.MkdirAll(filepath.Join(to, s.file), 0o755))
			continue
		}
		names = append(names, s.file)
	}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		put(t, filepath.Join(to, name), string(text))
	}
	return to
}

func put(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
}

func page(t *testing.T, root string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, pageName))
	require.NoError(t, err)
	return string(text)
}

// The page of this repository has the numbers of its code.
func TestThePageIsTrue(t *testing.T) {
	to := copied(t)
	require.NoError(t, Derive(to))
	require.Equal(t, page(t, root), page(t, to), "make tidy writes it")
}

// A number that changes gets a row, which has a version when its module is released, and only then.
func TestANumberThatChangesGetsARow(t *testing.T) {
	to := copied(t)
	require.NoError(t, Release(to, map[string]string{"membership": "v0.1.0", "ddata": "v0.1.0"}))
	require.Contains(t, page(t, to), "| protocol between nodes | 1 to 4 | membership | v0.1.0 |\n")
	code := filepath.Join(to, "membership/node.go")
	for _, highest := range []string{"5", "6"} { // The first of them is never released.
		put(t, code, "package membership\n\nvar protocolRange = gossip.ProtocolRange{Min: 2, Max: "+highest+"}\n")
		require.NoError(t, Derive(to))
	}
	require.NoError(t, Release(to, map[string]string{"ddata": "v0.2.0"}))
	rows := "| protocol between nodes | 1 to 4 | membership | v0.1.0 |\n| protocol between nodes | 2 to 6 | membership | "
	require.Contains(t, page(t, to), rows+"unreleased |\n")
	require.NoError(t, Release(to, map[string]string{"membership": "v0.2.0"}))
	require.Contains(t, page(t, to), rows+"v0.2.0 |\n")
	require.Equal(t, 1, strings.Count(page(t, to), "| replicated values | 1 | ddata | v0.1.0 |"))
}

func TestFaultsAreNamed(t *testing.T) {
	to := copied(t)
	put(t, filepath.Join(to, "membership/node.go"), "package membership\n")
	require.ErrorContains(t, Derive(to), "protocol between nodes: membership/node.go has no number in protocolRange")
	to = copied(t)
	put(t, filepath.Join(to, pageName), "# What fits together\n")
	require.ErrorContains(t, Derive(to), "docs/compatibility.md has no table")
}
