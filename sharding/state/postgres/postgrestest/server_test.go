// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build postgres && unix

package postgrestest_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/sharding/state/postgres/postgrestest"
)

// What was confirmed is there after a crash; afterwards nothing is left, and Close may be called again.
func TestAPostgresServerKeepsWhatItHasConfirmed(t *testing.T) {
	ctx := patience.Context(t)
	require.NoError(t, postgrestest.Missing())
	s, err := postgrestest.Start(ctx, "max_connections=7")
	require.NoError(t, err)
	connect := func() *pgx.Conn {
		c, err := pgx.Connect(ctx, s.Connection())
		require.NoError(t, err)
		return c
	}
	c := connect()
	var most string
	require.NoError(t, c.QueryRow(ctx, "SHOW max_connections").Scan(&most))
	require.Equal(t, "7", most)
	_, err = c.Exec(ctx, "CREATE TABLE visits (n int); INSERT INTO visits VALUES (7)")
	require.NoError(t, err)
	require.NoError(t, s.Crash())
	require.NoError(t, s.Crash(), "it has ended")
	require.Error(t, c.Ping(ctx))
	require.NoError(t, s.Run(ctx))
	c = connect()
	var n int
	require.NoError(t, c.QueryRow(ctx, "SELECT n FROM visits").Scan(&n))
	require.Equal(t, 7, n)
	require.Contains(t, s.Log(), "database system is ready")
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	require.NoDirExists(t, strings.Fields(s.Connection())[0][len("host="):])
}

// A server that cannot start says why.
func TestAPostgresServerThatCannotStart(t *testing.T) {
	_, err := postgrestest.Start(t.Context(), "max_connections=many")
	require.ErrorContains(t, err, `invalid value for parameter "max_connections"`)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = postgrestest.Start(ctx)
	require.ErrorIs(t, err, context.Canceled)
}
