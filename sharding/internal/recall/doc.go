// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//quorate:core

// Package recall has the decisions about entities that are remembered: those that were started once are
// started again, without a message, wherever their shard lives next. A [Desk] serves all shards of a kind
// that a node hosts. It says when the store is to be read and changed, how many entities begin at a time
// when their shard has come, and what follows from the answers of the store. The runtime of sharding
// carries that out.
//
//	cell ─ Serve, Remember, Forget, Settle, End ──> ┌──────┐ ── Open, Change ──> store ──> Opened, Changed
//	Tick, when Wake says so ──────────────────────> │ Desk │ ── Start ─────────> cell: these entities run
//	                                                └──────┘ ── Kept, Unkept, Settled ──> cell
//
// # Life of a shard
//
//	Serve ──> closed ──> opening ──> open <──> changing
//	             ^          │ fails             │ fails: nobody knows what the store has of the change
//	             └──────────┴── after a pause ──┘
//
// What the store has of a shard is a set of ids, and a change of it may be repeated. So whatever became of a
// call that failed, late, lost or half done: the shard is opened anew, which fences every earlier call, and
// what was under way is written again. No other rule is needed for answers that are lost.
//
// # Invariants
//
//   - K1: of one shard one call of the store is under way, and [Config.Calls] of all together at most.
//   - K2: what was asked for last of an id is written last: a change that was under way when something else
//     was asked for never follows it.
//   - K3: Kept names what the store has, and nothing that was forgotten meanwhile.
//   - K4: in any second no more than [Config.Rate] entities begin, and a twentieth of that at once.
//   - K5: no id is started that does not belong to the shard.
//   - K6: each shard that has something to read, to write or to start is in a queue for it, or has a call under
//     way, or Wake says when it goes on.
//
// # Memory
//
// The ids of a shard are kept only until its entities have begun, and those that are to be written until they
// are. What is to be remembered is bounded by the entities that run; what is to be forgotten by
// [ForgetMost] of a shard.
//
// Nothing here is safe for concurrent use. Nothing reads a clock.
package recall
