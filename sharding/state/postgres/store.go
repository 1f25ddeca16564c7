// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quorate/quorate/sharding/epoch"
	"github.com/quorate/quorate/sharding/state/store"
)

// The tables are in schema.go, with the statements. First the store; then claims and writes as columns,
// since a statement gets those of a whole call as arrays; then how answers are read.

// Options are what a program may choose.
type Options struct {
	// Schema is the schema of the tables, which must be there. Empty: "public".
	Schema string
}

// Store is the states in the tables of one schema.
type Store struct {
	pool       *pgxpool.Pool
	statements statements
}

var _ store.Store = (*Store)(nil)

// New returns a store over a pool. It asks nothing of the server.
func New(pool *pgxpool.Pool, o Options) *Store {
	if o.Schema == "" {
		o.Schema = "public"
	}
	return &Store{pool, statementsFor(pgx.Identifier{o.Schema}.Sanitize())}
}

// Create makes the tables if they are not there. A program whose user may not make tables has them made
// by [Schema] in its migrations.
func (s *Store) Create(ctx context.Context) error {
	// Of several nodes that do so at the same moment, all but one could fail without the lock.
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", createLock); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, s.statements.tables)
		return err
	})
	if err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	return nil
}

// createLock is the number of a lock that is held while tables are made: "quorate" in ASCII.
const createLock = 0x71756f72617465

// Load implements [store.Store].
func (s *Store) Load(ctx context.Context, claims []store.Claim) ([]store.Record, error) {
	if len(claims) == 0 {
		return nil, nil
	}
	c := newColumns(len(claims))
	for _, claim := range claims {
		c.add(claim.Key, claim.Owner)
	}
	records := make([]store.Record, len(claims))
	err := s.batch(ctx, func(b *pgx.Batch) {
		b.Queue(s.statements.claim, c.kinds, c.ids, c.epochs, c.instances)
		b.Queue(s.statements.read, c.kinds, c.ids)
		b.Queue(s.statements.readEvents, c.kinds, c.ids)
	}, func(r pgx.BatchResults) error {
		if _, err := r.Exec(); err != nil {
			return err
		}
		var v store.Value
		err := each(r, func(at int, head store.Head) {
			records[at].Head, records[at].Snapshot = head, v
		}, &v.Form, &v.Bytes)
		if err != nil {
			return err
		}
		rows, err := r.Query()
		if err != nil {
			return err
		}
		var at int
		var event store.Value
		_, err = pgx.ForEachRow(rows, []any{&at, &event.Form, &event.Bytes}, func() error {
			records[at-1].Events = append(records[at-1].Events, event)
			event = store.Value{}
			return nil
		})
		return err
	})
	return records, err
}

// Save implements [store.Store].
func (s *Store) Save(ctx context.Context, writes []store.Write) ([]store.Head, error) {
	if len(writes) == 0 {
		return nil, nil
	}
	c, w := newColumns(len(writes)), changes{}
	for i, write := range writes {
		c.add(write.Key, write.Owner)
		w.add(i+1, write)
	}
	heads := make([]store.Head, len(writes))
	err := s.batch(ctx, func(b *pgx.Batch) {
		b.Queue(s.statements.write, c.kinds, c.ids, c.epochs, c.instances,
			w.expected, w.versions, w.whole, w.forms, w.states, w.eventsOf, w.eventVersions, w.eventForms, w.events)
		b.Queue(s.statements.heads, c.kinds, c.ids)
	}, func(r pgx.BatchResults) error {
		if _, err := r.Exec(); err != nil {
			return err
		}
		return each(r, func(at int, head store.Head) { heads[at] = head })
	})
	return heads, err
}

// batch sends statements in one round trip, which the server runs as one transaction, and reads the
// answers.
func (s *Store) batch(ctx context.Context, fill func(*pgx.Batch), read func(pgx.BatchResults) error) error {
	var b pgx.Batch
	fill(&b)
	results := s.pool.SendBatch(ctx, &b)
	err := read(results)
	if closed := results.Close(); err == nil { // With it comes whether the transaction was committed.
		err = closed
	}
	if err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	return nil
}

// columns are the keys and the owners of a call.
type columns struct {
	kinds, ids, epochs [][]byte
	instances          []int64
}

func newColumns(n int) *columns {
	return &columns{
		kinds: make([][]byte, 0, n), ids: make([][]byte, 0, n), epochs: make([][]byte, 0, n), instances: make([]int64, 0, n),
	}
}

func (c *columns) add(k store.Key, o store.Owner) {
	e, _ := o.Epoch.AppendBinary(make([]byte, 0, epoch.Size)) // It never fails.
	c.kinds, c.ids = append(c.kinds, []byte(k.Kind)), append(c.ids, []byte(k.ID))
	c.epochs, c.instances = append(c.epochs, e), append(c.instances, int64(o.Instance)) // Below 2^63 by contract.
}

// changes are what the writes of a call change.
type changes struct {
	expected, versions []int64
	whole              []bool // A snapshot takes the place of all.
	forms              []int64
	states             [][]byte

	eventsOf      []int64 // The number of the write, from 1.
	eventVersions []int64
	eventForms    []int64
	events        [][]byte
}

func (c *changes) add(at int, w store.Write) {
	c.expected, c.versions = append(c.expected, int64(w.Expected)), append(c.versions, int64(w.Version)) // Below 2^63 by contract.
	c.whole = append(c.whole, len(w.Events) == 0)
	c.forms, c.states = append(c.forms, int64(w.Snapshot.Form)), append(c.states, some(w.Snapshot.Bytes))
	for i, e := range w.Events {
		c.eventsOf = append(c.eventsOf, int64(at))
		c.eventVersions = append(c.eventVersions, int64(w.Expected)+1+int64(i)) // Below 2^63 by contract.
		c.eventForms, c.events = append(c.eventForms, int64(e.Form)), append(c.events, some(e.Bytes))
	}
}

// some returns bytes that are not nil, which would be no value for the server.
func some(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// each reads rows that begin with the number of a request and its head; more are the targets of the
// columns behind those.
func each(r pgx.BatchResults, f func(at int, head store.Head), more ...any) error {
	rows, err := r.Query()
	if err != nil {
		return err
	}
	var at int
	var epochBytes []byte
	var head store.Head
	_, err = pgx.ForEachRow(rows, append([]any{&at, &epochBytes, &head.Owner.Instance, &head.Version}, more...), func() error {
		if err := head.Owner.Epoch.UnmarshalBinary(epochBytes); err != nil {
			return fmt.Errorf("the record of request %d: %w", at, err)
		}
		f(at-1, head)
		return nil
	})
	return err
}
