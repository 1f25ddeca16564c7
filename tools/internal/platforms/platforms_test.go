// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package platforms_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/tools/internal/platforms"
)

// The workspace is whole on the platforms on which its tests do not run.
func TestTheWorkspaceOnOtherPlatforms(t *testing.T) {
	for _, platform := range []string{"darwin/arm64", "linux/arm64", "windows/amd64"} {
		t.Run(platform, func(t *testing.T) {
			t.Parallel()
			n, err := platforms.Check(t.Context(), "../../..", platform, "work")
			require.NoError(t, err)
			require.Greater(t, n, 200, "packages of the project")
		})
	}
}

// A fault that only one platform has is found there, with its place, and nowhere else.
func TestAFaultOfOnePlatformIsFound(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("go.mod", "module github.com/quorate/quorate/trial\n\ngo 1.26\n")
	write("trial.go", "package trial\n\nimport \"os\"\n\nfunc Name() string { return os.Getenv(other()) }\n")
	write("other.go", "//go:build !windows\n\npackage trial\n\nfunc other() string { return \"HOME\" }\n")
	write("other_windows.go", "package trial\n\nfunc other() int { return 1 }\n")
	t.Setenv("GOWORK", "off")
	n, err := platforms.Check(t.Context(), dir, "darwin/arm64", "./...")
	require.NoError(t, err)
	require.Equal(t, 1, n)
	_, err = platforms.Check(t.Context(), dir, "windows/amd64", "./...")
	require.ErrorContains(t, err, "trial.go:5:")
	require.ErrorContains(t, err, "other()")
	write("other_linux.go", "package trial\n\nfunc other() { syntax(\n")
	_, err = platforms.Check(t.Context(), dir, "linux/arm64", "./...")
	require.Error(t, err)
	_, err = platforms.Check(t.Context(), dir, "linux/abacus", "./...")
	require.ErrorContains(t, err, "no processor")
	_, err = platforms.Check(t.Context(), filepath.Join(dir, "nowhere"), "linux/arm64", "./...")
	require.Error(t, err)
}
