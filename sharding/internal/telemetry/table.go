// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"slices"

	"github.com/quorate/quorate/machine/meter"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/runtime"
)

// The rows of all metrics by what they measure: shards, messages, frames, entities. Last come
// rows that show the same of each kind.

// table declares what is measured of sharding, each metric by a row that reads it. What
// takes time is not in it: [New] declares the histograms.
func table() []meter.Row[*Collected] {
	return slices.Concat(shardTable(), messageTable(), frameTable(), entityTable(), rememberTable())
}

// shardTable declares what is measured of shards.
func shardTable() []meter.Row[*Collected] {
	return []meter.Row[*Collected]{
		meter.UpDown("quorate.sharding.shards.hosted", "{shard}", "Shards that this node hosts.",
			kinds(func(t *cell.Tally, observe meter.Observer) { observe(int64(t.Hosted)) })),
		meter.Gauge("quorate.sharding.shards", "{shard}", "Shards by how they are, where the coordinator runs: without a home, at rest, or on the way.",
			func(c *Collected, observe meter.Observer) {
				for _, k := range c.KindCounts {
					kind := attrKind.String(k.Kind)
					observe(int64(k.Open), kind, attrPhase.String("open"))
					observe(int64(k.Serving), kind, attrPhase.String("serving"))
					observe(int64(k.Moving), kind, attrPhase.String("moving"))
				}
			}),
		meter.Gauge("quorate.sharding.coordinators.missing", "{kind}", "Kinds of this node that no member can coordinate, as 1, so that their shards get no home; nothing while that is not known.",
			func(c *Collected, observe meter.Observer) {
				for _, k := range c.Kinds {
					switch missing, known := c.Missing[k.Kind]; {
					case !known:
					case missing:
						observe(1, attrKind.String(k.Kind))
					default:
						observe(0, attrKind.String(k.Kind))
					}
				}
			}),
		meter.Gauge("quorate.sharding.leases.waiting", "{shard}", "Shards that wait on this node for their leases, of kinds that have some.",
			func(c *Collected, observe meter.Observer) {
				for _, k := range c.Kinds {
					if c.Leased {
						observe(int64(k.Unleased), attrKind.String(k.Kind))
					}
				}
			}),
		meter.Total("quorate.sharding.leases.lost", "{lease}", "Leases of shards that this node held and has lost.",
			func(c *Collected) uint64 { return c.LeasesLost }),
		meter.Total("quorate.sharding.violations", "{violation}", "States seen that the protocol excludes. Must be 0.",
			func(c *Collected) uint64 { return c.Counters.Violations.Load() }),
	}
}

// messageTable declares what is measured of messages to entities.
func messageTable() []meter.Row[*Collected] {
	return []meter.Row[*Collected]{
		meter.UpDown("quorate.sharding.messages.waiting", "{message}",
			"Messages that wait on this node: accepted here and not acknowledged (window), for a home (transit), for an entity (mailbox, as found by the last sweep, at most 15 s ago).",
			kinds(func(t *cell.Tally, observe meter.Observer) {
				observe(int64(t.Window), attrQueue.String("window"))
				observe(int64(t.Transit), attrQueue.String("transit"))
				observe(int64(t.Mailboxes), attrQueue.String("mailbox"))
			})),
		meter.Gauge("quorate.sharding.mailbox.deepest", "{message}", "Messages that wait for the entity for which most wait, as found by the last sweep.",
			kinds(func(t *cell.Tally, observe meter.Observer) { observe(int64(t.Deepest)) })),
		meter.Counter("quorate.sharding.messages.sent", "{message}", "Messages that Tell and Ask accepted on this node.",
			kinds(func(t *cell.Tally, observe meter.Observer) { observe(int64(t.Sent)) })),
		meter.Counter("quorate.sharding.messages.received", "{message}", "Messages of other nodes that were delivered on this node, each once.",
			kinds(func(t *cell.Tally, observe meter.Observer) { observe(int64(t.Received)) })),
		meter.Counter("quorate.sharding.messages.handled", "{message}", "Messages that entities of this node have handled.",
			kinds(func(t *cell.Tally, observe meter.Observer) { observe(int64(t.Handled)) })),
		meter.Counter("quorate.sharding.messages.refused", "{message}", "Messages that no entity of this node handled; the sender was told.",
			kinds(func(t *cell.Tally, observe meter.Observer) {
				for code := protocol.CodeUnreachable; int(code) < protocol.Codes; code++ {
					if n := t.Refused[code]; n > 0 { // Most never come up.
						observe(int64(n), meter.Fault.String(Word(code)))
					}
				}
			})),
		meter.Counter("quorate.sharding.messages.failed", "{message}", "Messages without an asker, of this node, that failed after Tell had accepted them.",
			func(c *Collected, observe meter.Observer) {
				for code := protocol.CodeUnreachable; int(code) < protocol.Codes; code++ {
					observe(int64(c.Failed[code]), meter.Fault.String(Word(code)))
				}
			}),
	}
}

