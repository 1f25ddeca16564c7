// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package durable

import (
	"math/rand/v2"

	"github.com/quorate/quorate/ddata/durable/internal/disk"
	"github.com/quorate/quorate/simulation/files"
)

// tray is a directory in memory with the faults of a disk, as this package sees one. It implements [disk.Files].
type tray struct{ *files.Directory }

func newTray(rng *rand.Rand) *tray { return &tray{files.New(rng)} }

// clone returns a tray with the same files, all of them synced.
func (d *tray) clone() *tray { return &tray{d.Clone()} }

func (d *tray) Create(name string) (disk.File, error) { return opened(d.Directory.Create(name)) }
func (d *tray) Open(name string) (disk.File, error)   { return opened(d.Directory.Open(name)) }

func opened(f *files.File, err error) (disk.File, error) {
	if err != nil {
		return nil, err
	}
	return f, nil
}
