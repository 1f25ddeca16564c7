// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package queuefile

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"slices"
	"sync"

	"github.com/quorate/quorate/sharding/delivery"
)

// The file is a head and then records: a length, a checksum, and a body, which is an entry or the name of one that
// was removed. Open reads it ([Queue.read]), Append and Remove add records ([Queue.write]), and when more than half
// of it is of no use any more it is written anew ([Queue.compact]). What a crash has left of writes that were not synced
// is told from damage by the records behind it, each of which says up to where all was synced when it was written
// ([Queue.next]).

var (
	// ErrDamaged says that the file has what this package has not written.
	ErrDamaged = errors.New("filequeue: the file is damaged")
	// ErrClosed says that the queue was closed, or has failed before in a way after which its file is not known.
	ErrClosed = errors.New("filequeue: the queue is closed")
)

const (
	head      = "quorate deliveries 2\n"
	fileName  = "queue"
	freshName = "queue.new" // What is being written to take the place of the file.

	frameBytes = 8       // Length and checksum before each body.
	bodyMost   = 1 << 26 // More than any entry has.
	slack      = 1 << 20 // So much may be of no use before the file is written anew.

	kindEntry, kindRemoval = 1, 2
	idBytes                = 1 + 16 + 8 + 8 // Kind, session, number and mark, with which each body begins.
	markAt                 = 1 + 16 + 8     // Where the mark is in a body.
)

// place is where the record of an entry is in the file.
type place struct{ at, size int64 }

// Queue is the queue in one directory.
type Queue struct {
	files Files

	mu      sync.Mutex // Guards all below.
	file    File       // Nil once the queue is closed.
	size    int64      // Of the file, up to the last whole record.
	synced  int64      // Up to where the file was synced.
	unnamed bool       // The directory was not synced since the file has its name: a crash may bring the file before back.
	live    map[delivery.EntryID]place
	used    int64 // Bytes of the records of live entries.
}

var _ delivery.Queue = (*Queue)(nil)

// Open opens the queue in a directory, which nobody else may use. The error wraps [ErrDamaged] or that of the
// system.
func Open(files Files) (*Queue, error) {
	q := &Queue{files: files, live: map[delivery.EntryID]place{}}
	if err := q.open(); err != nil {
		return nil, errors.Join(err, q.Close())
	}
	return q, nil
}

// open reads the file, or makes one.
func (q *Queue) open() error {
	// What a crash has left of writing anew is of no use.
	if err := q.drop(freshName); err != nil {
		return err
	}
	file, err := q.files.Open(fileName)
	if errors.Is(err, fs.ErrNotExist) {
		file, err = q.files.Create(fileName)
	}
	if err != nil {
		return fmt.Errorf("filequeue: %w", err)
	}
	q.file = file
	size, err := file.Size()
	if err != nil {
		return fmt.Errorf("filequeue: %w", err)
	}
	begun := make([]byte, min(size, int64(len(head))))
	if _, err := q.file.ReadAt(begun, 0); err != nil && len(begun) > 0 {
		return fmt.Errorf("filequeue: %w", err)
	}
	if string(begun) != head[:len(begun)] {
		return fmt.Errorf("%w: %s does not begin with %q", ErrDamaged, q.files.Path(fileName), head)
	}
	if len(begun) < len(head) { // It is new, or a crash has cut its making off.
		if _, err := q.file.WriteAt([]byte(head), 0); err != nil {
			return fmt.Errorf("filequeue: %w", err)
		}
		q.size = int64(len(head))
		return q.settle()
	}
	q.size = int64(len(head))
	if err := q.read(size); err != nil {
		return err
	}
	return q.settle() // Whoever wrote it may have ended before it was.
}

// drop removes a file, if it is there.
func (q *Queue) drop(name string) error {
	if err := q.files.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("filequeue: %w", err)
	}
	return nil
}

// settle syncs the file and its name.
func (q *Queue) settle() error {
	if err := errors.Join(q.file.Sync(), q.files.Sync()); err != nil {
		return fmt.Errorf("filequeue: %w", err)
	}
	q.synced = q.size
	return nil
}

// read takes in all records. What is cut off at the end is taken away, and what a crash has left out before that is
// passed over: the file is written anew then.
func (q *Queue) read(end int64) error {
	whole, holes := q.size, false
	for at := q.size; at < end; {
		body, err := q.record(at, end)
		if errors.Is(err, errCut) {
			next, err := q.next(at, end)
			if err != nil {
				return err
			}
			at, holes = next, holes || next < end
			continue
		}
		if err != nil {
			return err
		}
		q.note(idOf(body), body[0], place{at, frameBytes + int64(len(body))})
		at += frameBytes + int64(len(body))
		whole = at
	}
	q.size = whole
	if holes {
		return q.compact()
	}
	if whole == end {
		return nil
	}
	if err := errors.Join(q.file.Truncate(q.size), q.file.Sync()); err != nil {
		return fmt.Errorf("filequeue: %w", err)
	}
	return nil
}

