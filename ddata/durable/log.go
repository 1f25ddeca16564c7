// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package durable

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/quorate/quorate/ddata/durable/internal/disk"
)

// A log takes what is applied, in the order in which it is applied: a frame for each sync
// ([logWriter.append]). It is read at the next start ([readLog]).
//
// A frame that is cut off at the end of a log was never acknowledged if the process or the machine ended while it was
// written; but it was acknowledged if the file was damaged since. The marks tell these apart. After each sync, and
// before it is acknowledged, one of two marks in the head of the log is overwritten with the end of what is synced. A
// mark need not be synced: it is there after a crash of the process, and after a crash of the machine an older mark is
// there, which says that less is synced, and never more. So:
//
//   - damage before the mark is damage to what was acknowledged: an error;
//   - damage after the mark is a torn end, unless a whole frame follows: that was written after the damaged frame had
//     been synced, and it is an error.

const (
	logHead   = 4096 // where the first frame of a log begins
	markPlace = 2048 // where the first mark is
	markApart = 512  // from one mark to the next, so that each is in a sector of its own
	markBytes = 16 + sumBytes
	marks     = 2
)

// fileHead is the content of the first frame of a log or a run. From these, a manifest that is lost can be made again.
type fileHead struct {
	number, tag uint64
	from, to    uint64 // Numbers of the logs whose content is in the file; its own for a log.
	cluster     string
}

// isLog reports whether the file is a log: a run has a number above those of its logs, and one
// that a repair has made begins before all of them.
func (h fileHead) isLog() bool { return h.number == h.from }

const (
	fileVersion  = 1
	clusterBytes = 255 // the longest name of a cluster
)

func (h fileHead) payload(b []byte) []byte {
	b = append(b, fileVersion)
	for _, n := range []uint64{h.number, h.tag, h.from, h.to} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return appendText(b, h.cluster)
}

// frame returns the first frame of the file. Its sums have no tag, which is not known yet
// when it is read.
func (h fileHead) frame() []byte {
	b := h.payload(begin(nil))
	return framing(0).end(b, headFrame, 0)
}

// errHead is the error about a file that does not begin as it should.
var errHead = errors.New("its head is damaged")

// readHead reads the first frame of a file, and returns where the next one begins.
func readHead(file disk.File) (h fileHead, end int64, err error) {
	s, err := framing(0).whole(file, 0)
	if err != nil {
		return h, 0, err
	}
	fr, err := s.next()
	if errors.Is(err, errFrame) || errors.Is(err, io.EOF) {
		err = errHead
	}
	if err != nil {
		return h, 0, err
	}
	const fixed = 1 + 4*8
	if fr.kind != headFrame || len(fr.payload) < fixed || fr.payload[0] != fileVersion {
		return h, 0, errHead
	}
	for i, n := range []*uint64{&h.number, &h.tag, &h.from, &h.to} {
		*n = binary.LittleEndian.Uint64(fr.payload[1+8*i:])
	}
	name, rest, err := cutText(fr.payload[fixed:])
	if err != nil || len(rest) > 0 {
		return h, 0, errHead
	}
	h.cluster = string(name)
	return h, s.at, nil
}

// mark says how much of a log is synced.
type mark struct {
	frames uint64
	end    int64
}

func (f framing) mark(m mark) []byte {
	b := binary.LittleEndian.AppendUint64(nil, m.frames)
	b = binary.LittleEndian.AppendUint64(b, uint64(m.end))
	return binary.LittleEndian.AppendUint32(b, crc32.Update(uint32(f), castagnoli, b))
}

// readMark returns the newer of the marks.
func (f framing) readMark(file disk.File) (newest mark, err error) {
	found := false
	for i := range int64(marks) {
		b := make([]byte, markBytes)
		if n, err := file.ReadAt(b, markPlace+i*markApart); n < len(b) {
			return newest, err
		}
		m := mark{frames: binary.LittleEndian.Uint64(b), end: int64(binary.LittleEndian.Uint64(b[8:]))}
		if string(f.mark(m)) == string(b) && (!found || m.end > newest.end) {
			newest, found = m, true
		}
	}
	if !found {
		return newest, errors.New("no mark says how long it is")
	}
	return newest, nil
}

// logWriter writes a log. One goroutine at a time may use it.
type logWriter struct {
	framing

	file   disk.File
	synced mark
}

// createLog makes an empty log, and has it on disk when it returns.
func createLog(files disk.Files, l logFile, cluster string) (*logWriter, error) {
	file, err := files.Create(l.name())
	if err != nil {
		return nil, err
	}
	w := &logWriter{framing: newFraming(l.tag), file: file, synced: mark{end: logHead}}
	head := make([]byte, logHead)
	copy(head, fileHead{number: l.number, tag: l.tag, from: l.number, to: l.number, cluster: cluster}.frame())
	for i := range marks {
		copy(head[markPlace+i*markApart:], w.mark(w.synced))
	}
	if _, err = file.WriteAt(head, 0); err == nil {
		err = file.Sync()
	}
	if err == nil {
		err = files.Sync()
	}
	if err != nil {
		return nil, errors.Join(err, file.Close(), files.Remove(l.name()))
	}
	return w, nil
}

