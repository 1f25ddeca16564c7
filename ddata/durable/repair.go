// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package durable

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/quorate/quorate/ddata/durable/internal/disk"
	"github.com/quorate/quorate/ddata/store"
)

// [Repair] writes all that is readable into one new run; gives every old file a second name, so that none is lost
// whatever happens; replaces the manifest, from when on the store is the new run; and removes the first names. If it
// ends in between, it can be run again.

// damagedSuffix ends the second name of a file that was replaced by a repair.
const damagedSuffix = ".damaged"

// Repaired is what [Repair] has done.
type Repaired struct {
	// Report is what [Check] says of the directory now.
	Report *Report `json:"report"`
	// Damaged says that there was something to repair.
	Damaged bool `json:"damaged"`
	// Aside are the names of the old files.
	Aside []string `json:"aside,omitempty"`
	// Lost is what could not be read.
	Lost []Loss `json:"lost,omitempty"`
	// FormerID is the ID that the disk had, in hexadecimal, "" if nothing says it.
	FormerID string `json:"former_id,omitempty"`
}

// Repair makes a damaged store usable again with what is readable, and puts the old files aside. A store without a
// fault stays as it is. A repaired store gets a new ID: a replica that has lost what it had acknowledged has to become
// another one. A key that was dropped may be back if the record of that is lost. progress is called from time to time
// with the number of keys that were read or written; it may be nil.
func Repair(ctx context.Context, dir string, progress func(keys int64)) (*Repaired, error) {
	lock, err := take(dir, false)
	if err != nil {
		return nil, err
	}
	done, err := repair(ctx, disk.At(dir), counter{tell: progress})
	return done, errors.Join(err, lock.Close())
}

func repair(ctx context.Context, files disk.Files, count counter) (*Repaired, error) {
	done := new(Repaired)
	before, err := check(ctx, files, count)
	if err != nil {
		return nil, err
	}
	if before.Fault == "" {
		done.Report = before
		return done, nil
	}
	done.Damaged = true
	m, err := done.salvage(ctx, files, &count)
	if err != nil {
		return nil, err
	}
	names, err := done.putAside(files, m.runs[0].name())
	if err != nil {
		return nil, err
	}
	if err := m.write(files); err != nil {
		return nil, ioFault(files.Path(manifestName), err)
	}
	for _, name := range names {
		if name == manifestName {
			continue // It is the new one.
		}
		if err := files.Remove(name); err != nil {
			return nil, ioFault(files.Path(name), err)
		}
	}
	if err := files.Sync(); err != nil {
		return nil, ioFault(files.Path(""), err)
	}
	done.Report, err = check(ctx, files, count)
	return done, err
}

// salvage writes what is readable into a new run, and returns the manifest that names it.
func (d *Repaired) salvage(ctx context.Context, files disk.Files, count *counter) (*manifest, error) {
	lost := new(losses)
	v, err := readView(files, lost)
	if err != nil {
		return nil, err
	}
	defer v.close()
	if v.cluster == "" {
		return nil, &store.Error{
			Kind: store.ErrCorrupt, File: files.Path(""), Problem: "nothing in it says of which cluster it is",
			Remedy: "move the directory away: the node comes back as a new replica and copies from the others",
		}
	}
	m := &manifest{cluster: v.cluster, id: draw(), next: v.next + 1}
	if v.manifest != nil {
		m.starts = v.manifest.starts
		d.FormerID = fmt.Sprintf("%016x", v.manifest.id)
	}
	head := fileHead{number: v.next, tag: draw(), to: v.next, cluster: v.cluster}
	name := runFile{number: v.next}.name()
	made, err := writeRun(ctx, files, runSpec{
		name: name, head: head, sources: v.sources, groups: allNames(v.sources), oldest: true, lost: lost, progress: count.add,
	})
	if err != nil {
		if ctx.Err() == nil {
			err = ioFault(files.Path(name), err)
		}
		return nil, err
	}
	m.runs = []runFile{made}
	d.Lost = lost.list
	return m, nil
}

// putAside gives every file of the store but the new run a second name, and returns the
// first names.
func (d *Repaired) putAside(files disk.Files, made string) ([]string, error) {
	names, err := files.List()
	if err != nil {
		return nil, ioFault(files.Path(""), err)
	}
	var all []string
	for _, name := range names {
		if name == made || name != manifestName && !ofStore(name) {
			continue
		}
		all = append(all, name)
		aside := name + damagedSuffix
		for n := 2; ; n++ {
			err := files.Link(name, aside)
			if err == nil {
				break
			}
			if !errors.Is(err, fs.ErrExist) {
				return nil, ioFault(files.Path(aside), err)
			}
			aside = fmt.Sprintf("%s%s-%d", name, damagedSuffix, n)
		}
		d.Aside = append(d.Aside, aside)
	}
	if err := files.Sync(); err != nil {
		return nil, ioFault(files.Path(""), err)
	}
	return all, nil
}