// next returns where the first whole record behind a place is at which there is none, or the end. It is damage if
// that record was written when the place had been synced; else a crash came before it was.
func (q *Queue) next(from, end int64) (int64, error) {
	rest := make([]byte, end-from)
	if _, err := q.file.ReadAt(rest, from); err != nil {
		return 0, fmt.Errorf("filequeue: %w", err)
	}
	for i := int64(1); i+frameBytes+idBytes <= int64(len(rest)); i++ {
		n, body := int64(binary.LittleEndian.Uint32(rest[i:])), rest[i+frameBytes:]
		if n < idBytes || n > int64(len(body)) || body[0] != kindEntry && body[0] != kindRemoval {
			continue
		}
		mark := markOf(body)
		if mark < int64(len(head)) || mark > from+i || crc32.Checksum(body[:n], table()) != binary.LittleEndian.Uint32(rest[i+4:]) {
			continue
		}
		if mark > from {
			return 0, q.damaged(from)
		}
		return from + i, nil
	}
	return end, nil
}

// errCut says that there is no whole record at a place.
var errCut = errors.New("there is no whole record")

// record reads the body of the record at a place.
func (q *Queue) record(at, end int64) ([]byte, error) {
	var frame [frameBytes]byte
	if at+frameBytes > end {
		return nil, errCut
	}
	if _, err := q.file.ReadAt(frame[:], at); err != nil {
		return nil, fmt.Errorf("filequeue: %w", err)
	}
	n := int64(binary.LittleEndian.Uint32(frame[:]))
	if n < idBytes || n > bodyMost || at+frameBytes+n > end {
		return nil, errCut
	}
	body := make([]byte, n)
	if _, err := q.file.ReadAt(body, at+frameBytes); err != nil {
		return nil, fmt.Errorf("filequeue: %w", err)
	}
	if crc32.Checksum(body, table()) != binary.LittleEndian.Uint32(frame[4:]) {
		return nil, errCut // Blocks of a write may have come to the disk in any order.
	}
	if body[0] != kindEntry && body[0] != kindRemoval {
		return nil, q.damaged(at)
	}
	return body, nil
}

func (q *Queue) damaged(at int64) error {
	return fmt.Errorf("%w: %s at byte %d", ErrDamaged, q.files.Path(fileName), at)
}

func table() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// note takes in a record.
func (q *Queue) note(id delivery.EntryID, kind byte, at place) {
	before, there := q.live[id]
	if there {
		q.used -= before.size
		delete(q.live, id)
	}
	if kind == kindEntry {
		q.live[id] = at
		q.used += at.size
	}
}

func idOf(body []byte) (id delivery.EntryID) {
	copy(id.Session[:], body[1:])
	id.Number = binary.LittleEndian.Uint64(body[17:])
	return id
}

// markOf returns up to where the file was synced when a record was written.
func markOf(body []byte) int64 { return int64(binary.LittleEndian.Uint64(body[markAt:])) } //nolint:gosec // Negative is refused.

// appendRecord appends a record.
func appendRecord(dst []byte, kind byte, id delivery.EntryID, mark int64, to string, message []byte) []byte {
	at := len(dst)
	dst = append(dst, make([]byte, frameBytes)...)
	dst = append(dst, kind)
	dst = append(dst, id.Session[:]...)
	dst = binary.LittleEndian.AppendUint64(dst, id.Number)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(mark)) //nolint:gosec // Not negative.
	if kind == kindEntry {
		dst = binary.AppendUvarint(dst, uint64(len(to)))
		dst = append(append(dst, to...), message...)
	}
	seal(dst[at:])
	return dst
}

// seal writes the frame of a record.
func seal(record []byte) {
	body := record[frameBytes:]
	binary.LittleEndian.PutUint32(record, uint32(len(body))) //nolint:gosec // At most bodyMost, see Append.
	binary.LittleEndian.PutUint32(record[4:], crc32.Checksum(body, table()))
}

// Load implements [delivery.Queue].
func (q *Queue) Load(ctx context.Context) ([]delivery.Entry, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.usable(ctx); err != nil {
		return nil, err
	}
	all := make([]delivery.Entry, 0, len(q.live))
	for _, at := range q.places() {
		body, err := q.record(at.at, q.size)
		if errors.Is(err, errCut) {
			err = q.damaged(at.at)
		}
		if err != nil {
			return nil, err
		}
		e := delivery.Entry{EntryID: idOf(body)}
		n, used := binary.Uvarint(body[idBytes:])
		rest := body[idBytes+max(used, 0):]
		if used <= 0 || n > uint64(len(rest)) {
			return nil, q.damaged(at.at)
		}
		e.To, e.Message = string(rest[:n]), rest[n:]
		all = append(all, e)
	}
	return all, nil
}

