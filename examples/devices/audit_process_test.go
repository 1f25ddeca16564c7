// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process && postgres && unix

package main

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/state/postgres"
)

// The auditor of the database: triggers note each new owner of a device and each total, in the order in
// which the database has taken them (installAudit). When all is over the notes are looked at, and the
// states are compared with what clients were told (audit).

// noteAll makes the triggers. The number of a note is taken while its row is locked, so that the notes of
// one row have the order of its changes.
const noteAll = `CREATE TABLE noted_owners (n bigserial, id bytea, epoch bytea, instance bigint);
CREATE FUNCTION note_owner() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	INSERT INTO noted_owners (id, epoch, instance) VALUES (NEW.id, NEW.epoch, NEW.instance);
	RETURN NULL;
END $$;
CREATE TRIGGER note_owner AFTER INSERT OR UPDATE OF epoch, instance ON quorate_states FOR EACH ROW EXECUTE FUNCTION note_owner();
CREATE TABLE noted_totals (n bigserial, epoch bytea, readings bigint);
CREATE FUNCTION note_total() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	INSERT INTO noted_totals (epoch, readings) VALUES (NEW.epoch, NEW.readings);
	RETURN NULL;
END $$;
CREATE TRIGGER note_total AFTER INSERT OR UPDATE ON device_totals FOR EACH ROW EXECUTE FUNCTION note_total();`

const (
	// countOwners counts owners, devices that have had several, and owners that came after a later one.
	countOwners = `SELECT count(*), count(DISTINCT id) FILTER (WHERE epoch > before), count(*) FILTER (WHERE (epoch, instance) <= (before, instance_before))
FROM (SELECT *, lag(epoch) OVER w AS before, lag(instance) OVER w AS instance_before FROM noted_owners WINDOW w AS (PARTITION BY id ORDER BY n)) noted`
	// countTotals counts totals, instances of the job, and totals that were written by an instance after
	// a later one, or that are smaller than one before.
	countTotals = `SELECT count(*), count(DISTINCT epoch), count(*) FILTER (WHERE epoch < before OR readings < readings_before)
FROM (SELECT *, lag(epoch) OVER w AS before, lag(readings) OVER w AS readings_before FROM noted_totals WINDOW w AS (ORDER BY n)) noted`
	// readStates reads what is stored of each device.
	readStates = `SELECT convert_from(id, 'UTF8'), (s->>'count')::bigint, (s->>'sequence')::bigint, (s->>'sum')::double precision
FROM (SELECT id, convert_from(state, 'UTF8')::jsonb AS s FROM quorate_states WHERE kind = 'device' AND form > 0) stored`
)

// installAudit makes the tables and the triggers.
func installAudit(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	require.NoError(t, postgres.New(pool, postgres.Options{}).Create(t.Context()))
	require.NoError(t, createTotals(t.Context(), pool))
	_, err := pool.Exec(t.Context(), noteAll)
	require.NoError(t, err)
}

// noted is what the notes say.
type noted struct {
	owners    int // Of all devices.
	moved     int // Devices that had owners of several epochs.
	overtaken int // Owners that came after a later one.

	totals    int
	instances int // Of the periodic job.
	late      int // Totals that were written after those of a later instance, or are smaller than one before.
}

// readNotes reads the notes.
func readNotes(t *testing.T, pool *pgxpool.Pool) (n noted) {
	t.Helper()
	require.NoError(t, pool.QueryRow(t.Context(), countOwners).Scan(&n.owners, &n.moved, &n.overtaken))
	require.NoError(t, pool.QueryRow(t.Context(), countTotals).Scan(&n.totals, &n.instances, &n.late))
	return n
}

// audit compares the database with the books of the clients.
func audit(t *testing.T, pool *pgxpool.Pool, books []deviceBook) {
	t.Helper()
	n := readNotes(t, pool)
	t.Logf("the auditor has noted %+v", n)
	require.Zero(t, n.overtaken, "owners of devices came after later ones")
	require.Greater(t, n.moved, devices/2)
	require.Zero(t, n.late, "totals were written after those of a later instance, or shrank")
	require.GreaterOrEqual(t, n.instances, 3, "the job has moved when its node was replaced, when it left and when it was killed")

	type stored struct {
		ID              string
		Count, Sequence uint64
		Sum             float64
	}
	rows, err := pool.Query(t.Context(), readStates)
	require.NoError(t, err)
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[stored])
	require.NoError(t, err)
	require.Len(t, all, devices)
	byID := map[string]stored{}
	for _, s := range all {
		byID[s.ID] = s
	}
	for i := range books {
		d := &books[i]
		require.Equal(t, stored{d.id, d.acknowledged, d.acknowledged, d.sum}, byID[d.id], "each acknowledged reading is stored once")
	}
}

// An owner that comes after a later one is noted, and so is a total of an instance that was replaced: the
// faults are planted, since the program makes none.
func TestTheAuditorOfPostgresNotesWhatMustNotBe(t *testing.T) {
	_, pool := startPostgres(t)
	installAudit(t, pool)
	do := func(statement string, args ...any) {
		_, err := pool.Exec(t.Context(), statement, args...)
		require.NoError(t, err)
	}
	own := func(epoch byte, instance int) {
		do(`INSERT INTO quorate_states VALUES ('device', 'a', $1, $2, 0, 0, 0, '') ON CONFLICT (kind, id) DO UPDATE SET epoch = excluded.epoch, instance = excluded.instance`, []byte{epoch}, instance)
	}
	add := func(epoch byte, readings int) {
		do(`INSERT INTO device_totals VALUES ('all', $1, 'a', 1, $2, now()) ON CONFLICT (name) DO UPDATE SET epoch = excluded.epoch, readings = excluded.readings`, []byte{epoch}, readings)
	}
	own(2, 1)
	own(2, 2)
	own(3, 1)
	add(2, 10)
	add(2, 10)
	add(3, 11)
	require.Equal(t, noted{owners: 3, moved: 1, totals: 3, instances: 2}, readNotes(t, pool))
	own(2, 9)
	own(2, 9)
	add(2, 12)
	add(3, 11)
	require.Equal(t, noted{owners: 5, moved: 1, overtaken: 2, totals: 5, instances: 2, late: 2}, readNotes(t, pool))
}
