// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package queuefile

import (
	"io"
	"os"
	"path/filepath"

	"github.com/quorate/quorate/machine/directory"
)

// File is an open file of the queue. Its methods are those of [os.File].
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Sync() error
	Truncate(size int64) error
	Size() (int64, error)
}

// Files is the directory of a queue. It is one interface, for a fault (the disk is full, or has died) concerns
// all of it.
type Files interface {
	// Create makes a file and opens it. It fails if there is one of that name.
	Create(name string) (File, error)
	// Open opens a file, to be read and written.
	Open(name string) (File, error)
	// Rename gives a file another name, in place of any file that has it.
	Rename(from, to string) error
	// Remove removes a file.
	Remove(name string) error
	// Sync makes the names survive a crash of the machine.
	Sync() error
	// Path returns the path of a file, for people.
	Path(name string) string
}

// Dir is a directory of the file system, which is there.
type Dir string

var _ Files = Dir("")

// Create implements [Files].
func (d Dir) Create(name string) (File, error) { return d.open(name, os.O_CREATE|os.O_EXCL) }

// Open implements [Files].
func (d Dir) Open(name string) (File, error) { return d.open(name, 0) }

func (d Dir) open(name string, how int) (File, error) {
	f, err := os.OpenFile(d.Path(name), os.O_RDWR|how, 0o600)
	if err != nil {
		return nil, err
	}
	return file{f}, nil
}

// Rename implements [Files].
func (d Dir) Rename(from, to string) error { return os.Rename(d.Path(from), d.Path(to)) }

// Remove implements [Files].
func (d Dir) Remove(name string) error { return os.Remove(d.Path(name)) }

// Sync implements [Files].
func (d Dir) Sync() error { return directory.Sync(string(d)) }

// Path implements [Files].
func (d Dir) Path(name string) string { return filepath.Join(string(d), name) }

// file is a file of the file system.
type file struct{ *os.File }

// Size returns how many bytes the file has.
func (f file) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
