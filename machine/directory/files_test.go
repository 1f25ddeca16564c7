// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package directory_test

import (
	"io/fs"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/machine/directory"
)

// A file is made once, for its owner, and is what was written to it, under whichever name.
func TestFilesOfADirectory(t *testing.T) {
	dir := directory.Dir(t.TempDir())
	f, err := dir.Create("a")
	require.NoError(t, err)
	_, err = dir.Create("a")
	require.ErrorIs(t, err, fs.ErrExist)
	_, err = f.WriteAt([]byte("content"), 0)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(4))
	require.NoError(t, f.Sync())
	require.NoError(t, f.Close())
	require.NoError(t, dir.Rename("a", "b"))
	require.NoError(t, dir.Sync())
	_, err = dir.OpenToWrite("a")
	require.ErrorIs(t, err, fs.ErrNotExist)

	f, err = dir.Open("b")
	require.NoError(t, err)
	size, err := f.Size()
	require.NoError(t, err)
	require.EqualValues(t, 4, size)
	_, err = f.WriteAt([]byte("x"), 0)
	require.Error(t, err, "it was opened to be read")
	require.NoError(t, f.Close())

	f, err = dir.OpenToWrite("b")
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("x"), 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	content, err := os.ReadFile(dir.Path("b"))
	require.NoError(t, err)
	require.Equal(t, "xont", string(content))
	require.NoError(t, dir.Remove("b"))
	require.NoFileExists(t, dir.Path("b"))
}
