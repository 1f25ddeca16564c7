// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package datadir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

const (
	lockName  = "lock"
	birthName = "birth"
	temporary = birthName + ".tmp" // One process writes, so that one name is enough.
)

// ErrUnwritable is wrapped by errors about a directory that can be read and not
// written.
var ErrUnwritable = errors.New("nothing can be written")

// ErrInUse is wrapped by the error of [Open] for a directory that another process
// has.
var ErrInUse = errors.New("another process uses it")

// Dir is the data directory of a node.
type Dir struct {
	path    string
	cluster string
	lock    *os.File // Nil when the directory cannot be written.

	mu   sync.Mutex // Guards what follows, and is held while a file is written.
	born int64
}

// Open takes the directory at path, and makes it if it is not there. The cluster is
// the name of the cluster that it belongs to. The error wraps [ErrInUse],
// [ErrForeign], [ErrDamaged], or is that of the file system. Only with an error
// that wraps [ErrUnwritable] there is a Dir too.
func Open(path, cluster string) (*Dir, error) {
	d := &Dir{path: path, cluster: cluster}
	unwritable := d.acquire()
	if unwritable != nil && !errors.Is(unwritable, ErrUnwritable) {
		return nil, unwritable
	}
	born, err := d.read()
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	d.born = born
	return d, unwritable
}

// acquire makes the directory and locks it.
func (d *Dir) acquire() error {
	if err := os.MkdirAll(d.path, 0o700); err != nil {
		if info, is := os.Stat(d.path); is == nil && !info.IsDir() {
			return fmt.Errorf("%s: is no directory", d.path)
		}
		return fmt.Errorf("%s: %w: %w", d.path, ErrUnwritable, err)
	}
	lock, err := openLock(filepath.Join(d.path, lockName))
	switch {
	case errors.Is(err, ErrInUse):
		return fmt.Errorf("%s: %w: give each node a directory of its own", d.path, err)
	case err != nil:
		return fmt.Errorf("%s: %w: %w", d.path, ErrUnwritable, err)
	}
	d.lock = lock
	return nil
}

// read returns what the directory holds, zero for nothing.
func (d *Dir) read() (int64, error) {
	name := filepath.Join(d.path, birthName)
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }() // It was only read.
	text, err := io.ReadAll(io.LimitReader(file, birthBytesMax+1))
	if err != nil {
		return 0, err
	}
	b, err := parseBirth(text)
	if err == nil && b.cluster != d.cluster {
		err = fmt.Errorf("%w: it is of cluster %q, this node is of cluster %q: give it another data-dir", ErrForeign, b.cluster, d.cluster)
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return b.born, nil
}

// Born returns the birth that is remembered, in unix milliseconds, zero when none
// is.
func (d *Dir) Born() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.born
}

// Remember keeps a birth if it is after the one that is kept. When it returns nil
// the birth outlives the process and the machine.
func (d *Dir) Remember(born int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if born <= d.born {
		return nil
	}
	if d.lock == nil {
		return fmt.Errorf("%s: %w", d.path, ErrUnwritable)
	}
	if err := d.replace(birth{born: born, cluster: d.cluster}); err != nil {
		return fmt.Errorf("%s: %w: %w", d.path, ErrUnwritable, err)
	}
	d.born = born
	return nil
}

// replace writes the file anew: the whole new content is on the disk before it
// takes the place of the old.
func (d *Dir) replace(b birth) error {
	name := filepath.Join(d.path, temporary)
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(b.text())
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(name, filepath.Join(d.path, birthName))
	}
	if err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return syncDir(d.path)
}

// Close gives the directory back. It does not wait for a write that hangs: such a
// directory stays taken until the process ends. It may be called again.
func (d *Dir) Close() error {
	if !d.mu.TryLock() {
		return fmt.Errorf("%s: a write has not returned, it stays in use until the process ends", d.path)
	}
	defer d.mu.Unlock()
	if d.lock == nil {
		return nil
	}
	err := d.lock.Close()
	d.lock = nil
	return err
}
