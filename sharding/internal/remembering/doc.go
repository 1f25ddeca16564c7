// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//quorate:core

// Package remembering has the decisions about entities that are remembered: those that were started once are
// started again, without a message, wherever their shard lives next. A [Machine] serves all shards of a kind
// that a node hosts. It says when the store is to be read and changed, how many entities begin at a time
// when their shard has come, and what follows from the answers of the store. The runtime of sharding
// carries that out.
//
//	cell ─ Serve, Remember, Forget, GiveUp, ... ──> ┌──────┐ ── Open, Change ──> store ──> Opened, Changed
//	Tick, when Wake says so ──────────────────────> │ Machine │ ── Start ─────────> cell: these entities run
//	                                                └──────┘ ── Kept, Unkept, Flushed ──> cell
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
// # Another number of shards
//
// Each number of shards has sets of its own, so that an id is looked for where its number of shards puts it. When the
// number has changed, while the kind runs or in the files while no node did, the ids of the former sets are taken over:
//
//	index      a set besides: the numbers of shards of which there may be sets that are not empty
//	exporter   the machine with the first shard of the present layout: has the index, opens the sets of former layouts,
//	           whose shards are retired or not in force, and gives their ids away (exporter.go, former.go)
//	importers  all machines: ask the exporter for the ids of the shards that they serve, write them to the present
//	           sets, have the entities begin, and tell the exporter to take the ids out (importer.go)
//
// An importer asks one question at a time, and only the answer to the last one counts: what was forgotten before it was
// asked cannot come with the answer. An id that is to be forgotten is held until no former set has it: else whoever
// serves the shard next would take it over again. The exporter may be lost at any moment: the next one opens the same
// sets under a higher epoch, and gives what is left. No further change of the number begins before nothing is left, so
// there are never three layouts in play.
//
// # Invariants
//
//   - K1: of one set one call of the store is under way, and [Config.Calls] of all together at most.
//   - K2: what was asked for last of an id is written last: a change that was under way when something else
//     was asked for never follows it.
//   - K3: Kept names what the store has, and nothing that was forgotten meanwhile.
//   - K4: in any second no more than [Config.Rate] entities begin, and a twentieth of that at once.
//   - K5: no id is started that does not belong to the shard.
//   - K6: each set that has something to read, to write or to start is in a queue for it, or has a call under
//     way, or Wake says when it goes on.
//   - K7: an id is taken out of a former set when it is written to the present one, or to be forgotten.
//   - K8: an id is forgotten in the present set when no former set has it.
//   - K9: nothing is written to the sets of a number of shards that the index does not have, and a number is taken out
//     of the index when all of its sets are open to the exporter, and empty.
//   - K10: no id of a former set is given before its former shard is retired.
//   - K11: who gives up waiting for an id has it forgotten only if no set had it before.
//
// # Memory
//
// The ids of a shard are kept only until its entities have begun, and those that are to be written until they
// are. What is to be remembered is bounded by the entities that run; what is to be forgotten by
// [MaxForgets] of a shard. The exporter has some 65,536 ids of former sets at a time, and those of one set more.
//
// Nothing here is safe for concurrent use. Nothing reads a clock.
package remembering
