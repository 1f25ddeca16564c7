// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"errors"
	"os"
	"syscall"
)

const (
	sharingViolation = syscall.Errno(32)  // ERROR_SHARING_VIOLATION
	handleDiskFull   = syscall.Errno(39)  // ERROR_HANDLE_DISK_FULL
	diskFull         = syscall.Errno(112) // ERROR_DISK_FULL
)

// openLock opens a file that no other process can open until it is closed, at the latest
// when this process ends.
func openLock(name string) (*os.File, error) {
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

// syncDir does nothing: the file system journals its renames.
func syncDir(string) error { return nil }

// Full reports whether an error says that there is no room on the disk.
func Full(err error) bool { return errors.Is(err, handleDiskFull) || errors.Is(err, diskFull) }
