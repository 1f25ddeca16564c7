// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package area

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quorate/quorate/sharding/state/postgres/postgrestest"
)

// server is a server of PostgreSQL, with connections to it.
type server struct {
	*postgrestest.Server
	pool *pgxpool.Pool
}

const (
	startLimit  = time.Minute // For a server to take connections.
	connections = 8
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
	ctx, cancel := context.WithTimeout(ctx, startLimit)
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
