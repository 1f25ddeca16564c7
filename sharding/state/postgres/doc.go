// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package postgres keeps the state of entities in two tables of PostgreSQL, with pgx.
//
//	pool, err := pgxpool.New(ctx, "postgres://bank@db.internal/bank")
//	...
//	states := postgres.New(pool, postgres.Options{})
//	err = states.Create(ctx) // Once; every node may call it.
//	keeper, err := state.NewKeeper(states, state.Default())
//
// The pool is the program's: addresses, certificates and passwords are its matter, and so is to close it
// after the node has ended. It needs as many connections as [state.Config.Calls], twice.
//
// # Guarantees
//
//   - A call is one round trip and one transaction, for however many entities: heads are compared in
//     the statement that writes.
//   - What was saved is there after a crash of the server, with its settings fsync and
//     synchronous_commit as they are by default; with replicas that take over, as far as
//     synchronous_standby_names says so.
//
// # Non-guarantees
//
// A server that was restored from a backup, or a replica that took over without the last transactions,
// has lost what was acknowledged: no store can notice that. Owners then still are told apart, since
// epochs grow over that.
//
// A Store is safe for concurrent use, and has no goroutines of its own.
package postgres
