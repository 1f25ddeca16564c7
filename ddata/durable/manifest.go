// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package durable

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"github.com/quorate/quorate/ddata/durable/internal/disk"
	"github.com/quorate/quorate/ddata/store"
	"github.com/quorate/quorate/machine/directory"
)

// The manifest says which files make up the store. It is text, so that a person can read
// it: lines of a keyword and values, the last one the sum of those before. It is replaced by
// renaming ([manifest.write]), and read back by [readManifest]: what it does not name is
// not part of the store.

const (
	manifestName      = "manifest"
	manifestTemporary = manifestName + ".tmp" // Only one process writes, so one name is enough.
	manifestMagic     = "quorate-ddata"
	manifestVersion   = "1"
	maxManifestBytes  = 1 << 20
)

// manifest is the content of the file of that name.
type manifest struct {
	cluster string
	id      uint64
	starts  uint64
	next    uint64 // The number of the next file.
	runs    []runFile
	logs    []logFile // The oldest first; all but the last are sealed.
}

// runFile names a run: a file that is complete and sorted.
type runFile struct {
	number, tag uint64
	size        int64
}

// logFile names a log.
type logFile struct {
	number, tag uint64
	end         int64 // Where the log ends; 0 while it is written.
}

func (r runFile) name() string { return fmt.Sprintf("run-%d", r.number) }

func (l logFile) name() string { return fmt.Sprintf("log-%d", l.number) }

// text returns the file as it is written.
func (m *manifest) text() []byte {
	b := fmt.Appendf(nil, "%s %s\ncluster %s\nid %016x\nstarts %d\nnext %d\n",
		manifestMagic, manifestVersion, strconv.QuoteToASCII(m.cluster), m.id, m.starts, m.next)
	for _, r := range m.runs {
		b = fmt.Appendf(b, "run %d %016x %d\n", r.number, r.tag, r.size)
	}
	for _, l := range m.logs {
		b = fmt.Appendf(b, "log %d %016x %d\n", l.number, l.tag, l.end)
	}
	return fmt.Appendf(b, "sum %08x\n", crc32.Checksum(b, castagnoli))
}

// errManifest is the error about a manifest whose text is not what was written.
var errManifest = errors.New("its check sum is wrong")

// errVersion is the error about an intact manifest of another version.
var errVersion = errors.New("this program knows format " + manifestVersion)

// parseManifest is the inverse of [manifest.text].
func parseManifest(text []byte) (*manifest, error) {
	body, sum, found := strings.Cut(string(text), "\nsum ")
	body += "\n"
	if !found || sum != fmt.Sprintf("%08x\n", crc32.Checksum([]byte(body), castagnoli)) {
		return nil, errManifest
	}
	lines := strings.Split(strings.TrimSuffix(body, "\n"), "\n")
	if lines[0] != manifestMagic+" "+manifestVersion {
		return nil, fmt.Errorf("it says %q, %w", lines[0], errVersion)
	}
	m := new(manifest)
	for _, line := range lines[1:] {
		if err := m.line(line); err != nil {
			return nil, fmt.Errorf("the line %q: %w", line, err)
		}
	}
	if string(m.text()) != string(text) {
		return nil, errors.New("it lacks a line")
	}
	return m, nil
}

// line reads one line.
func (m *manifest) line(line string) (err error) {
	keyword, rest, _ := strings.Cut(line, " ")
	switch keyword {
	case "cluster":
		m.cluster, err = strconv.Unquote(rest)
	case "id":
		_, err = fmt.Sscanf(rest, "%x", &m.id)
	case "starts":
		_, err = fmt.Sscanf(rest, "%d", &m.starts)
	case "next":
		_, err = fmt.Sscanf(rest, "%d", &m.next)
	case "run":
		var r runFile
		_, err = fmt.Sscanf(rest, "%d %x %d", &r.number, &r.tag, &r.size)
		m.runs = append(m.runs, r)
	case "log":
		var l logFile
		_, err = fmt.Sscanf(rest, "%d %x %d", &l.number, &l.tag, &l.end)
		m.logs = append(m.logs, l)
	default:
		err = errors.New("unknown keyword")
	}
	return err
}

// readManifest returns nil without an error if there is no manifest.
func readManifest(files disk.Files) (*manifest, error) {
	name := files.Path(manifestName)
	f, err := files.Open(manifestName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // There is none.
	}
	if err != nil {
		return nil, ioFault(name, err)
	}
	defer func() { _ = f.Close() }() // It was only read.
	size, err := f.Size()
	if err != nil {
		return nil, ioFault(name, err)
	}
	if size > maxManifestBytes {
		return nil, corrupt(name, "%d bytes are too many", size)
	}
	text := make([]byte, size)
	if n, err := f.ReadAt(text, 0); int64(n) < size && !errors.Is(err, io.EOF) {
		return nil, ioFault(name, err)
	}
	m, err := parseManifest(text)
	switch {
	case errors.Is(err, errVersion):
		return nil, &store.Error{Kind: store.ErrVersion, File: name, Problem: err.Error(), Remedy: "start the version that wrote it"}
	case err != nil:
		return nil, corrupt(name, "%v", err)
	}
	return m, nil
}

// errUnknown is wrapped by the error of a write after which either the old or the new
// manifest may be on the disk.
var errUnknown = errors.New("it is unknown which manifest is on the disk")

// write replaces the manifest on disk: the whole new text is there before it takes
// the place of the old one.
func (m *manifest) write(files disk.Files) error {
	err := files.Remove(manifestTemporary)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := writeFile(files, manifestTemporary, m.text()); err != nil {
		return err
	}
	if err := files.Rename(manifestTemporary, manifestName); directory.Full(err) {
		return err
	} else if err != nil {
		return fmt.Errorf("%w: %w", errUnknown, err)
	}
	if err := files.Sync(); err != nil {
		return fmt.Errorf("%w: %w", errUnknown, err)
	}
	return nil
}

// writeFile makes a file with a content and syncs it.
func writeFile(files disk.Files, name string, content []byte) error {
	f, err := files.Create(name)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(content, 0)
	return errors.Join(err, f.Sync(), f.Close())
}
