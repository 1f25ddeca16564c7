// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package durable

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"unicode/utf8"

	"github.com/quorate/quorate/ddata/durable/internal/disk"
	"github.com/quorate/quorate/ddata/store"
)

// exportLine is one line of an export: a record, or the meta of a group. JSON has no text
// that is not UTF-8, so such names are in base64, under keys of their own.
type exportLine struct {
	Group       *string `json:"group,omitempty"`
	GroupBase64 []byte  `json:"group_base64,omitempty"`
	Key         *string `json:"key,omitempty"`
	KeyBase64   []byte  `json:"key_base64,omitempty"`
	Value       *[]byte `json:"value,omitempty"` // Not left out when it is empty.
	Meta        *[]byte `json:"meta,omitempty"`
}

// Exported is what [Export] has done.
type Exported struct {
	Keys int64  `json:"keys"`           // that were written
	Lost []Loss `json:"lost,omitempty"` // what could not be read
}

// Export writes every record that can be read as a line of JSON: group, key, and the
// value in base64; before the records of a group there is a line with its meta, if it has
// one. path is the directory of a store that no process has open, or one of the files
// that were put aside. progress is called from time to time with the number of keys that were written; it may be nil.
func Export(ctx context.Context, path string, to io.Writer, progress func(keys int64)) (*Exported, error) {
	lost := new(losses)
	out := bufio.NewWriterSize(to, windowSize)
	sources, done, err := exportSources(path, lost)
	if err != nil {
		return nil, err
	}
	count := counter{tell: progress}
	for _, name := range allNames(sources) {
		if err = exportGroup(ctx, sources, name, out, lost, &count); err != nil {
			break
		}
	}
	return &Exported{Keys: count.keys, Lost: lost.list}, errors.Join(err, out.Flush(), done())
}

// exportSources reads what is at a path.
func exportSources(path string, lost *losses) (sources []source, done func() error, err error) {
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
		r, err := openFile(disk.At(filepath.Dir(path)), filepath.Base(path), lost)
		if err != nil {
			return nil, nil, err
		}
		if r.head.isLog() {
			r.release()
			return nil, nil, &store.Error{File: path, Problem: "it is a log, which says nothing without what was before", Remedy: "export the directory"}
		}
		return []source{r}, func() error { r.release(); return nil }, nil
	}
	files, lock, err := takeToRead(path)
	if err != nil {
		return nil, nil, err
	}
	v, err := readView(files, lost)
	if err == nil {
		err = new(Report).describe(files, v) // There must be something.
	}
	if err != nil {
		return nil, nil, errors.Join(err, lock.Close())
	}
	return v.sources, func() error { v.close(); return lock.Close() }, nil
}

func exportGroup(ctx context.Context, sources []source, name string, out io.Writer, lost *losses, count *counter) error {
	g, _, err := openGroup(sources, name, lost)
	if err != nil {
		return err
	}
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	var line exportLine
	line.Group, line.GroupBase64 = texts(name)
	if g.meta != nil {
		line.Meta = &g.meta
		if err := lines.Encode(line); err != nil {
			return err
		}
		line.Meta = nil
	}
	for {
		i, ok, err := g.next()
		if err != nil || !ok {
			return err
		}
		if i.dropped {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		line.Key, line.KeyBase64 = texts(i.key)
		line.Value = &i.value
		if err := lines.Encode(line); err != nil {
			return err
		}
		count.add()
	}
}

// texts returns a name as text, or as bytes if it is none.
func texts(name string) (*string, []byte) {
	if utf8.ValidString(name) {
		return &name, nil
	}
	return nil, []byte(name)
}
