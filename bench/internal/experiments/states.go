// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/harness"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/state"
	"github.com/quorate/quorate/sharding/state/postgres"
	"github.com/quorate/quorate/sharding/state/postgres/postgrestest"
)

// Entities whose states are saved in PostgreSQL, beside the database itself: one change after the other, for the
// latency, and many at a time, for the rate.
//
//	floor    statement ──────────────────────────────────────> PostgreSQL
//	product  ask ──> entity ──> keeper, which gathers saves ──> PostgreSQL
//
// Each run starts a server of its own, as the distribution packages it, with its data in a directory of
// its own and the settings with which a commit is on the disk before it is answered. Without the
// programs of PostgreSQL the group is left out.
//
// First the table and the server; then the floor, which is the least that saves a state only for its owner, without
// entities, keeper and store ([measureStatements]); then the state of an entity and what a message does to it; last
// the measurement, which has askers ask, and in the end looks for each change in the database ([measureSaves]).

// statesGroup is changes of states that are saved.
func statesGroup() harness.Group {
	one := func(m harness.MeasureFunction, name string, floors ...string) harness.Experiment {
		f := figure.Figure{Name: name, Value: "p50", Unit: "us", Better: figure.Lower, Floors: floors}
		return harness.Experiment{Measure: m, Spec: harness.Spec{Size: 64, Senders: 1, Entities: 1}, Figures: []figure.Figure{f}}
	}
	many := harness.Spec{Size: 64, Senders: 1024, Entities: 1024}
	return harness.Group{
		Name: "state", About: "changes of entities, saved in PostgreSQL, 1 and 1,024 at a time",
		Missing: missing,
		Experiments: []harness.Experiment{
			one(measureStatements, "floor-update-p50").AsFloor(),
			one(measureSaves, "save-p50", "floor-update-p50"),
			harness.Single(measureStatements, many, figure.Figure{Name: "floor-update-1024", Unit: "1/s"}).AsFloor(),
			harness.Single(measureSaves, many, figure.Figure{Name: "save-1024", Unit: "1/s", Target: 10e3, Floors: []string{"floor-update-1024"}}),
		},
	}
}

// server is a server of PostgreSQL, with connections to it.
type server struct {
	*postgrestest.Server
	pool *pgxpool.Pool
}

const (
	startTimeout = time.Minute // For a server to take connections.
	connections  = 8
)

// missing says why there is no server; empty if there is one.
func missing() string {
	if err := postgrestest.Missing(); err != nil {
		return err.Error()
	}
	return ""
}

// startServer starts a server.
func startServer(ctx context.Context) (*server, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	s, err := postgrestest.Start(ctx)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.New(ctx, fmt.Sprintf("%s pool_max_conns=%d", s.Connection(), connections))
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return &server{s, pool}, nil
}

// end ends the server, and takes its directory away.
func (s *server) end() {
	s.pool.Close()
	_ = s.Close() // Its data are thrown away, and what is left is in the directory for temporary files.
}

// saved are the values of changes: how long each took, and how many there were in a time.
func saved(took []time.Duration, changes int, elapsed time.Duration) map[string]float64 {
	return map[string]float64{
		"p50":  harness.Microseconds(figure.Percentile(took, 0.5)),
		"rate": float64(changes) / elapsed.Seconds(),
	}
}

// As many rows are changed in one statement of the floor as the keeper puts into one, on as many connections.
const (
	createRows = `CREATE TABLE floor_states (id bigint PRIMARY KEY, epoch bytea NOT NULL, version bigint NOT NULL, state bytea NOT NULL)`
	insertRows = `INSERT INTO floor_states SELECT i, $2, 0, '' FROM generate_series(0, $1::bigint - 1) AS i`
	updateRows = `UPDATE floor_states s SET version = w.version, state = w.state
FROM unnest($1::bigint[], $2::bytea[], $3::bigint[], $4::bytea[]) AS w (id, epoch, version, state)
WHERE s.id = w.id AND s.epoch = w.epoch AND s.version = w.version - 1`

	maxBatch  = 256 // As the keeper has it by default.
	maxCalls  = 4
	epochSize = 40
)

// measureStatements has the database change rows.
func measureStatements(ctx context.Context, s harness.Spec, _ *harness.Link) (out figure.Outcome, err error) {
	server, err := startServer(ctx)
	if err != nil {
		return out, err
	}
	defer server.end()
	if _, err := server.pool.Exec(ctx, createRows); err != nil {
		return out, err
	}
	if _, err := server.pool.Exec(ctx, insertRows, s.Entities, make([]byte, epochSize)); err != nil {
		return out, err
	}
	writers := (s.Senders + maxBatch - 1) / maxBatch
	if writers > maxCalls || s.Entities != s.Senders {
		return out, fmt.Errorf("bench: %d senders to %d rows cannot be measured", s.Senders, s.Entities)
	}
	rows := func(writer int) int { return min(maxBatch, s.Entities-writer*maxBatch) }
	took := make([][]time.Duration, writers)
	began := time.Now()
	err = harness.Together(writers, func(i int) (err error) {
		took[i], err = updateOn(ctx, server.pool, i*maxBatch, rows(i), s)
		return err
	})
	elapsed, changes := time.Since(began), 0
	for i, t := range took {
		changes += len(t) * rows(i)
	}
	out.Values = saved(slices.Concat(took...), changes, elapsed)
	return out, err
}