// places returns where the entries are, in the order in which they were appended.
func (q *Queue) places() []place {
	return slices.SortedFunc(maps.Values(q.live), func(a, b place) int { return cmp.Compare(a.at, b.at) })
}

// Append implements [delivery.Queue].
func (q *Queue) Append(ctx context.Context, e delivery.Entry) error {
	if len(e.To)+len(e.Message) > bodyMost-idBytes-binary.MaxVarintLen64 {
		return fmt.Errorf("filequeue: an entry of %d bytes has no room", len(e.Message))
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.usable(ctx); err != nil {
		return err
	}
	record := appendRecord(nil, kindEntry, e.EntryID, q.synced, e.To, e.Message)
	if err := q.write(record, true); err != nil {
		return err
	}
	q.note(e.EntryID, kindEntry, place{q.size, int64(len(record))})
	q.size += int64(len(record))
	q.synced = q.size
	return nil
}

// Remove implements [delivery.Queue].
func (q *Queue) Remove(ctx context.Context, ids []delivery.EntryID) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.usable(ctx); err != nil {
		return err
	}
	var records []byte
	for _, id := range ids {
		if _, there := q.live[id]; there {
			records = appendRecord(records, kindRemoval, id, q.synced, "", nil)
		}
	}
	if err := q.write(records, false); err != nil {
		return err
	}
	for _, id := range ids {
		q.note(id, kindRemoval, place{})
	}
	q.size += int64(len(records))
	if q.size > 2*q.used+slack {
		return q.compact()
	}
	return nil
}

// usable returns why nothing can be done.
func (q *Queue) usable(ctx context.Context) error {
	if q.file == nil {
		return ErrClosed
	}
	return context.Cause(ctx)
}

// write adds records behind the last whole one. After an error the file is as before, or the queue is closed.
func (q *Queue) write(records []byte, sync bool) error {
	if sync && q.unnamed {
		if err := q.name(); err != nil {
			return err
		}
	}
	_, err := q.file.WriteAt(records, q.size)
	if err == nil && sync {
		err = q.file.Sync()
	}
	if err == nil {
		return nil
	}
	// After a failed sync nobody knows what is on the disk. If it cannot be taken back either, nothing may follow it.
	if undo := errors.Join(q.file.Truncate(q.size), q.file.Sync()); undo != nil {
		err = errors.Join(err, undo, q.file.Close())
		q.file = nil
	}
	return fmt.Errorf("filequeue: %w", err)
}

// compact writes the file anew, without what was removed. After an error the old one is in use.
func (q *Queue) compact() error {
	if err := q.drop(freshName); err != nil {
		return err
	}
	fresh, err := q.files.Create(freshName)
	if err != nil {
		return fmt.Errorf("filequeue: %w", err)
	}
	next := &Queue{files: q.files, file: fresh, live: map[delivery.EntryID]place{}}
	if err := q.copyTo(next); err != nil {
		return errors.Join(err, fresh.Close())
	}
	// From here on the new file has the name, whether that is known to be on the disk or not: both have the same
	// entries, until one is appended.
	old := q.file
	q.file, q.size, q.synced, q.live, q.used, q.unnamed = next.file, next.size, next.size, next.live, next.used, true
	return errors.Join(q.name(), old.Close())
}

// name has the name of the file survive a crash.
func (q *Queue) name() error {
	if err := q.files.Sync(); err != nil {
		return fmt.Errorf("filequeue: %w", err)
	}
	q.unnamed = false
	return nil
}

// copyTo writes what is not removed into another file, and gives that the name.
func (q *Queue) copyTo(next *Queue) error {
	if _, err := next.file.WriteAt([]byte(head), 0); err != nil {
		return fmt.Errorf("filequeue: %w", err)
	}
	next.size = int64(len(head))
	for _, at := range q.places() {
		record := make([]byte, at.size)
		if _, err := q.file.ReadAt(record, at.at); err != nil {
			return fmt.Errorf("filequeue: %w", err)
		}
		// It gets its name when it is synced, so that all before a record was synced when the record counts.
		binary.LittleEndian.PutUint64(record[frameBytes+markAt:], uint64(next.size)) //nolint:gosec // Not negative.
		seal(record)
		if _, err := next.file.WriteAt(record, next.size); err != nil {
			return fmt.Errorf("filequeue: %w", err)
		}
		next.note(idOf(record[frameBytes:]), kindEntry, place{next.size, at.size})
		next.size += at.size
	}
	if err := next.file.Sync(); err != nil {
		return fmt.Errorf("filequeue: %w", err)
	}
	if err := q.files.Rename(freshName, fileName); err != nil {
		return fmt.Errorf("filequeue: %w", err)
	}
	return nil
}

// Close ends the use of the directory. It may be called twice.
func (q *Queue) Close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.file == nil {
		return nil
	}
	err := q.file.Close()
	q.file = nil
	return err
}
