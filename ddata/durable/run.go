// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package durable

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync/atomic"

	"github.com/quorate/quorate/ddata/durable/internal/disk"
)

// A run is a file that is written once and sorted: a head, for each group frames with
// batches whose changes are in the order of their keys, an index of the groups, and a
// trailer that says where the index is. The first frame of a group has its meta and whether
// it was wiped. A [runWriter] writes one; [openRun] reads its index, and [run.open]
// the changes of one group, whose number and sum must be those in the index.

const (
	runFrame     = 64 << 10 // bytes of changes after which a frame ends
	trailerBytes = 8 + sumBytes
	indexEntry   = 5 * 8 // bytes of the numbers of one group in the index
)

// runGroup is what the index says of a group.
type runGroup struct {
	name    string
	at, end int64  // where its frames are
	first   uint64 // number of the first frame
	changes uint64
	sum     uint32 // of all changes
}

// runWriter writes a run.
type runWriter struct {
	framing

	files  disk.Files
	named  runFile
	name   string
	file   disk.File
	at     int64
	number uint64
	index  []runGroup

	head    batchHead // of the frame that is being made
	changes []byte    // of the frame that is being made
	frame   []byte    // buffer of what is written
}

// createRun begins a run with the content of some logs.
func createRun(files disk.Files, name string, h fileHead) (*runWriter, error) {
	file, err := files.Create(name)
	if err != nil {
		return nil, err
	}
	w := &runWriter{framing: newFraming(h.tag), files: files, named: runFile{number: h.number, tag: h.tag}, name: name, file: file, number: 1}
	if err := w.write(h.frame()); err != nil {
		return nil, errors.Join(err, w.discard())
	}
	return w, nil
}

func (w *runWriter) write(b []byte) error {
	n, err := w.file.WriteAt(b, w.at)
	w.at += int64(n)
	return err
}

// discard closes and removes a run that is not wanted any more.
func (w *runWriter) discard() error {
	return errors.Join(w.file.Close(), w.files.Remove(w.name))
}

// group begins a group. Each group is written once, in any order.
func (w *runWriter) group(name string, wiped bool, meta []byte) {
	w.index = append(w.index, runGroup{name: name, at: w.at, first: w.number})
	w.head = batchHead{group: name, wipe: wiped, meta: meta}
	w.changes = w.changes[:0]
}

// change adds a key to the group, after those before it in their order.
func (w *runWriter) change(i item) error {
	g := &w.index[len(w.index)-1]
	from := len(w.changes)
	w.changes = appendChange(w.changes, i.key, i.entry)
	g.sum = crc32.Update(g.sum, castagnoli, w.changes[from:])
	g.changes++
	w.head.changes++
	if len(w.changes) < runFrame {
		return nil
	}
	return w.flush()
}

// flush writes the frame that is being made.
func (w *runWriter) flush() error {
	w.frame = appendHead(begin(w.frame), w.head)
	w.frame = append(w.frame, w.changes...)
	w.frame = w.end(w.frame, batchFrame, w.number)
	if int64(len(w.frame)) > maxPayload+headBytes+sumBytes {
		return fmt.Errorf("a frame of %d bytes", len(w.frame))
	}
	w.number++
	w.head = batchHead{group: w.head.group}
	w.changes = w.changes[:0]
	return w.write(w.frame)
}

// groupDone ends the group.
func (w *runWriter) groupDone() error {
	g := &w.index[len(w.index)-1]
	if w.head.changes > 0 || g.first == w.number {
		if err := w.flush(); err != nil {
			return err
		}
	}
	g.end = w.at
	return nil
}

// finish writes the index, and has the run on disk when it returns.
func (w *runWriter) finish() (runFile, error) {
	at := w.at
	b := binary.AppendUvarint(begin(nil), uint64(len(w.index)))
	for _, g := range w.index {
		b = appendText(b, g.name)
		for _, n := range []uint64{uint64(g.at), uint64(g.end), g.first, g.changes, uint64(g.sum)} {
			b = binary.LittleEndian.AppendUint64(b, n)
		}
	}
	b = w.end(b, indexFrame, w.number)
	trailer := len(b)
	b = binary.LittleEndian.AppendUint64(b, uint64(at))
	b = binary.LittleEndian.AppendUint32(b, crc32.Update(uint32(w.framing), castagnoli, b[trailer:]))
	err := w.write(b)
	if err == nil {
		err = w.file.Sync()
	}
	if err == nil {
		err = w.files.Sync()
	}
	if err != nil {
		return runFile{}, errors.Join(err, w.discard())
	}
	w.named.size = w.at
	return w.named, w.file.Close()
}

