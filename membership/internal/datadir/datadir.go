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

	"github.com/quorate/quorate/machine/directory"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// A directory is opened and locked ([Open]) and its record read; [Dir.Keep] replaces the
// record, or removes it when that fails; [Dir.Close] gives the directory back.

const (
	lockName   = "lock"
	recordName = "record"
	temporary  = recordName + ".tmp" // Only one process writes, so one name is enough.
)

// ErrUnwritable is wrapped by errors about a directory that can be read but not written.
var ErrUnwritable = errors.New("nothing can be written")

// Dir is the data directory of a node.
type Dir struct {
	path    string
	cluster string
	lock    io.Closer // Nil when the directory cannot be written.

	mu     sync.Mutex // Guards what follows, and is held while a file is written.
	record protocol.Record
}

// Open takes the directory at path, and makes it if it is not there. cluster is the name
// of the cluster that it belongs to. The error wraps [directory.ErrInUse],
// [ErrForeign], [ErrDamaged] or [ErrUnwritable], or comes from the file system. With an error that
// wraps [ErrUnwritable] there is a Dir too if the directory holds no record: a record
// that cannot be replaced would go on speaking for a time long past.
func Open(path, cluster string) (*Dir, error) {
	d := &Dir{path: path, cluster: cluster}
	unwritable := d.acquire()
	if unwritable != nil && !errors.Is(unwritable, ErrUnwritable) {
		return nil, unwritable
	}
	record, err := d.read()
	if err == nil && unwritable != nil && record.Data != 0 {
		err = fmt.Errorf("%w: what it remembers would be out of date: make it writable, or delete it and lose the node's vote", unwritable)
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	d.record = record
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
	lock, err := directory.Lock(filepath.Join(d.path, lockName))
	switch {
	case errors.Is(err, directory.ErrInUse):
		return fmt.Errorf("%s: %w: give each node a directory of its own", d.path, err)
	case err != nil:
		return fmt.Errorf("%s: %w: %w", d.path, ErrUnwritable, err)
	}
	d.lock = lock
	return nil
}

// read returns the record in the directory, the zero Record if there is none.
func (d *Dir) read() (protocol.Record, error) {
	name := filepath.Join(d.path, recordName)
	var none protocol.Record
	opened, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return none, nil
	}
	if err != nil {
		return none, err
	}
	defer func() { _ = opened.Close() }() // The file was only read.
	text, err := io.ReadAll(io.LimitReader(opened, maxRecordBytes+1))
	if err != nil {
		return none, err
	}
	f, err := parse(text)
	if err == nil && f.cluster != d.cluster {
		err = fmt.Errorf("%w: it is of cluster %q, this node is of cluster %q: give it another data-dir", ErrForeign, f.cluster, d.cluster)
	}
	if err != nil {
		return none, fmt.Errorf("%s: %w", name, err)
	}
	return f.record, nil
}

// Record returns the record that is kept, the zero Record if there is none.
func (d *Dir) Record() protocol.Record {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.record
}

// Writable reports whether records can be kept.
func (d *Dir) Writable() bool { return d.lock != nil }

// Keep replaces the record. When it returns nil the new record survives the process and
// the machine. An error that wraps [protocol.ErrRecordLost] says that no record is left,
// any other error that the old record may still be there.
func (d *Dir) Keep(r protocol.Record) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lock == nil {
		return fmt.Errorf("%s: %w", d.path, ErrUnwritable)
	}
	if err := d.replace(file{cluster: d.cluster, record: r}); err != nil {
		return d.forget(err)
	}
	d.record = r
	return nil
}

// forget removes the record, since it could not be replaced.
func (d *Dir) forget(why error) error {
	err := os.Remove(filepath.Join(d.path, recordName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := directory.Sync(d.path); err != nil {
		return err
	}
	d.record = protocol.Record{}
	return fmt.Errorf("%w: %w", protocol.ErrRecordLost, why)
}

// replace writes a new file: the whole new content is on the disk before it takes the
// place of the old one.
func (d *Dir) replace(f file) error {
	name := filepath.Join(d.path, temporary)
	created, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = created.Write(f.text())
	err = errors.Join(err, created.Sync(), created.Close())
	if err == nil {
		err = os.Rename(name, filepath.Join(d.path, recordName))
	}
	if err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return directory.Sync(d.path)
}

// Close gives the directory back. It does not wait for a write that hangs: then the
// directory stays taken until the process ends. Close may be called again.
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
