// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quorate/quorate/sharding"
)

// totalInterval is how often the total is written.
const totalInterval = time.Second

const (
	// createTotal makes the table, whose one row is the last total.
	createTotal = `CREATE TABLE IF NOT EXISTS device_totals (
	name text PRIMARY KEY,
	epoch bytea NOT NULL, -- Of the writer: 40 bytes, in the order of epochs.
	node text NOT NULL,
	devices bigint NOT NULL,
	readings bigint NOT NULL,
	written timestamptz NOT NULL
)`
	// writeTotal counts what all devices have stored. A writer with a lower epoch than the last one changes
	// nothing.
	writeTotal = `INSERT INTO device_totals AS t (name, epoch, node, devices, readings, written)
	SELECT 'all', $1, $2, count(*), coalesce(sum((convert_from(state, 'UTF8')::jsonb->>'count')::bigint), 0), clock_timestamp()
	FROM quorate_states WHERE kind = $3 AND form > 0
ON CONFLICT (name) DO UPDATE SET epoch = excluded.epoch, node = excluded.node,
	devices = excluded.devices, readings = excluded.readings, written = excluded.written
	WHERE t.epoch <= excluded.epoch`
	// createLock is the number of a lock that is held while the table is made, by one of several nodes that
	// start at the same moment: "devices" in ASCII.
	createLock = 0x64657669636573
)

// createTotals makes the table of the totals if it is not there.
func createTotals(ctx context.Context, pool *pgxpool.Pool) error {
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", createLock); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, createTotal)
		return err
	})
	if err != nil {
		return fmt.Errorf("devices: the table of totals: %w", err)
	}
	return nil
}

// total is the periodic job, on one node at a time.
type total struct {
	pool *pgxpool.Pool
	node string
}

// write writes the total once, unless a later instance of the job has begun.
func (t total) write(ctx context.Context, epoch sharding.Epoch) error {
	token, err := epoch.MarshalBinary()
	if err != nil {
		return err
	}
	done, err := t.pool.Exec(ctx, writeTotal, token, t.node, []byte(kind))
	if err != nil {
		return fmt.Errorf("devices: the total: %w", err)
	}
	if done.RowsAffected() == 0 {
		return fmt.Errorf("devices: the total is refused, since a later instance than that of epoch %v has written it", epoch)
	}
	return nil
}
