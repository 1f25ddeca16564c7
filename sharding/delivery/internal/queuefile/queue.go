// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package queuefile

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"

	"github.com/quorate/quorate/sharding/delivery"
)

// The form of the file is in record.go: a head and then records, which are entries and the names of those that were
// removed. Open reads the file ([Queue.read]), Append and Remove add records ([Queue.write]), and when more than half
// of it is of no use any more it is written anew ([Queue.compact]). What a crash has left of writes that were not
// synced is told from damage by the records behind it, each of which says up to where all was synced when it was
// written ([Queue.next]). Only records that carry the salt of the file count in that search: it also meets what
// messages hold.

var (
	// ErrDamaged says that the file has what this package has not written.
	ErrDamaged = errors.New("filequeue: the file is damaged")
	// ErrFormat says that another version has written the file, in a form that this one does not read.
	ErrFormat = errors.New("filequeue: the file was written in another form")
	// ErrClosed says that the queue was closed, or has failed before in a way after which its file is not known.
	ErrClosed = errors.New("filequeue: the queue is closed")
)

const (
	fileName  = "queue"
	freshName = "queue.new" // What is being written to take the place of the file.

	slack = 1 << 20 // So much may be of no use before the file is written anew.
)

// place is where the record of an entry is in the file.
type place struct{ at, size int64 }

// Queue is the queue in one directory.
type Queue struct {
	files Files
	salts func() Salt

	mu      sync.Mutex // Guards all below.
	file    File       // Nil once the queue is closed.
	salt    Salt       // Of the file.
	size    int64      // Of the file, up to the last whole record.
	synced  int64      // Up to where the file was synced.
	unnamed bool       // The directory was not synced since the file has its name: a crash may bring the file before back.
	live    map[delivery.EntryID]place
	used    int64 // Bytes of the records of live entries.
}

var _ delivery.Queue = (*Queue)(nil)

// Open opens the queue in a directory, which nobody else may use. Each file that it writes gets a salt of its own from
// the function, which must draw them at random where others choose messages. The error wraps [ErrDamaged], [ErrFormat]
// or that of the system.
func Open(files Files, salts func() Salt) (*Queue, error) {
	q := &Queue{files: files, salts: salts, live: map[delivery.EntryID]place{}}
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
	file, err := q.files.OpenToWrite(fileName)
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
	begun := make([]byte, min(size, int64(headBytes)))
	if _, err := q.file.ReadAt(begun, 0); err != nil && len(begun) > 0 {
		return fmt.Errorf("filequeue: %w", err)
	}
	switch q.salt, err = saltOf(begun); {
	case errors.Is(err, errCut): // It is new, or a crash has cut its making off.
		err = q.begin()
	case err != nil:
		return fmt.Errorf("%w: %s does not begin with a head of %q", err, q.files.Path(fileName), title)
	default:
		q.size = int64(headBytes)
		err = q.read(size)
	}
	if err != nil {
		return err
	}
	return q.settle() // Whoever wrote it may have ended before it was.
}

// begin writes the head of a file, with a new salt.
func (q *Queue) begin() error {
	q.salt = q.salts()
	if _, err := q.file.WriteAt(appendHead(nil, q.salt), 0); err != nil {
		return fmt.Errorf("filequeue: %w", err)
	}
	q.size = int64(headBytes)
	return nil
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
		frame, body := rest[i:i+frameBytes], rest[i+frameBytes:]
		n, ok := lengthOf(frame, q.salt, from+i, int64(len(body)))
		if !ok || !intact(frame, body[:n]) {
			continue
		}
		if markOf(body) > from {
			return 0, q.damaged(from)
		}
		return from + i, nil
	}
	return end, nil
}

// record reads the body of the record at a place.
func (q *Queue) record(at, end int64) ([]byte, error) {
	var frame [frameBytes]byte
	if at+frameBytes > end {
		return nil, errCut
	}
	if _, err := q.file.ReadAt(frame[:], at); err != nil {
		return nil, fmt.Errorf("filequeue: %w", err)
	}
	n, ok := lengthOf(frame[:], q.salt, at, end-at-frameBytes)
	if !ok {
		return nil, errCut
	}
	body := make([]byte, n)
	if _, err := q.file.ReadAt(body, at+frameBytes); err != nil {
		return nil, fmt.Errorf("filequeue: %w", err)
	}
	if !intact(frame[:], body) {
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

// Load implements [delivery.Queue].
func (q *Queue) Load(ctx context.Context) ([]delivery.Entry, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.usable(ctx); err != nil {
		return nil, err
	}
	all := make([]delivery.Entry, 0, len(q.live))
	for _, at := range q.places() {
		body, err := q.entry(at)
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

// entry reads the body of an entry that was read or written before.
func (q *Queue) entry(at place) ([]byte, error) {
	body, err := q.record(at.at, q.size)
	if errors.Is(err, errCut) {
		err = q.damaged(at.at)
	}
	return body, err
}

// places returns where the entries are, in the order in which they were appended.
func (q *Queue) places() []place {
	return slices.SortedFunc(maps.Values(q.live), func(a, b place) int { return cmp.Compare(a.at, b.at) })
}

// Append implements [delivery.Queue].
func (q *Queue) Append(ctx context.Context, e delivery.Entry) error {
	if len(e.To)+len(e.Message) > maxBody-idBytes-binary.MaxVarintLen64 {
		return fmt.Errorf("filequeue: an entry of %d bytes has no room", len(e.Message))
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.usable(ctx); err != nil {
		return err
	}
	entry := Record{ID: e.EntryID, Mark: q.synced, To: e.To, Message: e.Message}
	record := entry.Append(nil, q.salt, q.size)
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
			removal := Record{ID: id, Removal: true, Mark: q.synced}
			records = removal.Append(records, q.salt, q.size+int64(len(records)))
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
	next := &Queue{files: q.files, salts: q.salts, file: fresh, live: map[delivery.EntryID]place{}}
	if err := q.copyTo(next); err != nil {
		return errors.Join(err, fresh.Close())
	}
	// From here on the new file has the name, whether that is known to be on the disk or not: both have the same
	// entries, until one is appended.
	old := q.file
	q.file, q.salt, q.size, q.synced = next.file, next.salt, next.size, next.size
	q.live, q.used, q.unnamed = next.live, next.used, true
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
	if err := next.begin(); err != nil {
		return err
	}
	for _, at := range q.places() {
		body, err := q.entry(at)
		if err != nil {
			return err
		}
		record := append(make([]byte, frameBytes), body...)
		// It gets its name when it is synced, so that all before a record was synced when the record counts.
		setMark(record, next.size)
		seal(record, next.salt, next.size)
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
