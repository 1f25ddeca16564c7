// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/quorate/quorate/sharding/state/store"
)

// First the store, whose operations append a line each and read what the file says by then; then
// what lines mean; then how an auditor reads them ([Keys], [Read]).

// Store is a directory of journals, as one process uses it.
type Store struct {
	dir, node string

	mu    sync.Mutex
	tails map[store.Key]tail // Guarded by mu.
}

var _ store.Store = (*Store)(nil)

// tail is how far this process has read a file.
type tail struct {
	head store.Head
	size int64
}

// Open returns the store in a directory, which is made if it is not there. Each line names the node, for
// those who read it. There is nothing to close.
func Open(dir, node string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return &Store{dir: dir, node: node, tails: map[store.Key]tail{}}, nil
}

// Load implements [store.Store].
func (s *Store) Load(ctx context.Context, claims []store.Claim) ([]store.Record, error) {
	records := make([]store.Record, len(claims))
	for i, c := range claims {
		var err error
		if records[i], err = s.append(ctx, c.Key, Entry{Claim: &c}, false); err != nil {
			return nil, err
		}
	}
	return records, nil
}

// Save implements [store.Store].
func (s *Store) Save(ctx context.Context, writes []store.Write) ([]store.Head, error) {
	heads := make([]store.Head, len(writes))
	for i, w := range writes {
		record, err := s.append(ctx, w.Key, Entry{Write: &w}, true)
		if err != nil {
			return nil, err
		}
		heads[i] = record.Head
	}
	return heads, nil
}

// append adds a line to the file of a record, and returns the record as it is after that line. If only
// the head is asked for, the lines that were read before are not read again.
func (s *Store) append(ctx context.Context, key store.Key, e Entry, headOnly bool) (record store.Record, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return record, context.Cause(ctx)
	}
	file, err := os.OpenFile(Path(s.dir, key), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o644)
	if err != nil {
		return record, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	e.At, e.Node = time.Now().UnixNano(), s.node
	line, err := json.Marshal(e)
	if err != nil {
		return record, err
	}
	// The newline comes first: it ends what a process that was killed has left of its line.
	if _, err := file.Write(append([]byte{'\n'}, line...)); err != nil {
		return record, err
	}
	size, err := file.Seek(0, io.SeekCurrent) // The end of this line: what others append meanwhile comes after it.
	if err != nil {
		return record, err
	}
	read := tail{}
	if known := s.tails[key]; headOnly && known.size <= size {
		read = known
	}
	text := make([]byte, size-read.size)
	if _, err := file.ReadAt(text, read.size); err != nil {
		return record, err
	}
	record.Head = read.head
	if err := replay(text, &record, func(Entry) {}); err != nil {
		return record, fmt.Errorf("journal: %s: %w", file.Name(), err)
	}
	s.tails[key] = tail{record.Head, size}
	return record, nil
}

// Path returns the file of a record.
func Path(dir string, key store.Key) string {
	return filepath.Join(dir, fmt.Sprintf("%x", sha256.Sum256([]byte(key.String()))))
}

// Entry is one line: a claim or a write.
type Entry struct {
	At     int64        `json:"at"`   // When the line was made, Unix nanoseconds.
	Node   string       `json:"node"` // Who has made it.
	Claim  *store.Claim `json:"claim,omitempty"`
	Write  *store.Write `json:"write,omitempty"`
	Counts bool         `json:"-"` // It was done: no later owner had the record, and it had the expected version.
}

// replay does to a record what the lines of a text ask for, in their order, and shows them to seen. A
// line that breaks off is that of a process that was killed, and does not count.
func replay(text []byte, record *store.Record, seen func(Entry)) error {
	for line := range bytes.SplitSeq(text, []byte{'\n'}) {
		var e Entry
		err := json.NewDecoder(bytes.NewReader(line)).Decode(&e)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) { // No line, or a part of one.
			continue
		}
		if err == nil && (e.Claim == nil) == (e.Write == nil) {
			err = errors.New("it is neither a claim nor a write")
		}
		if err != nil {
			return fmt.Errorf("the line %.100q: %w", line, err)
		}
		e.Counts = apply(record, e)
		seen(e)
	}
	return nil
}

// apply does to a record what one line asks for, and reports whether it may.
func apply(r *store.Record, e Entry) bool {
	if c := e.Claim; c != nil {
		if c.Owner.Less(r.Owner) {
			return false
		}
		r.Owner = c.Owner
		return true
	}
	w := e.Write
	if r.Owner == (store.Owner{}) || r.Head != w.Before() {
		return false
	}
	r.Version = w.Version
	if len(w.Events) == 0 {
		r.Snapshot, r.Events = w.Snapshot, nil
	}
	r.Events = append(r.Events, w.Events...)
	return true
}

// Keys returns the keys of all records in a directory, in no order.
func Keys(dir string) ([]store.Key, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var keys []store.Key
	for _, f := range files {
		entries, err := read(filepath.Join(dir, f.Name()))
		if err != nil {
			return nil, err
		}
		for _, e := range entries[:min(1, len(entries))] {
			if e.Claim != nil {
				keys = append(keys, e.Claim.Key)
			} else {
				keys = append(keys, e.Write.Key)
			}
		}
	}
	return keys, nil
}

// Read returns the lines of a record, in their order. The error is one of package os if there is no such
// record. It may be called while owners write: the last line may be missing then.
func Read(dir string, key store.Key) ([]Entry, error) { return read(Path(dir, key)) }

func read(path string) (entries []Entry, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var record store.Record
	if err := replay(text, &record, func(e Entry) { entries = append(entries, e) }); err != nil {
		return nil, fmt.Errorf("journal: %s: %w", path, err)
	}
	return entries, nil
}
