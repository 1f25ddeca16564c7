// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"errors"
	"os"
	"syscall"
)

const sharingViolation = syscall.Errno(32) // ERROR_SHARING_VIOLATION

// lock opens a file, makes it if it is not there, and keeps others from opening it until it
// is closed or the process ends. The error wraps errInUse while somebody else has it.
func lock(name string) (*os.File, error) {
	path, err := syscall.UTF16PtrFromString(name)
	if err != nil {
		return nil, err
	}
	handle, err := syscall.CreateFile(path, syscall.GENERIC_READ|syscall.GENERIC_WRITE, 0, nil, syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if errors.Is(err, sharingViolation) {
		return nil, errInUse
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(handle), name), nil
}

// unlock closes the file.
func unlock(file *os.File) error { return file.Close() }

// syncDirectory does nothing: the file system journals what becomes of names.
func syncDirectory(string) error { return nil }
