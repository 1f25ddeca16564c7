// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package postgrestest_test

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/quorate/quorate/sharding/state/postgres/postgrestest"
)

// What was confirmed before a crash is there after it.
func Example() {
	ctx := context.Background()
	server, err := postgrestest.Start(ctx, "max_connections=10")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = server.Close() }() // The example is over.
	ask := func(statement string) (n int) {
		c, err := pgx.Connect(ctx, server.Connection())
		if err != nil {
			return 0
		}
		defer func() { _ = c.Close(ctx) }() // It was read.
		_ = c.QueryRow(ctx, statement).Scan(&n)
		return n
	}
	ask("CREATE TABLE visits (n int); INSERT INTO visits VALUES (7)")
	if err := server.Crash(); err != nil {
		fmt.Println(err)
	}
	if err := server.Run(ctx); err != nil {
		fmt.Println(err)
	}
	fmt.Println(ask("SELECT n FROM visits"))
}
