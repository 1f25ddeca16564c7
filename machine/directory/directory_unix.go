// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !aix && !solaris

package directory

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// Lock opens a file, makes it if it is not there, and locks it until the closer is closed
// or the process ends. The error wraps [ErrInUse] while somebody else holds the lock.
func Lock(name string) (io.Closer, error) {
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
	return lock{file}, nil
}

// lock is a file that is locked.
type lock struct{ file *os.File }

// Close unlocks the file and closes it. Closing alone does not unlock it at once: a process that another goroutine is
// about to start has the file open too, until its program begins.
func (l lock) Close() error {
	return errors.Join(syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN), l.file.Close())
}

// Sync makes the names in a directory survive a crash of the machine: what was created,
// renamed and removed there before.
func Sync(path string) error {
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
