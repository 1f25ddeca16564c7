// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"bytes"
	"context"
	"sync"

	"github.com/quorate/quorate/sharding/state/store"
)

// Store is a store in memory. Its zero value is not usable: see [New].
type Store struct {
	mu      sync.Mutex
	records map[store.Key]store.Record // Guarded by mu.
}

var _ store.Store = (*Store)(nil)

// New returns an empty store.
func New() *Store { return &Store{records: map[store.Key]store.Record{}} }

// Clone returns a store of its own with what s has now, as a backup that can be put back.
func (s *Store) Clone() *Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	records := make(map[store.Key]store.Record, len(s.records))
	for key, r := range s.records {
		records[key] = copied(r)
	}
	return &Store{records: records}
}

// Load implements [store.Store].
func (s *Store) Load(ctx context.Context, claims []store.Claim) ([]store.Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	records := make([]store.Record, len(claims))
	for i, c := range claims {
		r := s.records[c.Key]
		if !c.Owner.Less(r.Owner) {
			r.Owner = c.Owner
			s.records[c.Key] = r
		}
		records[i] = copied(r)
	}
	return records, nil
}

// Save implements [store.Store].
func (s *Store) Save(ctx context.Context, writes []store.Write) ([]store.Head, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	heads := make([]store.Head, len(writes))
	for i, w := range writes {
		r, there := s.records[w.Key]
		if there && r.Head == w.Before() {
			r = changed(r, w)
			s.records[w.Key] = r
		}
		heads[i] = r.Head
	}
	return heads, nil
}

// changed returns the record after a write.
func changed(r store.Record, w store.Write) store.Record {
	r.Version = w.Version
	if len(w.Events) == 0 {
		r.Snapshot, r.Events = cloned(w.Snapshot), nil
		return r
	}
	for _, e := range w.Events {
		r.Events = append(r.Events, cloned(e))
	}
	return r
}

// copied returns a record that shares no bytes with the store's.
func copied(r store.Record) store.Record {
	r.Snapshot = cloned(r.Snapshot)
	events := r.Events
	r.Events = nil
	for _, e := range events {
		r.Events = append(r.Events, cloned(e))
	}
	return r
}

func cloned(v store.Value) store.Value { return store.Value{Form: v.Form, Bytes: bytes.Clone(v.Bytes)} }