// run is a run that is open for reading.
type run struct {
	framing

	named runFile
	head  fileHead
	path  string
	file  disk.File
	index map[string]runGroup
	users atomic.Int32 // How many use it; the file is closed when nobody does.
}

// openRun opens a run that the manifest names. With losses a run without an index is
// read as well.
func openRun(files disk.Files, named runFile, lost *losses) (*run, error) {
	r, err := openFile(files, named.name(), lost)
	if err != nil {
		return nil, err
	}
	size, err := r.file.Size()
	switch {
	case err != nil:
		err = ioFault(r.path, err)
	case r.head.tag != named.tag || r.head.number != named.number:
		err = corrupt(r.path, "it is another file than the one that the manifest names")
	case size != named.size:
		err = corrupt(r.path, "it has %d bytes, and was written with %d", size, named.size)
	}
	if err := lost.accept(err); err != nil {
		r.release()
		return nil, err
	}
	r.named = named
	return r, nil
}

// openFile opens a file that has the format of a run.
func openFile(files disk.Files, name string, lost *losses) (*run, error) {
	r := &run{path: files.Path(name)}
	var err error
	if r.file, err = files.Open(name); err != nil {
		return nil, ioFault(r.path, err)
	}
	r.users.Store(1)
	var begin int64
	if r.head, begin, err = readHead(r.file); err != nil {
		r.release()
		return nil, headFault(r.path, err)
	}
	r.framing = newFraming(r.head.tag)
	if err = r.readIndex(); err != nil {
		if err := lost.accept(err); err != nil {
			r.release()
			return nil, err
		}
		err = r.makeIndex(begin, lost)
	}
	if err != nil {
		r.release()
		return nil, err
	}
	return r, nil
}

// use keeps the file open until release.
func (r *run) use() *run {
	r.users.Add(1)
	return r
}

func (r *run) release() {
	if r.users.Add(-1) == 0 {
		_ = r.file.Close() // It was only read.
	}
}

// readIndex reads trailer and index.
func (r *run) readIndex() error {
	size, err := r.file.Size()
	if err != nil {
		return ioFault(r.path, err)
	}
	trailer := make([]byte, trailerBytes)
	if size < trailerBytes {
		return corrupt(r.path, "%d bytes are too few", size)
	}
	if n, err := r.file.ReadAt(trailer, size-trailerBytes); n < len(trailer) {
		return ioFault(r.path, err)
	}
	at := int64(binary.LittleEndian.Uint64(trailer))
	if binary.LittleEndian.Uint32(trailer[8:]) != crc32.Update(uint32(r.framing), castagnoli, trailer[:8]) || at < 0 || at > size {
		return corrupt(r.path, "its end is damaged")
	}
	s := &scanner{framing: r.framing, file: r.file, at: at, end: size - trailerBytes}
	fr, err := s.next()
	if err == nil && (fr.kind != indexFrame || s.at != s.end) {
		err = errFrame
	}
	if isSystem(err) {
		return ioFault(r.path, err)
	}
	if err == nil {
		r.index, err = parseIndex(fr.payload)
	}
	if err != nil {
		return corrupt(r.path, "its index at byte %d: %v", at, err)
	}
	return nil
}

func parseIndex(b []byte) (map[string]runGroup, error) {
	count, n := binary.Uvarint(b)
	if n <= 0 || count > uint64(len(b)) {
		return nil, errBatch
	}
	b = b[n:]
	index := make(map[string]runGroup, count)
	for range count {
		name, rest, err := cutText(b)
		if err != nil || len(rest) < indexEntry {
			return nil, errBatch
		}
		number := func(i int) uint64 { return binary.LittleEndian.Uint64(rest[8*i:]) }
		index[string(name)] = runGroup{
			name: string(name), at: int64(number(0)), end: int64(number(1)), first: number(2), changes: number(3), sum: uint32(number(4)),
		}
		b = rest[indexEntry:]
	}
	if uint64(len(index)) != count || len(b) > 0 {
		return nil, errBatch
	}
	return index, nil
}

