// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package queuefile

import "github.com/quorate/quorate/machine/directory"

// File is an open file of the queue.
type File = directory.File

// Files is the directory of a queue. It is one interface, for a fault (the disk is full, or has died) concerns
// all of it.
type Files interface {
	// Create makes a file and opens it. It fails if there is one of that name.
	Create(name string) (File, error)
	// OpenToWrite opens a file, to be read and written.
	OpenToWrite(name string) (File, error)
	// Rename gives a file another name, in place of any file that has it.
	Rename(from, to string) error
	// Remove removes a file.
	Remove(name string) error
	// Sync makes the names survive a crash of the machine.
	Sync() error
	// Path returns the path of a file, for people.
	Path(name string) string
}

var _ Files = directory.Dir("")
