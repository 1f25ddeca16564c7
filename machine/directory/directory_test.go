// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package directory_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/machine/directory"
)

func TestALockIsHeldOnceUntilItIsClosed(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	lock, err := directory.Lock(name)
	require.NoError(t, err)
	second, err := directory.Lock(name)
	require.ErrorIs(t, err, directory.ErrInUse)
	require.Nil(t, second)
	require.NoError(t, lock.Close())
	lock, err = directory.Lock(name)
	require.NoError(t, err)
	require.NoError(t, lock.Close())
}

func TestWhatCannotBeLockedIsNotInUse(t *testing.T) {
	lock, err := directory.Lock(filepath.Join(t.TempDir(), "missing", "lock"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NotErrorIs(t, err, directory.ErrInUse)
	require.Nil(t, lock)
}

func TestADirectoryIsSynced(t *testing.T) {
	require.NoError(t, directory.Sync(t.TempDir()))
}

func TestOtherErrorsSayNothingOfRoom(t *testing.T) {
	require.False(t, directory.Full(nil))
	require.False(t, directory.Full(errors.New("no space left on device")), "words say nothing")
	require.False(t, directory.Full(&fs.PathError{Op: "write", Path: "log", Err: fs.ErrPermission}))
}
