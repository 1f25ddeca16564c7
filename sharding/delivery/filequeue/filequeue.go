// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package filequeue

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/quorate/quorate/machine/directory"
	"github.com/quorate/quorate/sharding/delivery"
	"github.com/quorate/quorate/sharding/delivery/internal/queuefile"
)

var (
	// ErrDamaged says that the file has what this package has not written.
	ErrDamaged = queuefile.ErrDamaged
	// ErrFormat says that another version has written the file, in a form that this one does not read.
	ErrFormat = queuefile.ErrFormat
	// ErrInUse says that another queue has the directory.
	ErrInUse = directory.ErrInUse
	// ErrClosed says that the queue was closed, or has failed before in a way after which its file is not known.
	ErrClosed = queuefile.ErrClosed
)

const lockName = "lock"

// Queue is the queue in one directory.
type Queue struct {
	file *queuefile.Queue

	mu   sync.Mutex // Guards what follows.
	lock io.Closer  // Nil once the queue is closed.
}

var _ delivery.Queue = (*Queue)(nil)

// Open opens the queue in a directory, which is made if it is not there. The error wraps [ErrInUse], [ErrDamaged],
// [ErrFormat] or that of the system.
func Open(dir string) (*Queue, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("filequeue: %w", err)
	}
	lock, err := directory.Lock(filepath.Join(dir, lockName))
	if err != nil {
		return nil, fmt.Errorf("filequeue: %s: %w", dir, err)
	}
	file, err := queuefile.Open(directory.Dir(dir), salt)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return &Queue{file: file, lock: lock}, nil
}

// salt draws the salt of a file.
func salt() (s queuefile.Salt) {
	_, _ = rand.Read(s[:]) // It never fails.
	return s
}

// Load implements [delivery.Queue].
func (q *Queue) Load(ctx context.Context) ([]delivery.Entry, error) { return q.file.Load(ctx) }

// Append implements [delivery.Queue].
func (q *Queue) Append(ctx context.Context, e delivery.Entry) error { return q.file.Append(ctx, e) }

// Remove implements [delivery.Queue].
func (q *Queue) Remove(ctx context.Context, ids []delivery.EntryID) error {
	return q.file.Remove(ctx, ids)
}

// Close ends the use of the directory. It may be called twice.
func (q *Queue) Close() error {
	err := q.file.Close()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.lock != nil {
		err = errors.Join(err, q.lock.Close())
		q.lock = nil
	}
	return err
}
