// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build postgres && unix

package postgres_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/state"
	"github.com/quorate/quorate/sharding/state/postgres"
	"github.com/quorate/quorate/sharding/state/statetest"
	"github.com/quorate/quorate/sharding/state/store"
)

// The store on a real server: the suite, with a server that crashes; then connections that hang, and
// what only this store has.

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPostgresKeepsTheContract(t *testing.T) {
	s := start(t)
	var schemas atomic.Int64
	statetest.Test(t, statetest.Place{New: func(t testing.TB) statetest.Server {
		schema := fmt.Sprintf(`of "test" %d`, schemas.Add(1))
		pool := s.pool(t)
		_, err := pool.Exec(t.Context(), `CREATE SCHEMA "of ""test"" `+fmt.Sprint(schemas.Load())+`"`)
		require.NoError(t, err)
		return statetest.Server{
			Store: created(t, pool, schema),
			Restart: func(t testing.TB) store.Store {
				s.restart()
				return postgres.New(s.pool(t), postgres.Options{Schema: schema})
			},
		}
	}})
}

func created(t testing.TB, pool *pgxpool.Pool, schema string) *postgres.Store {
	t.Helper()
	states := postgres.New(pool, postgres.Options{Schema: schema})
	var all sync.WaitGroup
	for range 4 { // As the nodes of a cluster do.
		all.Go(func() {
			if err := states.Create(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	return states
}

// A transaction that hangs at a record holds up nobody else: its entity waits, and goes on when the
// record is free.
func TestPostgresARecordThatIsLockedHoldsUpNoOther(t *testing.T) {
	s := start(t)
	pool := s.pool(t)
	states := created(t, pool, "")
	cfg := state.Default()
	cfg.CallTimeout = 500 * time.Millisecond
	keeper, err := state.NewKeeper(states, cfg, state.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	handles := map[string]*state.Handle{}
	for _, id := range []string{"a", "b"} {
		handles[id], _, err = keeper.Open(t.Context(), store.Key{Kind: "account", ID: id}, sharding.Epoch{N: 1})
		require.NoError(t, err)
	}
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "SELECT 1 FROM quorate_states WHERE id = 'a' FOR UPDATE")
	require.NoError(t, err)
	hung := make(chan error, 1)
	go func() { // The test waits for it.
		hung <- handles["a"].SaveSnapshot(t.Context(), store.Value{Form: 1, Bytes: []byte("one")}, 1)
	}()
	for range 20 {
		require.NoError(t, handles["b"].SaveSnapshot(t.Context(), store.Value{Form: 1, Bytes: []byte("one")}, 1))
	}
	patience.Eventually(t, func() bool { return keeper.Stats().FailedCalls > 0 }, "the call has failed")
	require.NoError(t, tx.Rollback(t.Context()))
	require.NoError(t, <-hung)
	require.Equal(t, uint64(1), handles["a"].Version())
}

// The server crashes while entities are saved, and each has what was acknowledged afterwards.
func TestPostgresCrashesUnderLoad(t *testing.T) {
	s := start(t)
	states := created(t, s.pool(t), "")
	keeper, err := state.NewKeeper(states, state.Default(), state.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	const entities, saves = 50, 100
	var all sync.WaitGroup
	var done atomic.Int64
	for i := range entities {
		all.Go(func() {
			h, _, err := keeper.Open(t.Context(), store.Key{Kind: "account", ID: fmt.Sprint(i)}, sharding.Epoch{N: 1})
			if err != nil {
				t.Error(err)
				return
			}
			for n := range saves {
				if err := h.SaveEvents(t.Context(), []store.Value{{Form: 1, Bytes: fmt.Append(nil, n)}}); err != nil {
					t.Error(err)
					return
				}
				done.Add(1)
			}
		})
	}
	patience.Eventually(t, func() bool { return done.Load() > entities*saves/10 }, "a tenth is saved")
	s.restart()
	all.Wait()
	for i := range entities {
		_, record, err := keeper.Open(t.Context(), store.Key{Kind: "account", ID: fmt.Sprint(i)}, sharding.Epoch{N: 2})
		require.NoError(t, err)
		require.Len(t, record.Events, saves)
		for n, e := range record.Events {
			require.Equal(t, fmt.Sprint(n), string(e.Bytes))
		}
	}
	t.Logf("%+v", keeper.Stats())
	require.NotZero(t, keeper.Stats().FailedCalls)
}

// What is in the tables and is no record is an error, which names its row.
func TestPostgresGarbage(t *testing.T) {
	s := start(t)
	pool := s.pool(t)
	states := created(t, pool, "")
	_, err := pool.Exec(t.Context(), "INSERT INTO quorate_states VALUES ('account', 'a', '\\x01', 1, 1, 1, 1, 'x')")
	require.NoError(t, err)
	_, err = states.Load(t.Context(), []store.Claim{{Key: store.Key{Kind: "account", ID: "a"}}})
	require.ErrorContains(t, err, "request 1: epoch: 1 bytes, want 40")
	_, err = pool.Exec(t.Context(), "DROP TABLE quorate_events")
	require.NoError(t, err)
	_, err = states.Load(t.Context(), []store.Claim{{Key: store.Key{Kind: "account", ID: "b"}}})
	require.ErrorContains(t, err, "quorate_events")
}

// BenchmarkPostgresSaves saves 1 KiB of many entities at once, beside the same rows written by
// statements of their own.
func BenchmarkPostgresSaves(b *testing.B) {
	s := start(b)
	pool := s.pool(b)
	states := created(b, pool, "")
	value := store.Value{Form: 1, Bytes: make([]byte, 1<<10)}
	var homes uint64
	for _, entities := range []int{1, 16, 1024} {
		b.Run(fmt.Sprintf("entities=%d", entities), func(b *testing.B) {
			keeper, err := state.NewKeeper(states, state.Default())
			require.NoError(b, err)
			handles := make(chan *state.Handle, entities)
			homes++ // Each run is a later home.
			for i := range entities {
				h, _, err := keeper.Open(b.Context(), store.Key{Kind: "bench", ID: fmt.Sprint(i)}, sharding.Epoch{N: homes})
				require.NoError(b, err)
				handles <- h
			}
			perform(b, entities, func(ctx context.Context, _ int) error {
				h := <-handles
				defer func() { handles <- h }()
				return h.SaveSnapshot(ctx, value, 1)
			})
			b.ReportMetric(float64(keeper.Stats().Saves)/float64(keeper.Stats().SaveCalls), "saves/call")
		})
	}
	for _, connections := range []int{1, 16} {
		b.Run(fmt.Sprintf("floor=%d", connections), func(b *testing.B) { benchmarkFloor(b, pool, connections, value.Bytes) })
	}
}

// benchmarkFloor writes rows by statements of their own.
func benchmarkFloor(b *testing.B, pool *pgxpool.Pool, connections int, value []byte) {
	b.Helper()
	perform(b, connections, func(ctx context.Context, i int) error {
		tag, err := pool.Exec(ctx, "UPDATE quorate_states SET version = version + 1, state = $1 WHERE kind = 'bench' AND id = $2",
			value, []byte(fmt.Sprint(i)))
		if err == nil && tag.RowsAffected() != 1 {
			err = fmt.Errorf("%d rows", tag.RowsAffected())
		}
		return err
	})
}

// perform has so many goroutines do b.N pieces of work, and reports how many a second, and the time of
// the middle one.
func perform(b *testing.B, workers int, work func(ctx context.Context, worker int) error) {
	b.Helper()
	var left atomic.Int64
	left.Store(int64(b.N))
	var all sync.WaitGroup
	took := make([][]time.Duration, workers)
	b.ResetTimer()
	for i := range workers {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				began := time.Now()
				if err := work(b.Context(), i); err != nil {
					b.Error(err)
					return
				}
				took[i] = append(took[i], time.Since(began))
			}
		})
	}
	all.Wait()
	sorted := slices.Sorted(slices.Values(slices.Concat(took...)))
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "saves/s")
	b.ReportMetric(sorted[len(sorted)/2].Seconds()*1e3, "p50-ms")
}
