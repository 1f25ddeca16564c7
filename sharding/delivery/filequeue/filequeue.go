// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package filequeue

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/quorate/quorate/machine/directory"
	"github.com/quorate/quorate/sharding/delivery"
)

// The file is a head and then records: a length, a checksum, and a body, which is an entry or the name of one that
// was removed. Open reads it ([Queue.read]), Append and Remove add records ([Queue.write]), and when more than half
// of it is of no use any more it is written anew ([Queue.compact]).

var (
	// ErrDamaged says that the file has what this package has not written.
	ErrDamaged = errors.New("filequeue: the file is damaged")
	// ErrInUse says that another queue has the directory.
	ErrInUse = directory.ErrInUse
	// ErrClosed says that the queue was closed, or has failed before in a way after which its file is not known.
	ErrClosed = errors.New("filequeue: the queue is closed")
)

const (
	head      = "quorate deliveries 1\n"
	fileName  = "queue"
	freshName = "queue.new" // What is being written to take the place of the file.
	lockName  = "lock"

	frameBytes = 8       // Length and checksum before each body.
	bodyMost   = 1 << 26 // More than any entry has.
	slack      = 1 << 20 // So much may be of no use before the file is written anew.

	kindEntry, kindRemoval = 1, 2
	idBytes                = 1 + 16 + 8 // Kind, session and number, with which each body begins.
)

// place is where the record of an entry is in the file.
type place struct{ at, size int64 }

// Queue is the queue in one directory.
type Queue struct {
	dir  string
	lock io.Closer

	mu   sync.Mutex // Guards all below.
	file *os.File   // Nil once the queue is closed.
	size int64      // Of the file, up to the last whole record.
	live map[delivery.EntryID]place
	used int64 // Bytes of the records of live entries.
}

var _ delivery.Queue = (*Queue)(nil)

// Open opens the queue in a directory, which is made if it is not there. The error wraps [ErrInUse], [ErrDamaged] or
// that of the system.
func Open(dir string) (*Queue, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("filequeue: %w", err)
	}
	lock, err := directory.Lock(filepath.Join(dir, lockName))
	if err != nil {
		return nil, fmt.Errorf("filequeue: %s: %w", dir, err)
	}
	q := &Queue{dir: dir, lock: lock, live: map[delivery.EntryID]place{}}
	if err := q.open(); err != nil {
		return nil, errors.Join(err, q.Close())
	}
	return q, nil
}

// open reads the file, or makes one.
func (q *Queue) open() (err error) {
	// What a crash has left of writing anew is of no use.
	if err := os.Remove(q.path(freshName)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("filequeue: %w", err)
	}
	if q.file, err = os.OpenFile(q.path(fileName), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return fmt.Errorf("filequeue: %w", err)
	}
	info, err := q.file.Stat()
	if err != nil {
		return fmt.Errorf("filequeue: %w", err)
	}
	begun := make([]byte, min(info.Size(), int64(len(head))))
	if _, err := q.file.ReadAt(begun, 0); err != nil && len(begun) > 0 {
		return fmt.Errorf("filequeue: %w", err)
	}
	if string(begun) != head[:len(begun)] {
		return fmt.Errorf("%w: %s does not begin with %q", ErrDamaged, q.path(fileName), head)
	}
	if len(begun) < len(head) { // It is new, or a crash has cut its making off.
		if _, err := q.file.WriteAt([]byte(head), 0); err != nil {
			return fmt.Errorf("filequeue: %w", err)
		}
		q.size = int64(len(head))
		return q.settle()
	}
	q.size = int64(len(head))
	return q.read(info.Size())
}

// settle syncs the file and its name.
func (q *Queue) settle() error {
	if err := errors.Join(q.file.Sync(), directory.Sync(q.dir)); err != nil {
		return fmt.Errorf("filequeue: %w", err)
	}
	return nil
}

func (q *Queue) path(name string) string { return filepath.Join(q.dir, name) }

