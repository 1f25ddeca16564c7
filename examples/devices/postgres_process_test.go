// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process && postgres && unix

package main

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/sharding/state/postgres/postgrestest"
)

// startPostgres starts a server that ends with the test. It returns how nodes connect to it, and
// connections of the test.
func startPostgres(t *testing.T) (database string, pool *pgxpool.Pool) {
	t.Helper()
	// The server is never killed, and so need not wait for its disk: that leaves the time to the cluster.
	server, err := postgrestest.Start(patience.Context(t), "fsync=off")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	database = server.Connection() + " pool_max_conns=10"
	pool, err = pgxpool.New(context.WithoutCancel(t.Context()), database)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return database, pool
}