// makeIndex makes the index of a run whose own one is damaged, by reading all frames.
func (r *run) makeIndex(begin int64, lost *losses) error {
	s, err := r.whole(r.file, begin)
	if err != nil {
		return ioFault(r.path, err)
	}
	r.index = map[string]runGroup{}
	for {
		at := s.at
		fr, err := s.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			_ = lost.skipped(corrupt(r.path, "at byte %d: %v", at, err), r.path, at, s.skip())
			continue
		}
		if fr.kind != batchFrame {
			continue
		}
		h, _, err := cutBatch(fr.payload)
		if err != nil {
			continue // Reading the group reports it.
		}
		g, known := r.index[h.group]
		if !known {
			g = runGroup{name: h.group, at: at}
		}
		g.end = s.at
		r.index[h.group] = g
	}
}

// names returns the groups of the run.
func (r *run) names() []string {
	names := make([]string, 0, len(r.index))
	for name := range r.index {
		names = append(names, name)
	}
	return names
}

// open begins to read a group.
func (r *run) open(group string, lost *losses) (section, bool, error) {
	g, ok := r.index[group]
	if !ok {
		return section{}, false, nil
	}
	s := &runStream{
		scanner: &scanner{framing: r.framing, file: r.file, at: g.at, end: g.end},
		path:    r.path, group: g, number: g.first, lost: lost,
	}
	h, _, err := s.frame()
	if err != nil {
		return section{}, false, err
	}
	var meta []byte
	if h.meta != nil {
		meta = append([]byte{}, h.meta...)
	}
	return section{wiped: h.wipe, meta: meta, stream: s}, true, nil
}

// runStream reads the changes of one group of a run.
type runStream struct {
	*scanner

	path    string
	group   runGroup
	number  uint64 // of the next frame
	left    uint64 // changes in the frame that is being read
	rest    []byte // those changes
	changes uint64 // that were read
	sum     uint32
	lost    *losses
}

// frame reads the next frame; more is false at the end of the group.
func (s *runStream) frame() (h batchHead, more bool, err error) {
	for {
		at := s.at
		fr, err := s.scanner.next()
		if errors.Is(err, io.EOF) {
			return h, false, s.whole()
		}
		if err == nil {
			h, err = s.begin(fr)
		}
		if err == nil {
			return h, true, nil
		}
		fault := corrupt(s.path, "at byte %d, in group %q: %v", at, s.group.name, err)
		if isSystem(err) {
			fault = ioFault(s.path, err)
		}
		skipped := s.at - at // Of a frame that is whole, and not one of the group.
		if skipped == 0 && s.lost != nil {
			skipped = s.skip()
		}
		if err := s.lost.skipped(fault, s.path, at, skipped); err != nil {
			return h, false, err
		}
	}
}

// begin takes a frame, which must be the next one of the group.
func (s *runStream) begin(fr frame) (batchHead, error) {
	h, rest, err := cutBatch(fr.payload)
	switch {
	case err != nil:
		return h, err
	case fr.kind != batchFrame || h.group != s.group.name, fr.number != s.number && s.lost == nil:
		return h, fmt.Errorf("frame %d of group %q, expected was frame %d", fr.number, h.group, s.number)
	}
	s.number = fr.number + 1
	s.left, s.rest = h.changes, rest
	return h, nil
}

// whole reports whether the group is as it was written.
func (s *runStream) whole() error {
	if s.lost == nil && (s.changes != s.group.changes || s.sum != s.group.sum) {
		return corrupt(s.path, "group %q has %d changes with the sum %08x, and was written with %d and %08x",
			s.group.name, s.changes, s.sum, s.group.changes, s.group.sum)
	}
	return nil
}

func (s *runStream) next() (item, bool, error) {
	for s.left == 0 {
		if _, more, err := s.frame(); err != nil || !more {
			return item{}, false, err
		}
	}
	key, e, rest, err := cutChange(s.rest)
	if err != nil {
		return item{}, false, corrupt(s.path, "in group %q: %v", s.group.name, err)
	}
	s.sum = crc32.Update(s.sum, castagnoli, s.rest[:len(s.rest)-len(rest)])
	s.changes++
	s.left--
	s.rest = rest
	return item{string(key), e}, true, nil
}