// frameTable declares what is measured of what other nodes send.
func frameTable() []meter.Row[*Collected] {
	return []meter.Row[*Collected]{
		meter.Counter("quorate.sharding.messages.dropped", "{message}",
			"Copies of messages that were dropped because their sender sends them again, or sent them twice. No message is lost by it.",
			func(c *Collected, observe meter.Observer) {
				for why := cell.DropDuplicate; why <= cell.DropStopped; why++ {
					observe(int64(c.Counters.Dropped[why].Load()), meter.Fault.String(why.String()))
				}
			}),
		meter.Total("quorate.sharding.messages.malformed", "{message}", "Frames of other nodes that meant nothing.",
			func(c *Collected) uint64 { return c.Counters.Malformed.Load() }),
		meter.Total("quorate.sharding.messages.misdirected", "{message}", "Messages for a kind or a shard that does not exist on this node.",
			func(c *Collected) uint64 { return c.Counters.Misdirected.Load() }),
		meter.Counter("quorate.sharding.messages.forged", "{message}", "Messages, acknowledgements and replies dropped since the member that sent them may not speak for whom they are from. A few are usual while shards move.",
			func(c *Collected, observe meter.Observer) {
				for fault, n := range c.Forged {
					if fault := cell.Fault(fault); fault != cell.FaultNone {
						observe(int64(n), meter.Fault.String(fault.String()))
					}
				}
			}),
		meter.Total("quorate.sharding.replies.unsent", "{message}", "Replies and acknowledgements that could not be sent.",
			func(c *Collected) uint64 { return c.Counters.Unsent.Load() }),
	}
}

// entityTable declares what is measured of entities.
func entityTable() []meter.Row[*Collected] {
	return []meter.Row[*Collected]{
		meter.UpDown("quorate.sharding.entities", "{entity}", "Entities in memory on this node.",
			kinds(func(t *cell.Tally, observe meter.Observer) { observe(int64(t.Entities)) })),
		meter.UpDown("quorate.sharding.entities.stuck", "{entity}", "Entities that do not return from what they are at.",
			kinds(func(t *cell.Tally, observe meter.Observer) { observe(int64(t.Stuck)) })),
		meter.Counter("quorate.sharding.entities.started", "{entity}", "Instances of entities that were started.",
			kinds(func(t *cell.Tally, observe meter.Observer) { observe(int64(t.Started)) })),
		meter.Counter("quorate.sharding.entities.restarted", "{entity}", "Those among them that took the place of one that had failed.",
			kinds(func(t *cell.Tally, observe meter.Observer) { observe(int64(t.Restarted)) })),
		meter.Counter("quorate.sharding.entities.passivated", "{entity}", "Instances that were stopped because they were idle, made room (limit), or asked for it.",
			kinds(func(t *cell.Tally, observe meter.Observer) {
				for cause, n := range t.Passivated {
					observe(int64(n), attrCause.String(cell.Cause(cause).String())) // A few causes.
				}
			})),
		meter.Counter("quorate.sharding.snapshots.given", "{snapshot}", "Snapshots that entities of this node gave to take along, since their shard moved.",
			kinds(func(t *cell.Tally, observe meter.Observer) { observe(int64(t.Snapshots)) })),
		meter.Counter("quorate.sharding.snapshots.restored", "{snapshot}", "Entities of this node that were restored from one.",
			kinds(func(t *cell.Tally, observe meter.Observer) { observe(int64(t.Restored)) })),
		meter.Counter("quorate.sharding.snapshots.lost", "{snapshot}", "Entities that had no memory after a move although they can take one along, where it was lost.",
			kinds(func(t *cell.Tally, observe meter.Observer) {
				for why := protocol.LossFailed; int(why) < protocol.Losses; why++ {
					if n := t.Forgotten[why]; n > 0 { // Most never come up.
						observe(int64(n), meter.Fault.String(why.String()))
					}
				}
			})),
		meter.UpDown("quorate.sharding.entities.limited", "{entity}", "Entities that count for the limit of their kind on this node and were not told to stop; with a limit only.",
			limits(func(l runtime.LimitStats) int64 { return int64(l.Live) })),
		meter.UpDown("quorate.sharding.entities.limit", "{entity}", "The limit of the kind on this node; 0 without one.",
			limits(func(l runtime.LimitStats) int64 { return int64(l.Limit) })),
		meter.Counter("quorate.sharding.entities.spared", "{entity}", "How often an entity was to make room and could not, since it was busy.",
			limits(func(l runtime.LimitStats) int64 { return int64(l.Busy) })),
		meter.Counter("quorate.sharding.entities.unseen", "{use}", "Uses of entities that the policy of the limit did not hear of, since others used it at the same time.",
			limits(func(l runtime.LimitStats) int64 { return int64(l.Lost) })),
		meter.Counter("quorate.sharding.entities.failures", "{failure}", "Instances that could not be started, or failed at a message or a timer.",
			kinds(func(t *cell.Tally, observe meter.Observer) {
				observe(int64(t.Failed), attrDuring.String("message"))
				observe(int64(t.StartFailed), attrDuring.String("start"))
			})),
		meter.Total("quorate.sharding.entities.panics", "{panic}", "Panics of entities, and goroutines that they ended.",
			func(c *Collected) uint64 { return c.Counters.Panics.Load() }),
	}
}

// limits is a row that shows the same of the limit of each kind.
func limits(of func(runtime.LimitStats) int64) func(*Collected, meter.Observer) {
	return func(c *Collected, observe meter.Observer) {
		for i := range c.Kinds {
			observe(of(c.Kinds[i].Limits), attrKind.String(c.Kinds[i].Kind))
		}
	}
}

// kinds is a row that shows the same of each kind.
func kinds(of func(*cell.Tally, meter.Observer)) func(*Collected, meter.Observer) {
	return func(c *Collected, observe meter.Observer) {
		for i := range c.Kinds {
			of(&c.Kinds[i].Tally, ofKind(c.Kinds[i].Kind, observe))
		}
	}
}
