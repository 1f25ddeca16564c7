// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !aix && !solaris

package directory_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/machine/directory"
)

func TestErrorsThatSayThatThereIsNoRoom(t *testing.T) {
	for _, err := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		require.True(t, directory.Full(&fs.PathError{Op: "write", Path: "log", Err: err}), err)
	}
}

// A lock ends with its Close, also while a process that is being started has the file open: here it is open twice.
func TestALockEndsAlthoughTheFileIsOpenElsewhere(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	l, err := directory.Lock(name)
	require.NoError(t, err)
	open, err := os.ReadDir("/dev/fd")
	require.NoError(t, err)
	var locked []int
	for _, entry := range open {
		fd, err := strconv.Atoi(entry.Name())
		require.NoError(t, err)
		var there, here syscall.Stat_t
		if syscall.Fstat(fd, &here) != nil || syscall.Stat(name, &there) != nil || here.Ino != there.Ino || here.Dev != there.Dev {
			continue
		}
		locked = append(locked, fd)
	}
	require.Len(t, locked, 1)
	again, err := syscall.Dup(locked[0])
	require.NoError(t, err)
	defer func() { require.NoError(t, syscall.Close(again)) }()
	_, err = directory.Lock(name)
	require.ErrorIs(t, err, directory.ErrInUse)
	require.NoError(t, l.Close())
	require.Error(t, l.Close())
	l, err = directory.Lock(name)
	require.NoError(t, err)
	require.NoError(t, l.Close())
}
