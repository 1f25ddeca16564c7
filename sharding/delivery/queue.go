// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"slices"
	"sync"
)

// Queue keeps what a producer has accepted until it is confirmed, so that it outlives the producer. A
// producer appends one entry after the other, and removes several at the same time. A queue belongs to one
// producer after the other. Two at the same time lose nothing: each delivers what the other had in the queue
// when it started, and an entity that remembers recognises it as delivered twice.
type Queue interface {
	// Load returns all entries, in the order in which they were appended.
	Load(ctx context.Context) ([]Entry, error)

	// Append keeps an entry, as durably as the queue keeps anything, before it returns. After an
	// error the entry may be there or not.
	Append(ctx context.Context, e Entry) error

	// Remove forgets entries. Those that are not there are no error. After an error it is called
	// again with the same entries.
	Remove(ctx context.Context, ids []EntryID) error
}

// EntryID names an entry of a queue.
type EntryID struct {
	Session Session
	Number  uint64
}

// Entry is a message in a queue.
type Entry struct {
	EntryID

	To      string // The id of the entity.
	Message []byte // Encoded. Nobody changes it.
}

// MemoryQueue is a queue that outlives its producer, and not the process: for tests.
type MemoryQueue struct {
	mu      sync.Mutex
	entries []Entry // Guarded by mu.
}

var _ Queue = (*MemoryQueue)(nil)

// NewMemoryQueue returns an empty queue.
func NewMemoryQueue() *MemoryQueue { return new(MemoryQueue) }

// Load returns all entries.
func (q *MemoryQueue) Load(context.Context) ([]Entry, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.entries), nil
}

// Append keeps an entry.
func (q *MemoryQueue) Append(_ context.Context, e Entry) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.entries = append(q.entries, e)
	return nil
}

// Remove forgets entries. It looks through all that are there.
func (q *MemoryQueue) Remove(_ context.Context, ids []EntryID) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.entries = slices.DeleteFunc(q.entries, func(e Entry) bool { return slices.Contains(ids, e.EntryID) })
	return nil
}
