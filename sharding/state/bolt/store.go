// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/quorate/quorate/sharding/state/store"
)

// The file: a bucket of records and a bucket of events, whose keys and values are in record.go. First
// how it is opened, then the two operations, each a transaction.

var (
	// ErrInUse says that another process has the file open.
	ErrInUse = errors.New("another process has the file open")
	// ErrFormat says that the file is of a later version, or was written by another program.
	ErrFormat = errors.New("the file is of a later version, or not one of states")
	// ErrDamaged says that a record does not have what was written.
	ErrDamaged = errors.New("the record is damaged")
)

// format is that of the file. It is written when the file is made.
const format = "quorate states 1"

// openTimeout bounds the wait for a process that has the file open: it may be ending.
const openTimeout = 2 * time.Second

// Options are what a program may choose.
type Options struct {
	// NoSync leaves the fsync out: what was saved is lost with the machine, and the file may be
	// damaged then. For tests.
	NoSync bool
}

// Store is the states of one file.
type Store struct {
	db   *bbolt.DB
	path string
}

var _ store.Store = (*Store)(nil)

// Open opens the file at path, which is made if it is not there; its directory must be there. Only the
// user of the process may read it.
func Open(path string, o Options) (*Store, error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: openTimeout, NoSync: o.NoSync})
	if errors.Is(err, bolterrors.ErrTimeout) {
		err = ErrInUse
	}
	if err != nil {
		return nil, fmt.Errorf("bolt: %s: %w", path, err)
	}
	s := &Store{db, path}
	if err := db.Update(s.prepare); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

// Close closes the file. Later calls fail.
func (s *Store) Close() error { return s.db.Close() }

// The buckets, and the key of the format in the first.
const (
	about   = "about"
	records = "records"
	events  = "events"
	formKey = "format"
)

// prepare makes the buckets of a new file, and checks the format of any other.
func (s *Store) prepare(tx *bbolt.Tx) error {
	if b := tx.Bucket([]byte(about)); b != nil {
		if found := string(b.Get([]byte(formKey))); found != format {
			return fmt.Errorf("bolt: %s: %w: it says %.40q, this program writes %q", s.path, ErrFormat, found, format)
		}
		return nil
	}
	if name, _ := tx.Cursor().First(); name != nil {
		return fmt.Errorf("bolt: %s: %w: it has a bucket %.40q", s.path, ErrFormat, name)
	}
	for _, name := range []string{records, events} {
		if _, err := tx.CreateBucket([]byte(name)); err != nil {
			return err
		}
	}
	b, err := tx.CreateBucket([]byte(about))
	if err != nil {
		return err
	}
	return b.Put([]byte(formKey), []byte(format))
}

// update runs a transaction, unless ctx has ended before its turn comes.
func (s *Store) update(ctx context.Context, f func(t table) error) error {
	err := s.db.Update(func(tx *bbolt.Tx) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return f(table{tx.Bucket([]byte(records)), tx.Bucket([]byte(events))})
	})
	if err != nil {
		return fmt.Errorf("bolt: %s: %w", s.path, err)
	}
	return nil
}

// Load implements [store.Store].
func (s *Store) Load(ctx context.Context, claims []store.Claim) ([]store.Record, error) {
	loaded := make([]store.Record, len(claims))
	err := s.update(ctx, func(t table) error {
		for i, c := range claims {
			r, err := t.read(c.Key)
			if err != nil {
				return err
			}
			if r.Owner.Less(c.Owner) {
				r.Owner = c.Owner
				if err := t.put(c.Key, r); err != nil {
					return err
				}
			}
			if loaded[i], err = t.whole(c.Key, r); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return loaded, nil
}

// Save implements [store.Store].
func (s *Store) Save(ctx context.Context, writes []store.Write) ([]store.Head, error) {
	heads := make([]store.Head, len(writes))
	err := s.update(ctx, func(t table) error {
		for i, w := range writes {
			r, err := t.read(w.Key)
			if err != nil {
				return err
			}
			if r.Head == w.Before() && r.Owner != (store.Owner{}) {
				if r, err = t.change(r, w); err != nil {
					return err
				}
			}
			heads[i] = r.Head
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return heads, nil
}
