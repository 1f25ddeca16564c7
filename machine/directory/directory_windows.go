// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"errors"
	"io"
	"os"
	"syscall"
)

const (
	sharingViolation = syscall.Errno(32)  // ERROR_SHARING_VIOLATION
	handleDiskFull   = syscall.Errno(39)  // ERROR_HANDLE_DISK_FULL
	diskFull         = syscall.Errno(112) // ERROR_DISK_FULL
)

// Lock opens a file, makes it if it is not there, and keeps others from opening it until
// the closer is closed or the process ends. The error wraps [ErrInUse] while somebody else
// holds the lock.
func Lock(name string) (io.Closer, error) {
	path, err := syscall.UTF16PtrFromString(name)
	if err != nil {
		return nil, err
	}
	handle, err := syscall.CreateFile(path, syscall.GENERIC_READ|syscall.GENERIC_WRITE, 0, nil, syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if errors.Is(err, sharingViolation) {
		return nil, ErrInUse
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(handle), name), nil
}

// Sync does nothing: the file system journals what becomes of names.
func Sync(string) error { return nil }

// Full reports whether an error says that there is no room on the disk.
func Full(err error) bool { return errors.Is(err, handleDiskFull) || errors.Is(err, diskFull) }