// updateOn changes rows again and again, all in one statement, and returns how long each took.
func updateOn(ctx context.Context, pool *pgxpool.Pool, first, rows int, s harness.Spec) (took []time.Duration, err error) {
	ids, epochs, versions, states := make([]int64, rows), make([][]byte, rows), make([]int64, rows), make([][]byte, rows)
	for i := range rows {
		ids[i], epochs[i], states[i] = int64(first+i), make([]byte, epochSize), make([]byte, s.Size)
	}
	return harness.Repeat(s.Time, func() error {
		for i := range versions {
			versions[i]++
		}
		tag, err := pool.Exec(ctx, updateRows, ids, epochs, versions, states)
		if err == nil && tag.RowsAffected() != int64(rows) {
			err = fmt.Errorf("bench: %d of %d rows were changed", tag.RowsAffected(), rows)
		}
		return err
	})
}

// savedState is the state of an entity: the number of its last message, and what that has brought.
type savedState struct {
	Seq     uint64
	Payload []byte
}

// stateCodec is the codec of states, as small as that of the floor.
type stateCodec struct{}

func (stateCodec) Form() uint32 { return 1 }

func (stateCodec) Append(dst []byte, s *savedState) ([]byte, error) {
	return append(fmt.Appendf(dst, "%d ", s.Seq), s.Payload...), nil
}

func (stateCodec) Decode(_ uint32, b []byte, s *savedState) error {
	n, err := fmt.Sscanf(string(b), "%d ", &s.Seq)
	if err != nil || n != 1 {
		return errors.Join(errors.New("a state without a number"), err)
	}
	return nil
}

// receive saves what a message brings. Its number has to be the next: one that is lost or doubled
// is noticed.
func receive(c *state.Context[savedState], m *harness.Message) error {
	if s := c.State(); m.Seq != s.Seq+1 {
		return fmt.Errorf("message %d came to a state of %d", m.Seq, s.Seq)
	}
	c.State().Seq, c.State().Payload = m.Seq, m.Payload
	return c.Reply(&harness.Message{Sender: m.Sender, Seq: m.Seq})
}

// measureSaves asks entities to change their states, each by one asker.
func measureSaves(ctx context.Context, s harness.Spec, _ *harness.Link) (out figure.Outcome, err error) {
	server, err := startServer(ctx)
	if err != nil {
		return out, err
	}
	defer server.end()
	store := postgres.New(server.pool, postgres.Options{})
	if err := store.Create(ctx); err != nil {
		return out, err
	}
	keeper, err := state.NewKeeper(store, state.Default(), state.WithLogger(quiet()))
	if err != nil {
		return out, err
	}
	node, err := startNode(ctx, nil, nil)
	if err != nil {
		return out, err
	}
	defer dropNode(node)
	kind := sharding.Kind[*harness.Message]{Name: kindName, Codec: harness.Codec{}, New: state.Snapshots(keeper, stateCodec{}, receive)}
	region, err := sharding.Start(node, kind)
	if err != nil {
		return out, err
	}
	askers, took := make([]asker, s.Senders), make([][]time.Duration, s.Senders)
	err = harness.Together(s.Senders, func(i int) error { // All shards have homes, and all entities live.
		askers[i] = asker{region: region, name: entityName(i), payload: make([]byte, s.Size)}
		return askers[i].ask(ctx)
	})
	if err != nil {
		return out, err
	}
	began := time.Now()
	err = harness.Together(s.Senders, func(i int) (err error) {
		took[i], err = harness.Repeat(s.Time, func() error { return askers[i].ask(ctx) })
		return err
	})
	if err != nil {
		return out, err
	}
	all := slices.Concat(took...)
	out.Values = saved(all, len(all), time.Since(began))
	out.Lost, err = lost(ctx, server, askers)
	stats := keeper.Stats()
	out.Note = fmt.Sprintf("%d saves in %d calls of the store", stats.Saves, stats.SaveCalls)
	return out, err
}

// asker asks one entity, one question after the other.
type asker struct {
	region  *sharding.Region[*harness.Message]
	name    string
	payload []byte
	seq     uint64
}

func (a *asker) ask(ctx context.Context) error {
	a.seq++
	answer, err := sharding.Ask[*harness.Message](ctx, a.region, a.name, &harness.Message{Seq: a.seq, Ask: true, Payload: a.payload})
	if err == nil && answer.Seq != a.seq {
		err = fmt.Errorf("bench: the answer is to question %d, want %d", answer.Seq, a.seq)
	}
	return err
}

// lost counts the changes that were answered and are not in the database.
func lost(ctx context.Context, s *server, askers []asker) (n uint64, err error) {
	for _, a := range askers {
		var version uint64
		row := s.pool.QueryRow(ctx, `SELECT version FROM quorate_states WHERE id = $1`, []byte(a.name))
		if err := row.Scan(&version); err != nil {
			return 0, err
		}
		n += max(a.seq, version) - version
	}
	return n, nil
}
