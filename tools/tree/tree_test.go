// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/tools/tree"
)

// root returns the directory of the repository, the nearest above the test with a go.work.
func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	require.NoError(t, err)
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		require.NotEqual(t, parent, dir, "no go.work above the test")
		dir = parent
	}
}

// TestTree holds this repository against every rule.
func TestTree(t *testing.T) {
	repo, err := tree.Load(root(t))
	require.NoError(t, err)
	require.NotEmpty(t, repo.Modules)
	require.NotEmpty(t, repo.Files)
	for _, check := range tree.Checks() {
		t.Run(check.Name, func(t *testing.T) {
			faults, err := check.Run(repo)
			require.NoError(t, err)
			for _, fault := range faults {
				t.Error(fault)
			}
			if len(faults) > 0 {
				t.Logf("why: %s", check.Why)
			}
		})
	}
}
