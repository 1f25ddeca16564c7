// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !aix && !solaris

package disk

import (
	"errors"
	"os"
	"syscall"
)

// openLock opens and locks a file. The lock belongs to the open file, and so ends with
// the process.
func openLock(name string) (*os.File, error) {
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrInUse
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// syncDir makes a rename in a directory survive a crash of the machine.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// Full reports whether an error says that there is no room: on the disk, of the user, or
// in a file.
func Full(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}
