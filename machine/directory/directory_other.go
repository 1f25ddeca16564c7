// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build (!unix && !windows) || aix || solaris

package directory

import (
	"errors"
	"io"
)

// Lock refuses: without a lock two processes could use one directory.
func Lock(string) (io.Closer, error) {
	return nil, errors.New("this system has no locks on files")
}

// Sync does nothing: nothing is written without a lock.
func Sync(string) error { return nil }

// Full reports that no error speaks of room: nothing is written without a lock.
func Full(error) bool { return false }