// read takes in all records. What is cut off at the end is taken away.
func (q *Queue) read(end int64) error {
	for q.size < end {
		body, err := q.record(q.size, end)
		if errors.Is(err, errCut) {
			break
		}
		if err != nil {
			return err
		}
		q.note(idOf(body), body[0], place{q.size, frameBytes + int64(len(body))})
		q.size += frameBytes + int64(len(body))
	}
	if q.size == end {
		return nil
	}
	if err := errors.Join(q.file.Truncate(q.size), q.file.Sync()); err != nil {
		return fmt.Errorf("filequeue: %w", err)
	}
	return nil
}

// errCut says that a record goes on behind the end of the file.
var errCut = errors.New("the record is cut off")

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
	if n < idBytes || n > bodyMost {
		return nil, q.damaged(at)
	}
	if at+frameBytes+n > end {
		return nil, errCut
	}
	body := make([]byte, n)
	if _, err := q.file.ReadAt(body, at+frameBytes); err != nil {
		return nil, fmt.Errorf("filequeue: %w", err)
	}
	if crc32.Checksum(body, table()) != binary.LittleEndian.Uint32(frame[4:]) {
		// Blocks of the last write may have come to the disk in any order.
		if at+frameBytes+n == end {
			return nil, errCut
		}
		return nil, q.damaged(at)
	}
	if body[0] != kindEntry && body[0] != kindRemoval {
		return nil, q.damaged(at)
	}
	return body, nil
}

func (q *Queue) damaged(at int64) error {
	return fmt.Errorf("%w: %s at byte %d", ErrDamaged, q.path(fileName), at)
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

// appendRecord appends a record.
func appendRecord(dst []byte, kind byte, id delivery.EntryID, to string, message []byte) []byte {
	at := len(dst)
	dst = append(dst, make([]byte, frameBytes)...)
	dst = append(dst, kind)
	dst = append(dst, id.Session[:]...)
	dst = binary.LittleEndian.AppendUint64(dst, id.Number)
	if kind == kindEntry {
		dst = binary.AppendUvarint(dst, uint64(len(to)))
		dst = append(append(dst, to...), message...)
	}
	body := dst[at+frameBytes:]
	binary.LittleEndian.PutUint32(dst[at:], uint32(len(body))) //nolint:gosec // At most bodyMost, see Append.
	binary.LittleEndian.PutUint32(dst[at+4:], crc32.Checksum(body, table()))
	return dst
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
	record := appendRecord(nil, kindEntry, e.EntryID, e.To, e.Message)
	if err := q.write(record, true); err != nil {
		return err
	}
	q.note(e.EntryID, kindEntry, place{q.size, int64(len(record))})
	q.size += int64(len(record))
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
			records = appendRecord(records, kindRemoval, id, "", nil)
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
	fresh, err := os.OpenFile(q.path(freshName), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("filequeue: %w", err)
	}
	next := &Queue{dir: q.dir, file: fresh, live: map[delivery.EntryID]place{}}
	if err := q.copyTo(next); err != nil {
		return errors.Join(err, fresh.Close())
	}
	// From here on the new file has the name, whether that is known to be on the disk or not: both have the same entries.
	old := q.file
	q.file, q.size, q.live, q.used = next.file, next.size, next.live, next.used
	return errors.Join(directory.Sync(q.dir), old.Close())
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
		if _, err := next.file.WriteAt(record, next.size); err != nil {
			return fmt.Errorf("filequeue: %w", err)
		}
		next.note(idOf(record[frameBytes:]), kindEntry, place{next.size, at.size})
		next.size += at.size
	}
	if err := next.file.Sync(); err != nil {
		return fmt.Errorf("filequeue: %w", err)
	}
	if err := os.Rename(q.path(freshName), q.path(fileName)); err != nil {
		return fmt.Errorf("filequeue: %w", err)
	}
	return nil
}

// Close ends the use of the directory. It may be called twice.
func (q *Queue) Close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	var err error
	if q.file != nil {
		err = q.file.Close()
		q.file = nil
	}
	if q.lock != nil {
		err = errors.Join(err, q.lock.Close())
		q.lock = nil
	}
	return err
}
