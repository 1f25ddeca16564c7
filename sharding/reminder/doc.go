// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package reminder wakes entities at a time: by timers that are kept in a store, outlive instances,
// nodes and the cluster, and need no memory where the entity lives.
//
//	reminders, err := reminder.Start(node, store, reminder.Default())
//	accounts, err := sharding.Start(node, sharding.Kind[*bankpb.Command]{Name: "account", ...})
//	err = reminders.Target("account", reminder.Ask[*bankpb.Done](accounts, func(f reminder.Fired) *bankpb.Command {
//		return &bankpb.Command{Interest: f.Due.Unix()}
//	}))
//	err = reminders.Set(ctx, reminder.Reminder{
//		Kind: "account", ID: "acct-42", Name: "interest", Due: midnight, Every: 24 * time.Hour,
//	})
//
// Every node that is to keep reminders starts it, in the same way; so does a node that only sets them,
// with [Config.ProxyOnly]. Stores are those of package state, which may be shared with entities.
//
// # Life of a reminder
//
//	Set ──saved──> waiting ──due──> delivery ──acknowledged, saved──> over, or waiting for the next time
//	                  ^   after a pause │ not acknowledged
//	                  └─────────────────┘
//
// Reminders are in 128 buckets, by kind and id of the entity. A bucket is a permanent entity of a kind of
// its own, named [Config.Name]; so buckets spread over the nodes, move when nodes come and go, and appear
// in all explanations and commands. A bucket keeps its reminders in 16 records of the store, its pages,
// and in memory. There is nothing to close: they end with the node. On an orderly move deliveries that
// are under way end first, for 2 s at most.
//
// # Guarantees
//
//   - When Set has returned nil, the reminder is in the store, and is delivered at least once, at its
//     time or later by the wall clock of the node that has the bucket, unless it is replaced or
//     canceled before.
//   - When Cancel has returned nil, no delivery of the reminder begins any more. One that had begun may
//     still arrive. The store sees to that; only an owner of the bucket that was replaced and does not
//     know it, because its clock is wrong by more than 1 %, may deliver what it still has in memory.
//   - One that repeats stays on the grid of its first time. Occurrences that pass while it cannot be
//     delivered, because no node runs or the entity does not acknowledge, are delivered as one, with
//     their number in [Fired.Missed].
//   - A delivery counts when [Deliver] has returned nil and the store has it. Otherwise it is repeated,
//     with a pause that doubles from [Config.RetryMin] to [Config.RetryMax], without end.
//   - A page that cannot be read, as it is damaged or of a newer version, is left as it is and tried
//     again; the other pages, and their reminders, go on.
//
// # Lateness
//
// A bucket that is at work, with a store that answers, begins a delivery within milliseconds of its
// time, unless all places are taken: for n reminders of one bucket that are due at the same moment, and
// deliveries that take d, the last begins after n/InFlight times the sum of d and one save. Half of
// the places are kept from repetitions. While a bucket has no node, because its node was lost, its
// reminders are late by the time until it has another, and has read its pages: some ten seconds with the
// default settings; while the store does not answer, by that time and up to 30 s. [Service.Stats] has how
// late deliveries began.
//
// # Clocks
//
// The wall clock of the node that has the bucket says what is due. It is looked at every second: when it
// is set forward, what is due by then is delivered at once. When it is set back, what was delivered is
// not delivered again, and what repeats pauses until the clock has caught up. Pauses and time limits
// are by the monotonic clock.
//
// # Limits
//
// An entity has at most 256 reminders. A page has at most 256 KiB of them, which is some 4 million
// reminders of 130 bytes in all; ErrFull says that there is no room. Set and Cancel of one bucket are
// saved one after the other, those of different buckets of a node in common calls of the store.
//
// # Concurrency
//
// All methods and functions may be called from any goroutine, also while an entity handles a message.
// [Deliver] is called by a goroutine for each delivery.
package reminder
