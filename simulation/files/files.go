// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
)

// The directory with its faults comes first, then its operations, then open files.

// sector is what a disk writes as a whole.
const sector = 512

// Directory is a directory in memory. Its fields may be changed while nothing of it is under way.
type Directory struct {
	// Names are the files, by their names.
	Names map[string]*Content

	// Operations counts what has changed something, or would have.
	Operations int

	// FailAt is the operation from which on Err is returned; 0 lets none fail.
	FailAt int

	// Err is what fails with: syscall.ENOSPC, syscall.EIO and the like.
	Err error

	// Fails says which operations fail: "create", "rename", "link", "remove", "write" and "sync"; nil: all
	// of them.
	Fails func(op string) bool

	mu      sync.Mutex // Guards the directory.
	rng     *rand.Rand
	synced  map[string]*Content
	pending []func(map[string]*Content) // Changes of names that were not synced.
}

// Content is what a file holds.
type Content struct {
	// Data is what a reader finds.
	Data []byte

	synced  []byte
	pending []write
}

type write struct {
	at   int64
	data []byte
}

// New returns an empty directory. What a crash leaves is drawn from the source, which may be nil if there is none.
func New(rng *rand.Rand) *Directory {
	return &Directory{rng: rng, Names: map[string]*Content{}, synced: map[string]*Content{}}
}

// Clone returns a directory with the same files, all of them synced.
func (d *Directory) Clone() *Directory {
	c := New(d.rng)
	for name, f := range d.Names {
		c.Names[name] = &Content{Data: bytes.Clone(f.Data), synced: bytes.Clone(f.Data)}
	}
	c.synced = maps.Clone(c.Names)
	return c
}

// Crash leaves what a crash of the machine may leave, and lets operations succeed again.
func (d *Directory) Crash() {
	d.FailAt = 0
	names := maps.Clone(d.synced)
	for _, change := range d.pending[:d.rng.IntN(len(d.pending)+1)] {
		change(names)
	}
	d.pending = nil
	for _, f := range d.Names {
		f.crash(d.rng)
	}
	for _, f := range names {
		f.crash(d.rng)
	}
	d.Names, d.synced = names, maps.Clone(names)
}

// Die leaves what the death of the process leaves: everything. Operations succeed again.
func (d *Directory) Die() { d.FailAt = 0 }

func (f *Content) crash(rng *rand.Rand) {
	data := bytes.Clone(f.synced)
	for _, w := range f.pending {
		for from := 0; from < len(w.data); from += sector {
			if rng.IntN(2) == 0 {
				data = place(data, w.at+int64(from), w.data[from:min(from+sector, len(w.data))])
			}
		}
	}
	f.Data, f.synced, f.pending = data, bytes.Clone(data), nil
}

func place(data []byte, at int64, part []byte) []byte {
	if end := at + int64(len(part)); end > int64(len(data)) {
		data = append(data, make([]byte, end-int64(len(data)))...)
	}
	copy(data[at:], part)
	return data
}

// step counts an operation, and returns its error. The caller has d.mu.
func (d *Directory) step(name, op string) error {
	d.Operations++
	if d.FailAt > 0 && d.Operations >= d.FailAt && (d.Fails == nil || d.Fails(op)) {
		return &fs.PathError{Op: op, Path: name, Err: d.Err}
	}
	return nil
}

func (d *Directory) change(edit func(map[string]*Content)) {
	edit(d.Names)
	d.pending = append(d.pending, edit)
}

// Create makes a file and opens it. It fails if there is one of that name.
func (d *Directory) Create(name string) (*File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step(name, "create"); err != nil {
		return nil, err
	}
	if d.Names[name] != nil {
		return nil, &fs.PathError{Op: "create", Path: name, Err: fs.ErrExist}
	}
	f := new(Content)
	d.change(func(names map[string]*Content) { names[name] = f })
	return &File{d, f, name}, nil
}

// Open opens a file.
func (d *Directory) Open(name string) (*File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.Names[name]
	if f == nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.ENOENT}
	}
	return &File{d, f, name}, nil
}

// Flush syncs a file.
func (d *Directory) Flush(name string) error {
	f, err := d.Open(name)
	if err != nil {
		return err
	}
	return f.Sync()
}

// Rename gives a file another name, in place of any file that has it.
func (d *Directory) Rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step(from, "rename"); err != nil {
		return err
	}
	d.change(func(names map[string]*Content) {
		if f := names[from]; f != nil {
			names[to] = f
			delete(names, from)
		}
	})
	return nil
}

// Link gives a file a second name.
func (d *Directory) Link(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step(from, "link"); err != nil {
		return err
	}
	if d.Names[to] != nil {
		return &fs.PathError{Op: "link", Path: to, Err: fs.ErrExist}
	}
	d.change(func(names map[string]*Content) {
		if f := names[from]; f != nil {
			names[to] = f
		}
	})
	return nil
}

// Remove removes a name of a file.
func (d *Directory) Remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Names[name] == nil {
		return &fs.PathError{Op: "remove", Path: name, Err: syscall.ENOENT}
	}
	if err := d.step(name, "remove"); err != nil {
		return err
	}
	d.change(func(names map[string]*Content) { delete(names, name) })
	return nil
}

// List returns the names of all files, sorted.
func (d *Directory) List() ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.Names)), nil
}

// Sync makes the names survive a crash.
func (d *Directory) Sync() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step(".", "sync"); err != nil {
		return err
	}
	d.synced, d.pending = maps.Clone(d.Names), nil
	return nil
}

// Path returns the path of a file, for people.
func (d *Directory) Path(name string) string { return "tray/" + name }

// File is an open file of a directory.
type File struct {
	of   *Directory
	file *Content
	name string
}

// ReadAt implements [io.ReaderAt].
func (h *File) ReadAt(b []byte, at int64) (int, error) {
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	if at > int64(len(h.file.Data)) {
		return 0, io.EOF
	}
	n := copy(b, h.file.Data[at:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt writes half of what it should when it fails.
func (h *File) WriteAt(b []byte, at int64) (int, error) {
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	err := h.of.step(h.name, "write")
	if err != nil {
		b = b[:len(b)/2]
	}
	h.file.Data = place(h.file.Data, at, b)
	h.file.pending = append(h.file.pending, write{at, bytes.Clone(b)})
	return len(b), err
}

// Sync makes what the file holds survive a crash.
func (h *File) Sync() error {
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	if err := h.of.step(h.name, "sync"); err != nil {
		return err
	}
	h.file.synced, h.file.pending = bytes.Clone(h.file.Data), nil
	return nil
}

// Truncate cuts the file off. A crash may undo that until the file is synced.
func (h *File) Truncate(size int64) error {
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	h.file.Data = h.file.Data[:size]
	return nil
}

// Size returns how many bytes the file has.
func (h *File) Size() (int64, error) {
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	return int64(len(h.file.Data)), nil
}

// Close does nothing.
func (h *File) Close() error { return nil }
