// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package disk is what the durable store needs of a directory, so that tests can put
// one with faults in its place.
package disk

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/quorate/quorate/machine/directory"
)

// File is an open file of the store.
type File = directory.File

// Files is a directory and the files directly in it. It is one interface, for a fault
// (the disk is full, is read-only, has died) concerns all of it.
type Files interface {
	// Create makes a file that only its owner may read and write, and opens it. It
	// fails if there is one of that name.
	Create(name string) (File, error)
	// Open opens a file for reading.
	Open(name string) (File, error)
	// Flush has the content of a file on the disk when it returns nil, whoever has
	// written it.
	Flush(name string) error
	// Rename gives a file another name, in place of any file that has it.
	Rename(from, to string) error
	// Link gives a file a second name, or copies it where that is not possible.
	Link(from, to string) error
	// Remove removes a name of a file.
	Remove(name string) error
	// List returns the names of all files.
	List() ([]string, error)
	// Sync makes the names survive a crash of the machine.
	Sync() error
	// Path returns the path of a file, for people; that of the directory for "".
	Path(name string) string
}

// Dir is a directory of the file system.
type Dir struct{ directory.Dir }

var _ Files = Dir{}

// At returns the directory with a path, whether it is there or not.
func At(path string) Dir { return Dir{directory.Dir(path)} }

// Make makes the directory, for its owner only, if it is not there.
func (d Dir) Make() error {
	if _, err := os.Stat(d.Path("")); err == nil {
		return nil
	}
	if err := os.MkdirAll(d.Path(""), 0o700); err != nil {
		return err
	}
	return directory.Sync(filepath.Dir(d.Path("")))
}

// Lock takes the directory until the closer is closed or the process ends. The error wraps
// [directory.ErrInUse] while another process holds the lock.
func (d Dir) Lock() (io.Closer, error) { return directory.Lock(d.Path("lock")) }

// Flush implements [Files].
func (d Dir) Flush(name string) error {
	f, err := os.OpenFile(d.Path(name), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Link implements [Files].
func (d Dir) Link(from, to string) error {
	if os.Link(d.Path(from), d.Path(to)) == nil {
		return nil
	}
	in, err := os.Open(d.Path(from))
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // It was only read.
	out, err := os.OpenFile(d.Path(to), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}

// List implements [Files].
func (d Dir) List() ([]string, error) {
	entries, err := os.ReadDir(d.Path(""))
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}
