// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package area

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/rig"
)

// The floor: the least that saves a state only for its owner, without entities, keeper and store. As many
// rows are changed in one statement as the keeper puts into one, on as many connections.

const (
	createRows = `CREATE TABLE floor_states (id bigint PRIMARY KEY, epoch bytea NOT NULL, version bigint NOT NULL, state bytea NOT NULL)`
	insertRows = `INSERT INTO floor_states SELECT i, $2, 0, '' FROM generate_series(0, $1::bigint - 1) AS i`
	updateRows = `UPDATE floor_states s SET version = w.version, state = w.state
FROM unnest($1::bigint[], $2::bytea[], $3::bigint[], $4::bytea[]) AS w (id, epoch, version, state)
WHERE s.id = w.id AND s.epoch = w.epoch AND s.version = w.version - 1`

	batchMost = 256 // As the keeper has it by default.
	callsMost = 4
	epochSize = 40
)

// measureStatements has the database change rows.
func measureStatements(ctx context.Context, s rig.Spec, _ *rig.Link) (figure.Outcome, error) {
	server, err := startServer(ctx)
	if err != nil {
		return figure.Outcome{}, err
	}
	defer server.end()
	if _, err := server.pool.Exec(ctx, createRows); err != nil {
		return figure.Outcome{}, err
	}
	if _, err := server.pool.Exec(ctx, insertRows, s.Entities, make([]byte, epochSize)); err != nil {
		return figure.Outcome{}, err
	}
	writers := (s.Senders + batchMost - 1) / batchMost
	if writers > callsMost || s.Entities != s.Senders {
		return figure.Outcome{}, fmt.Errorf("bench: %d senders to %d rows cannot be measured", s.Senders, s.Entities)
	}
	took, faults := make([][]time.Duration, writers), make([]error, writers)
	began := time.Now()
	var writing sync.WaitGroup
	// Owned by measureStatements, which waits for them: they end after the time of the spec.
	for i := range writers {
		first := i * batchMost
		rows := min(batchMost, s.Entities-first)
		writing.Go(func() { took[i], faults[i] = update(ctx, server.pool, first, rows, s) })
	}
	writing.Wait()
	seconds := time.Since(began).Seconds()
	if err := errors.Join(faults...); err != nil {
		return figure.Outcome{}, err
	}
	var all []time.Duration
	changes := 0
	for i, t := range took {
		all = append(all, t...)
		changes += len(t) * min(batchMost, s.Entities-i*batchMost)
	}
	return figure.Outcome{Values: map[string]float64{
		"p50":  rig.Microseconds(figure.Percentile(all, 0.5)),
		"rate": float64(changes) / seconds,
	}}, nil
}

// update changes rows again and again, all in one statement, and returns how long each took.
func update(ctx context.Context, pool *pgxpool.Pool, first, rows int, s rig.Spec) (took []time.Duration, err error) {
	ids, epochs, versions, states := make([]int64, rows), make([][]byte, rows), make([]int64, rows), make([][]byte, rows)
	for i := range rows {
		ids[i], epochs[i], states[i] = int64(first+i), make([]byte, epochSize), make([]byte, s.Size)
	}
	for began := time.Now(); time.Since(began) < s.Time; {
		for i := range versions {
			versions[i]++
		}
		at := time.Now()
		tag, err := pool.Exec(ctx, updateRows, ids, epochs, versions, states)
		if err != nil {
			return nil, err
		}
		if tag.RowsAffected() != int64(rows) {
			return nil, fmt.Errorf("bench: %d of %d rows were changed", tag.RowsAffected(), rows)
		}
		took = append(took, time.Since(at))
	}
	return took, nil
}
