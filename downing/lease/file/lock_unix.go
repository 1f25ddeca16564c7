// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !aix && !solaris

package file

import (
	"errors"
	"os"
	"syscall"
)

// lock opens a file, makes it if it is not there, and locks it until it is closed or the
// process ends. The error wraps errInUse while somebody else has the lock.
func lock(name string) (*os.File, error) {
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = errInUse
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// unlock unlocks the file and closes it. Closing alone does not unlock it at once: a process that another goroutine is
// about to start has the file open too, until its program begins.
func unlock(file *os.File) error {
	return errors.Join(syscall.Flock(int(file.Fd()), syscall.LOCK_UN), file.Close())
}

// syncDirectory makes what was renamed in a directory survive a crash of the machine.
func syncDirectory(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
