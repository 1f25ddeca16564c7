// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package directory has what the parts of a node that keep files ask of the system, and
// what differs from one system to another: a lock on a directory, names of files that
// survive a crash of the machine, whether an error says that the disk is full, and the files
// of a directory behind an interface ([Dir]), so that a disk with faults can take their place.
//
//	lock, err := directory.Lock(filepath.Join(dir, "lock"))
//	if errors.Is(err, directory.ErrInUse) {
//		// Another process has the directory.
//	}
//	defer lock.Close()
//	err = os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "record"))
//	err = errors.Join(err, directory.Sync(dir))
//
// # Guarantees
//
// A lock ends with the process that holds it, however that ends. On a system that has no
// such locks [Lock] always fails, since two processes could use one directory; so nothing
// is to be written there.
//
// # Concurrency
//
// Nothing here keeps state. Everything may be called from several goroutines.
package directory
