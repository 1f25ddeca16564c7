// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quorate/quorate/sharding/state"
	"github.com/quorate/quorate/sharding/state/postgres"
)

// A program gives the keeper to state.Snapshots or state.Events.
func Example() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, "postgres://bank@127.0.0.1:1/bank") // It connects when it is first used.
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()
	keeper, err := state.NewKeeper(postgres.New(pool, postgres.Options{Schema: "bank"}), state.Default())
	fmt.Println(keeper.Stats().Saves, err)
	// Output: 0 <nil>
}
