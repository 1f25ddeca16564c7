// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package durable

import (
	"bytes"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"

	"github.com/quorate/quorate/ddata/durable/internal/disk"
)

// A tray is a directory in memory that loses what was not synced when the machine
// crashes: of each write any sectors, of the changes of names any but the first. It
// counts operations, and can let the one with a number, and those after it, fail.

const sector = 512

// tray implements [disk.Files].
type tray struct {
	mu      sync.Mutex
	rng     *rand.Rand
	names   map[string]*content
	synced  map[string]*content
	pending []func(map[string]*content) // changes of names that were not synced

	operations int
	failAt     int                  // From this operation on err is returned; 0 lets none fail.
	err        error                // ENOSPC, EIO ...
	fails      func(op string) bool // Which operations fail; nil: all that change something.
}

type content struct {
	data    []byte
	synced  []byte
	pending []write
}

type write struct {
	at   int64
	data []byte
}

func newTray(rng *rand.Rand) *tray {
	return &tray{rng: rng, names: map[string]*content{}, synced: map[string]*content{}}
}

// clone returns a tray with the same files, all of them synced.
func (d *tray) clone() *tray {
	c := newTray(d.rng)
	for name, f := range d.names {
		c.names[name] = &content{data: bytes.Clone(f.data), synced: bytes.Clone(f.data)}
	}
	c.synced = maps.Clone(c.names)
	return c
}

// crash leaves what a crash of the machine may leave, and lets operations succeed again.
func (d *tray) crash() {
	d.failAt = 0
	names := maps.Clone(d.synced)
	for _, change := range d.pending[:d.rng.IntN(len(d.pending)+1)] {
		change(names)
	}
	d.pending = nil
	for _, f := range d.names {
		f.crash(d.rng)
	}
	for _, f := range names {
		f.crash(d.rng)
	}
	d.names, d.synced = names, maps.Clone(names)
}

// die leaves what the death of the process leaves: everything.
func (d *tray) die() { d.failAt = 0 }

func (f *content) crash(rng *rand.Rand) {
	data := bytes.Clone(f.synced)
	for _, w := range f.pending {
		for from := 0; from < len(w.data); from += sector {
			if rng.IntN(2) == 0 {
				data = place(data, w.at+int64(from), w.data[from:min(from+sector, len(w.data))])
			}
		}
	}
	f.data, f.synced, f.pending = data, bytes.Clone(data), nil
}

func place(data []byte, at int64, part []byte) []byte {
	if end := at + int64(len(part)); end > int64(len(data)) {
		data = append(data, make([]byte, end-int64(len(data)))...)
	}
	copy(data[at:], part)
	return data
}

// step counts an operation, and returns its error. The caller has d.mu.
func (d *tray) step(name, op string) error {
	d.operations++
	if d.failAt > 0 && d.operations >= d.failAt && (d.fails == nil || d.fails(op)) {
		return &fs.PathError{Op: op, Path: name, Err: d.err}
	}
	return nil
}

func (d *tray) change(edit func(map[string]*content)) {
	edit(d.names)
	d.pending = append(d.pending, edit)
}

func (d *tray) Create(name string) (disk.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step(name, "create"); err != nil {
		return nil, err
	}
	if d.names[name] != nil {
		return nil, &fs.PathError{Op: "create", Path: name, Err: fs.ErrExist}
	}
	f := new(content)
	d.change(func(names map[string]*content) { names[name] = f })
	return &handle{d, f, name}, nil
}

func (d *tray) Open(name string) (disk.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.names[name]
	if f == nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.ENOENT}
	}
	return &handle{d, f, name}, nil
}

func (d *tray) Flush(name string) error {
	f, err := d.Open(name)
	if err != nil {
		return err
	}
	return f.Sync()
}

func (d *tray) Rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step(from, "rename"); err != nil {
		return err
	}
	d.change(func(names map[string]*content) {
		if f := names[from]; f != nil {
			names[to] = f
			delete(names, from)
		}
	})
	return nil
}

func (d *tray) Link(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step(from, "link"); err != nil {
		return err
	}
	if d.names[to] != nil {
		return &fs.PathError{Op: "link", Path: to, Err: fs.ErrExist}
	}
	d.change(func(names map[string]*content) {
		if f := names[from]; f != nil {
			names[to] = f
		}
	})
	return nil
}

func (d *tray) Remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.names[name] == nil {
		return &fs.PathError{Op: "remove", Path: name, Err: syscall.ENOENT}
	}
	if err := d.step(name, "remove"); err != nil {
		return err
	}
	d.change(func(names map[string]*content) { delete(names, name) })
	return nil
}

func (d *tray) List() ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.names)), nil
}

func (d *tray) Sync() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step(".", "sync"); err != nil {
		return err
	}
	d.synced, d.pending = maps.Clone(d.names), nil
	return nil
}

func (d *tray) Path(name string) string { return "tray/" + name }

// handle is an open file of a tray.
type handle struct {
	tray *tray
	file *content
	name string
}

func (h *handle) ReadAt(b []byte, at int64) (int, error) {
	h.tray.mu.Lock()
	defer h.tray.mu.Unlock()
	if at > int64(len(h.file.data)) {
		return 0, io.EOF
	}
	n := copy(b, h.file.data[at:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt writes half of what it should when it fails.
func (h *handle) WriteAt(b []byte, at int64) (int, error) {
	h.tray.mu.Lock()
	defer h.tray.mu.Unlock()
	err := h.tray.step(h.name, "write")
	if err != nil {
		b = b[:len(b)/2]
	}
	h.file.data = place(h.file.data, at, b)
	h.file.pending = append(h.file.pending, write{at, bytes.Clone(b)})
	return len(b), err
}

func (h *handle) Sync() error {
	h.tray.mu.Lock()
	defer h.tray.mu.Unlock()
	if err := h.tray.step(h.name, "sync"); err != nil {
		return err
	}
	h.file.synced, h.file.pending = bytes.Clone(h.file.data), nil
	return nil
}

// Truncate is not part of what a crash may undo: nothing relies on it.
func (h *handle) Truncate(size int64) error {
	h.tray.mu.Lock()
	defer h.tray.mu.Unlock()
	h.file.data = h.file.data[:size]
	return nil
}

func (h *handle) Size() (int64, error) {
	h.tray.mu.Lock()
	defer h.tray.mu.Unlock()
	return int64(len(h.file.data)), nil
}

func (h *handle) Close() error { return nil }
