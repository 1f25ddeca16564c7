// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"io"
	"os"
	"path/filepath"
)

// File is an open file. Its methods are those of [os.File], with Size in place of Stat. It is one interface, for
// whoever keeps a file that outlives crashes needs all of them.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer

	// Sync has what was written survive a crash of the machine.
	Sync() error

	// Truncate cuts the file off, or makes it longer by zeros, so that it has so many bytes.
	Truncate(size int64) error

	// Size returns how many bytes the file has.
	Size() (int64, error)
}

// Dir is the path of a directory that is there. Its methods concern the files directly in it, by their names, and
// return the errors of the system; code that takes them as an interface can be tested over a disk with faults.
type Dir string

// Create makes a file that only its owner may read and write, and opens it for both. It fails if there is one of that
// name.
func (d Dir) Create(name string) (File, error) { return d.open(name, os.O_RDWR|os.O_CREATE|os.O_EXCL) }

// Open opens a file to be read.
func (d Dir) Open(name string) (File, error) { return d.open(name, os.O_RDONLY) }

// OpenToWrite opens a file that is there, to be read and written.
func (d Dir) OpenToWrite(name string) (File, error) { return d.open(name, os.O_RDWR) }

func (d Dir) open(name string, flag int) (File, error) {
	f, err := os.OpenFile(d.Path(name), flag, 0o600)
	if err != nil {
		return nil, err
	}
	return file{f}, nil
}

// Rename gives a file another name, in place of any file that has it.
func (d Dir) Rename(from, to string) error { return os.Rename(d.Path(from), d.Path(to)) }

// Remove removes a name of a file.
func (d Dir) Remove(name string) error { return os.Remove(d.Path(name)) }

// Sync makes the names survive a crash of the machine.
func (d Dir) Sync() error { return Sync(string(d)) }

// Path returns the path of a file; that of the directory for an empty name.
func (d Dir) Path(name string) string { return filepath.Join(string(d), name) }

// file is a file of the system.
type file struct{ *os.File }

// Size implements [File].
func (f file) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
