// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package durable

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"github.com/quorate/quorate/ddata/durable/internal/disk"
	"github.com/quorate/quorate/ddata/store"
)

// [Check] reads everything that is in a directory, without writing to it. It accepts no
// fault at first; if there is one, it reads again as far as it can, for the figures.

// Report is what [Check] has found.
type Report struct {
	Dir     string        `json:"dir"`
	Cluster string        `json:"cluster"` // "" if nothing says it
	ID      string        `json:"id"`      // in hexadecimal, "" if the manifest cannot be read
	Starts  uint64        `json:"starts"`
	Files   []FileReport  `json:"files"`
	Groups  []GroupReport `json:"groups"`
	Keys    int64         `json:"keys"`
	Bytes   int64         `json:"bytes"`            // of keys and values
	Fault   string        `json:"fault,omitempty"`  // the first one, "" if all is well
	Remedy  string        `json:"remedy,omitempty"` // what to do about the fault
	Lost    []Loss        `json:"lost,omitempty"`   // everything that cannot be read
}

// FileReport is one file of a store.
type FileReport struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
	// Loaded says that the store is made of this file among others; what was put aside
	// is not.
	Loaded bool `json:"loaded"`
}

// GroupReport is one group of a store.
type GroupReport struct {
	Name  string `json:"name"`
	Keys  int64  `json:"keys"`
	Bytes int64  `json:"bytes"` // of keys and values
	Meta  int    `json:"meta"`  // bytes
}

// progressKeys is after how many keys progress is called.
const progressKeys = 1 << 14

// Check reads the store in a directory, which no process may have open, and reports what is there and the first fault.
// An error is returned if there was nothing to check. progress is called from time to time with the number of keys that
// were read; it may be nil.
func Check(ctx context.Context, dir string, progress func(keys int64)) (*Report, error) {
	files, lock, err := takeToRead(dir)
	if err != nil {
		return nil, err
	}
	r, err := check(ctx, files, counter{tell: progress})
	return r, errors.Join(err, lock.Close())
}

func check(ctx context.Context, files disk.Files, count counter) (*Report, error) {
	r := &Report{Dir: files.Path("")}
	fault := r.read(ctx, files, nil, &count)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if fault == nil {
		return r, nil
	}
	r.Fault = faultFile(fault) + ": " + faultText(fault)
	if known := new(store.Error); errors.As(fault, &known) {
		if errors.Is(fault, store.ErrVersion) || errors.Is(fault, ErrNoStore) {
			return nil, fault
		}
		r.Remedy = known.Remedy
	}
	lost := new(losses)
	err := r.read(ctx, files, lost, &count)
	r.Lost = lost.list
	return r, err
}

// read reads everything, and describes it.
func (r *Report) read(ctx context.Context, files disk.Files, lost *losses, count *counter) error {
	v, err := readView(files, lost)
	if err != nil {
		return err
	}
	defer v.close()
	if err := r.describe(files, v); err != nil {
		return err
	}
	r.Groups, r.Keys, r.Bytes = nil, 0, 0
	for _, name := range allNames(v.sources) {
		g, err := readGroup(ctx, v.sources, name, lost, count)
		if err != nil {
			return err
		}
		r.Groups = append(r.Groups, g)
		r.Keys += g.Keys
		r.Bytes += g.Bytes
	}
	return nil
}

// describe fills in the files of the store, and its cluster and id.
func (r *Report) describe(files disk.Files, v *view) error {
	named := []string{}
	r.Cluster, r.Files = v.cluster, nil
	if m := v.manifest; m != nil {
		r.ID, r.Starts = fmt.Sprintf("%016x", m.id), m.starts
		named = append(named, manifestName)
		for _, l := range m.logs {
			named = append(named, l.name())
		}
		for _, run := range m.runs {
			named = append(named, run.name())
		}
	}
	names, err := files.List()
	if err != nil {
		return ioFault(files.Path(""), err)
	}
	slices.Sort(names)
	for _, name := range names {
		if name != manifestName && !ofStore(name) && !isAside(name) {
			continue
		}
		size, err := sizeOf(files, name)
		if err != nil {
			return ioFault(files.Path(name), err)
		}
		r.Files = append(r.Files, FileReport{Name: name, Bytes: size, Loaded: slices.Contains(named, name)})
	}
	if len(r.Files) == 0 {
		return &store.Error{File: files.Path(""), Cause: ErrNoStore, Remedy: "name the directory of a store"}
	}
	return nil
}

// isAside reports whether a file is one that is not loaded, and is kept for people.
func isAside(name string) bool {
	return strings.HasPrefix(name, asidePrefix) || strings.Contains(name, damagedSuffix)
}

func sizeOf(files disk.Files, name string) (int64, error) {
	f, err := files.Open(name)
	if err != nil {
		return 0, err
	}
	size, err := f.Size()
	return size, errors.Join(err, f.Close())
}

// readGroup reads all of a group.
func readGroup(ctx context.Context, sources []source, name string, lost *losses, count *counter) (GroupReport, error) {
	r := GroupReport{Name: name}
	g, _, err := openGroup(sources, name, lost)
	if err != nil {
		return r, err
	}
	r.Meta = len(g.meta)
	for {
		i, ok, err := g.next()
		if err != nil || !ok {
			return r, err
		}
		if i.dropped {
			continue
		}
		if err := ctx.Err(); err != nil {
			return r, err
		}
		r.Keys++
		r.Bytes += int64(len(i.key)) + int64(len(i.value))
		count.add()
	}
}

// counter counts keys, and reports progress.
type counter struct {
	keys int64
	tell func(keys int64) // Nil if nobody wants to know.
}

func (c *counter) add() {
	if c.keys++; c.tell != nil && c.keys%progressKeys == 0 {
		c.tell(c.keys)
	}
}

// noLock is the lock of a directory that cannot be written, and so needs none.
type noLock struct{}

func (noLock) Close() error { return nil }

// takeToRead locks a directory that exists. A directory that cannot be written is read without a lock.
func takeToRead(path string) (disk.Files, io.Closer, error) {
	lock, err := take(path, false)
	if errors.Is(err, syscall.EROFS) || errors.Is(err, fs.ErrPermission) {
		lock, err = noLock{}, nil
	}
	if err != nil {
		return nil, nil, err
	}
	return disk.At(path), lock, nil
}
