// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build (!unix && !windows) || aix || solaris

package disk

import (
	"errors"
	"os"
)

// openLock refuses: without a lock two processes could use one directory.
func openLock(string) (*os.File, error) {
	return nil, errors.New("this system has no locks on files")
}

// syncDir does nothing: nothing is written here.
func syncDir(string) error { return nil }

// Full reports that no error speaks of room: nothing is written here.
func Full(error) bool { return false }
