// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build darwin || linux

package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// shortDir returns a directory with a short name, since the paths of sockets are bounded.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "q") //nolint:usetesting // The paths of sockets are short.
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

func TestDirectoriesOfDeadHostsAreRemoved(t *testing.T) {
	base := shortDir(t)
	old := time.Now().Add(-time.Hour)
	leave := func(name string, at time.Time) string {
		path := filepath.Join(base, name)
		require.NoError(t, os.Mkdir(path, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(path, "copy"), nil, 0o500))
		require.NoError(t, os.Chtimes(path, at, at))
		return path
	}
	alive, err := newDirectory(base)
	require.NoError(t, err)
	require.NoError(t, os.Chtimes(alive.path, old, old))
	dead := []string{leave("quorate-1", old), leave("quorate-2", old)}
	kept := []string{
		alive.path,
		leave("quorate-3", time.Now()), // Its host may be about to lock it.
		leave("quorate-data", old),     // Hosts number their directories.
		leave("other", old),
	}
	second, err := newDirectory(base)
	require.NoError(t, err)
	for _, path := range dead {
		require.NoDirExists(t, path)
	}
	for _, path := range kept {
		require.DirExists(t, path)
	}
	info, err := os.Stat(second.path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	require.NoError(t, second.remove())
	require.NoError(t, alive.remove())
	require.NoDirExists(t, alive.path)
}

func TestDirectoryTooLongForSocketsIsRefused(t *testing.T) {
	base := filepath.Join(shortDir(t), strings.Repeat("d", 80))
	require.NoError(t, os.Mkdir(base, 0o700))
	_, err := newDirectory(base)
	require.ErrorContains(t, err, "too long for sockets")
	left, err := os.ReadDir(base)
	require.NoError(t, err)
	require.Empty(t, left)
	_, err = newDirectory(filepath.Join(base, "missing"))
	require.Error(t, err)
}