// errBroken is wrapped by the error of an append after which nothing is known of the log.
var errBroken = errors.New("the disk did not sync")

// append writes one frame, which the caller has begun in b, and syncs it. After an
// error that wraps errBroken the log must not be written any more: what the system has
// not synced it may have forgotten, and a second sync would not say so. After any other
// error the log is as it was, but for a frame that may come back when the machine
// crashes.
func (w *logWriter) append(b []byte) error {
	b = w.end(b, batchFrame, w.synced.frames)
	if _, err := w.file.WriteAt(b, w.synced.end); err != nil {
		return w.undo(err)
	}
	if err := w.file.Sync(); err != nil {
		return fmt.Errorf("%w: %w", errBroken, err)
	}
	next := mark{frames: w.synced.frames + 1, end: w.synced.end + int64(len(b))}
	place := markPlace + int64(next.frames%marks)*markApart
	if _, err := w.file.WriteAt(w.mark(next), place); err != nil {
		return w.undo(err)
	}
	w.synced = next
	return nil
}

// undo cuts off what was written after the last mark.
func (w *logWriter) undo(err error) error {
	if cut := w.file.Truncate(w.synced.end); cut != nil {
		return fmt.Errorf("%w: %w", errBroken, errors.Join(err, cut))
	}
	return err
}

// close syncs the last mark and closes the file.
func (w *logWriter) close() error { return errors.Join(w.file.Sync(), w.file.Close()) }

// readLog applies a log to a table, and returns where it ends. Without losses any damage
// to what was acknowledged is an error; with them, it is noted and what is whole is read.
func readLog(files disk.Files, l logFile, t table, lost *losses) (end int64, err error) {
	name := files.Path(l.name())
	file, err := files.Open(l.name())
	if err != nil {
		return 0, lost.accept(ioFault(name, err))
	}
	defer func() { _ = file.Close() }() // It was only read.
	h, _, err := readHead(file)
	if err == nil && (h.number != l.number || h.tag != l.tag) {
		err = errors.New("it is another file than the one that the manifest names")
	}
	if err := lost.accept(headFault(name, err)); err != nil {
		return 0, err
	}
	s, err := newFraming(l.tag).whole(file, logHead)
	if err != nil {
		return 0, lost.accept(ioFault(name, err))
	}
	r := logReader{scanner: s, name: name, table: t, lost: lost}
	return r.read(l.end)
}

// headFault returns the error about the first frame of a file.
func headFault(name string, err error) error {
	if err == nil {
		return nil
	}
	if isSystem(err) {
		return ioFault(name, err)
	}
	return corrupt(name, "%v", err)
}

// isSystem reports whether an error comes from the system, and not from what was read.
func isSystem(err error) bool {
	_, is := errors.AsType[interface {
		error
		Timeout() bool // As path errors and errors of system calls have.
	}](err)
	return is
}

// logReader reads the frames of one log.
type logReader struct {
	*scanner

	name   string
	table  table
	lost   *losses
	number uint64 // The next frame's.
}

// read applies every frame; sealed is where the log ends, 0 if it was written last.
func (r *logReader) read(sealed int64) (int64, error) {
	synced := mark{end: sealed}
	if sealed == 0 {
		var err error
		if synced, err = r.readMark(r.file.(disk.File)); err != nil {
			if err := r.lost.accept(headFault(r.name, err)); err != nil {
				return 0, err
			}
			synced.end = r.end
		}
	} else {
		r.end = min(r.end, sealed)
	}
	for {
		at := r.at
		fr, err := r.next()
		switch {
		case err == nil:
			if err := r.apply(fr); err != nil {
				if err := r.lost.skipped(corrupt(r.name, "at byte %d: %v", at, err), r.name, at, r.at-at); err != nil {
					return at, err
				}
			}
			continue
		case errors.Is(err, io.EOF) && r.at >= synced.end:
			return r.at, nil
		case isSystem(err):
			err = ioFault(r.name, err)
		case errors.Is(err, io.EOF):
			err = corrupt(r.name, "it ends at byte %d, and what was written goes on to byte %d", r.at, synced.end)
		default:
			err = corrupt(r.name, "at byte %d: %v", r.at, err)
		}
		if over, err := r.damage(err, synced.end); over || err != nil {
			return r.at, err
		}
	}
}

// damage judges what follows the last whole frame: a torn end, at which the log is over,
// or damage, behind which reading goes on if losses are accepted.
func (r *logReader) damage(fault error, synced int64) (over bool, err error) {
	at := r.at
	if at >= r.end {
		return true, r.lost.accept(fault)
	}
	skipped := r.skip()
	if at >= synced && r.at >= r.end {
		r.at = at
		return true, nil
	}
	if err := r.lost.skipped(fault, r.name, at, skipped); err != nil {
		return true, err
	}
	r.number = anyNumber
	return false, nil
}

// anyNumber lets the next frame have any number, behind damage.
const anyNumber = ^uint64(0)

func (r *logReader) apply(fr frame) error {
	if fr.kind != batchFrame || fr.number != r.number && r.number != anyNumber {
		return fmt.Errorf("frame %d of kind %q, expected was frame %d", fr.number, fr.kind, r.number)
	}
	r.number = fr.number + 1
	return r.table.apply(append([]byte{}, fr.payload...))
}
