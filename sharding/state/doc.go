// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package state keeps the state of entities in a store, so that it outlives their instances and nodes:
// loaded before the first message, and saved before a reply leaves. An owner that was replaced cannot
// write, whatever has paused it.
//
//	type Account struct{ Cents int64 }
//
//	keeper, err := state.NewKeeper(store, state.Default())
//	accounts, err := sharding.Start(node, sharding.Kind[*wrapperspb.Int64Value]{
//		Name: "account",
//		New: state.Snapshots(keeper, state.JSON[Account](),
//			func(c *state.Context[Account], cents *wrapperspb.Int64Value) error {
//				c.State().Cents += cents.GetValue()
//				return c.Reply(wrapperspb.Int64(c.State().Cents))
//			}),
//	})
//
// [Snapshots] saves the state as a whole, [Events] what has happened to it. Stores are package memory,
// and modules of their own below this directory; package store says what one must promise, and
// package statetest tests it.
//
// # Life of an instance
//
//	Start: claim and load ──> turn: change in memory ──> save ──> the reply leaves ──> next turn
//	          │ error               │ error                │ error
//	          v                     v                      v
//	      (resting)         stopped, and started anew from what the store has: sharding.OnFailure
//
// A message that changes nothing is answered from memory. A save is tried for [Config.Limit]; after
// that, or when a later owner has the record, the instance stops, its sender gets
// [sharding.ErrEntityFailed] with the reason, and the log says so.
//
// # Calls
//
// What the entities of a node want loaded or saved at the same moment goes into one call of the store,
// at most [Config.Batch] of them, with [Config.Calls] calls under way. What the store cannot take of one
// entity is soon in calls of its own, and holds up no other.
//
// # Guarantees
//
//   - A change whose reply has left is in the store, and is there once, however often it was sent.
//   - When an instance has loaded its record, no earlier one changes it: the store compares the epoch
//     of the shard's home, and the number of the instance, in the same step in which it writes.
//   - A change that fails is gone from memory too.
//
// # Non-guarantees
//
//   - A sender that gets an error may find its change there: the answer of the store was lost, and the
//     instance ended before it could ask again. [sharding.ErrEntityFailed] says so.
//   - A message that changes nothing is answered by the standing of the node, not by the store: an owner
//     that was replaced and whose clock runs wrong by more than 1 % may answer with an old state.
//   - What a message sends by itself leaves before the save; [Context.AfterSave] is for what must not.
//   - The messages to one entity are saved one after the other: one entity takes as many changes a
//     second as the store takes calls after each other.
//   - Events that a snapshot stands for are deleted.
//
// # Concurrency
//
// Keepers are safe for concurrent use. What a program gives to [Snapshots] and [Events] is called by one
// goroutine at a time for one entity, codecs by many. There are no goroutines, and nothing to close but
// the store.
package state
