// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build postgres && unix

package postgres_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/sharding/state/postgres/postgrestest"
)

// server is a server of PostgreSQL for one test.
type server struct {
	testing.TB
	*postgrestest.Server
}

// start starts a server that ends with the test.
func start(t testing.TB) *server {
	t.Helper()
	s, err := postgrestest.Start(patience.Context(t), "max_connections=40", "shared_buffers=16MB")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return &server{t, s}
}

// restart ends the server as a crash does, and starts it again over the same data.
func (s *server) restart() {
	s.Helper()
	require.NoError(s, s.Crash())
	require.NoError(s, s.Run(patience.Context(s.TB)))
}

// pool returns connections to the server, which end with a test.
func (s *server) pool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(context.Background(), s.Connection()+" pool_max_conns=16")
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}
