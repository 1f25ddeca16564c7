// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package postgres

import "strings"

// The tables and the statements. Names are bytes, since an id may have a zero byte, which a text of
// PostgreSQL cannot; convert_from(id, 'UTF8') shows them.

// Schema makes the tables, for migrations. The names of the tables have no schema in it: those of the
// search path count.
const Schema = createStates + ";\n" + createEvents + ";\n"

const (
	createStates = `CREATE TABLE IF NOT EXISTS quorate_states (
	kind bytea NOT NULL,
	id bytea NOT NULL,
	epoch bytea NOT NULL, -- Of the owner: 40 bytes, in the order of epochs.
	instance bigint NOT NULL,
	version bigint NOT NULL,
	base bigint NOT NULL, -- The version of the snapshot; the events above it belong to the state.
	form bigint NOT NULL, -- 0: there is no snapshot.
	state bytea NOT NULL,
	PRIMARY KEY (kind, id)
)`
	createEvents = `CREATE TABLE IF NOT EXISTS quorate_events (
	kind bytea NOT NULL,
	id bytea NOT NULL,
	version bigint NOT NULL,
	form bigint NOT NULL,
	event bytea NOT NULL,
	PRIMARY KEY (kind, id, version)
)`

	// claimRecords makes records, and raises the owners of those with a lower one. It locks all of them, in
	// one order, until the transaction ends: nobody writes between this and the reading.
	claimRecords = `INSERT INTO quorate_states AS s (kind, id, epoch, instance, version, base, form, state)
	SELECT c.kind, c.id, c.epoch, c.instance, 0, 0, 0, ''
	FROM unnest($1::bytea[], $2::bytea[], $3::bytea[], $4::bigint[]) AS c (kind, id, epoch, instance)
	ORDER BY c.kind, c.id
ON CONFLICT (kind, id) DO UPDATE SET epoch = excluded.epoch, instance = excluded.instance
	WHERE (s.epoch, s.instance) < (excluded.epoch, excluded.instance)`

	readHeads = `SELECT c.at, s.epoch, s.instance, s.version
FROM unnest($1::bytea[], $2::bytea[]) WITH ORDINALITY AS c (kind, id, at)
JOIN quorate_states s ON s.kind = c.kind AND s.id = c.id`

	readRecords = `SELECT c.at, s.epoch, s.instance, s.version, s.form, s.state
FROM unnest($1::bytea[], $2::bytea[]) WITH ORDINALITY AS c (kind, id, at)
JOIN quorate_states s ON s.kind = c.kind AND s.id = c.id`

	readAllEvents = `SELECT c.at, e.form, e.event
FROM unnest($1::bytea[], $2::bytea[]) WITH ORDINALITY AS c (kind, id, at)
JOIN quorate_states s ON s.kind = c.kind AND s.id = c.id
JOIN quorate_events e ON e.kind = c.kind AND e.id = c.id AND e.version > s.base
ORDER BY c.at, e.version`

	// writeRecords compares heads and writes, in one statement. A write that finds another transaction at its
	// record waits for it, and compares with what that has left.
	writeRecords = `WITH w AS (
	SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bytea[], $4::bigint[], $5::bigint[], $6::bigint[], $7::boolean[], $8::bigint[], $9::bytea[])
		WITH ORDINALITY AS w (kind, id, epoch, instance, expected, version, whole, form, state, at)
), written AS (
	UPDATE quorate_states s SET
		version = w.version,
		base = CASE WHEN w.whole THEN w.version ELSE s.base END,
		form = CASE WHEN w.whole THEN w.form ELSE s.form END,
		state = CASE WHEN w.whole THEN w.state ELSE s.state END
	FROM w
	WHERE s.kind = w.kind AND s.id = w.id
		AND s.epoch = w.epoch AND s.instance = w.instance AND s.version = w.expected
	RETURNING s.kind, s.id, w.whole, w.at
), over AS (
	DELETE FROM quorate_events e USING written d WHERE d.whole AND e.kind = d.kind AND e.id = d.id
)
INSERT INTO quorate_events (kind, id, version, form, event)
	SELECT d.kind, d.id, e.version, e.form, e.event
	FROM unnest($10::bigint[], $11::bigint[], $12::bigint[], $13::bytea[]) AS e (at, version, form, event)
	JOIN written d ON d.at = e.at`
)

// statements are those of a schema.
type statements struct{ tables, claim, heads, read, readEvents, write string }

// statementsFor returns the statements for the tables of a schema, whose name is quoted.
func statementsFor(schema string) statements {
	in := strings.NewReplacer("quorate_states", schema+".quorate_states", "quorate_events", schema+".quorate_events").Replace
	return statements{
		tables: in(Schema),
		claim:  in(claimRecords), heads: in(readHeads), read: in(readRecords), readEvents: in(readAllEvents), write: in(writeRecords),
	}
}
