// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package sharding spreads stateful entities over the nodes of a cluster. An
// entity has an id, lives on one node at a time, and handles one message at a
// time; whoever has the id can send to it from anywhere, without knowing where
// it lives.
//
//	type Counter struct{ n int64 }
//
//	func (c *Counter) Receive(ctx *sharding.Context, add *wrapperspb.Int64Value) error {
//		c.n += add.GetValue()
//		return ctx.Reply(wrapperspb.Int64(c.n))
//	}
//
//	counters, err := sharding.Start(node, sharding.Kind[*wrapperspb.Int64Value]{
//		Name: "counter",
//		New:  func(*sharding.Context) sharding.Entity[*wrapperspb.Int64Value] { return new(Counter) },
//	})
//	sum, err := sharding.Ask[*wrapperspb.Int64Value](ctx, counters, "visits", wrapperspb.Int64(1))
//
// # Shards
//
// The id of an entity is hashed to a shard. Shards, not entities, have homes:
// the coordinator, on the oldest node, gives each shard to a node and writes
// that into the shard map, of which every node has a copy. Losing the
// coordinator stops no traffic to shards that have a home.
//
// # Life of an entity
//
//	           first message            Passivate, idle for long, shard moves
//	(passive) ───────────────> Start ──> Receive … ─────────────────────> Stop ──> (passive)
//	    ^                        │          │ error or panic
//	    │          error, panic  v          v
//	    └──────────────────── (resting) <─ Stop ── the first time: Start at once
//	        the rest is over
//
// An idle entity has no goroutine. While it has messages, one worker runs it; workers are
// as many as processors, and one more for each that a blocked Receive keeps. After
// sharding.passivate-after without a message it is stopped and uses no memory; it
// stops by itself with [Context.Passivate]. Messages that come meanwhile start it
// again, in their order.
//
// An entity that fails is stopped, and started anew for what waits. From the second
// failure without a success in between it rests first, and its messages fail with the
// reason meanwhile; or it stays stopped until the next message, see [OnFailure].
//
// An entity may set timers, by [Context.After], and hear when nobody talks to it, by
// [Context.SetReceiveTimeout]. They run as messages of their own and end with the
// instance.
//
// # Life of a message
//
//	Tell ─> cell of the shard ─┬─ hosted here ─────────────────> mailbox ─> Receive
//	                           ├─ hosted elsewhere ─> lane ─> cell there ─> mailbox
//	                           └─ home not known: waits in the cell
//
// # Floods
//
// Tell and Ask wait for room, until their context ends: in the mailbox of the entity
// (sharding.mailbox-size), wherever that is, and in what their node may have on its
// way to the shard (sharding.window-bytes). Senders stand in line and are called in
// their order. A mailbox that is full holds back those who send to this entity, and
// nobody else: others of its shard have the window for themselves. What was on its way
// is taken, so that a mailbox holds at most what it may and two windows of each node.
//
// An entity that sends in the middle of a message should do so with
// [Context.Context]: then it waits for five seconds at most, and gets [ErrOverloaded].
// With another context two entities that flood each other wait for as long as that
// permits, and neither handles anything.
//
// # Guarantees
//
//   - A message that was accepted is put into the mailbox exactly once, in the
//     order per sending node, over moves, reconnects and leaves.
//   - When the host of an entity dies, messages that were sent to it and not
//     answered end with [ErrUnknownOutcome]; messages that had not left this node yet,
//     for instance because the connection was down, go to the new host. An entity is
//     given a new host only when the old one, even if it is merely cut off or frozen, has
//     stopped by its own clock.
//   - [Context.Context] has ended then, at the next look at its Err or Done. Between a look and an act the process may
//     freeze: only the epoch closes that gap.
//   - [Context.Epoch] grows with each new home of the shard, over restarts of
//     the whole cluster: use it as a fencing token towards your storage.
//   - Every error says whether a retry is safe, see errors.go. A tell that fails after
//     it was accepted is counted by reason in [Stats], and logged once a while.
//   - A [RefusalError] changes nothing, but for what the entity does to memory of its own.
//   - A panic stays in its entity. An entity that fails, floods or does not return
//     holds up no other.
//
// # What it does not do
//
// The state of an entity does not move with it: it is rebuilt by Start from
// where the entity keeps it. Package state does that, with a store that only the present owner
// writes. Without a store a [Snapshotter] takes its memory along in a planned move, and begins anew
// after a failure.
//
// An entity whose Receive does not return cannot be ended, Go has no means for that. It is reported after
// sharding.stuck-after, in the log and in [Stats], and holds up the moves of its shard. With sharding.on-stuck, or
// [Kind.OnStuck], set to abandon the shard goes on without it: its context ends, its reply is discarded, its asker
// hears [ErrUnknownOutcome], and it may still run beside its successor, against which the epoch is the only fence.
//
// # Where is it, and why
//
// [System.Explain] and [Region.Explain] say on any node where an entity lives, by
// which decision, since when, and what is pending; [System.Kinds] says what runs here.
//
// # Telemetry
//
// [WithMeterProvider] and [WithTracerProvider] say where metrics and spans go; the
// defaults are the global providers of OpenTelemetry, which do nothing until the
// program sets them. Metrics are by kind, never by entity, and are read from counters
// that exist anyway; of the way of a message only an ask is timed.
//
// An ask is a trace of two spans, one at the asker and one around Receive, and begins
// a trace where there is none. A tell joins the trace of its context, and begins
// none. What an entity sends or asks with [Context.Context] belongs to the trace of
// the message that it is at. The trace context of W3C travels in the envelope.
//
// # Concurrency
//
// Regions are safe for concurrent use. Entities need no locks. Messages are
// shared with the sender when both live in one process: nobody may change a
// message after it was sent.
package sharding
