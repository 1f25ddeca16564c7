// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"context"

	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/runtime"
	"github.com/quorate/quorate/sharding/internal/telemetry"
)

// What a system counts, for [System.Stats] and for the metrics: first the counters that no cell keeps, then what the
// program gets, then what it is put together from.

// Stats are the counters of a [System]. All but Stuck, Waiting and Held only grow,
// from 0 when the system was made.
type Stats struct {
	// Sent counts messages of this node that Tell and Ask accepted, for all kinds.
	Sent uint64
	// Received counts messages of other nodes that were delivered here, each once.
	Received uint64
	// Handled counts messages that entities of this node have processed.
	Handled uint64
	// Waiting is the number of senders of this node that wait for room at present.
	Waiting uint64
	// Held is the number of entities of other nodes that take nothing from this node at
	// present, since their mailboxes are full.
	Held uint64
	// Malformed counts frames from other nodes that could not be decoded and were dropped.
	Malformed uint64
	// Misdirected counts messages for a kind or a shard that does not exist here. The
	// sender sends them again; a few are usual while nodes start their kinds.
	Misdirected uint64
	// Forged counts messages that a member sent in a name that is not its own. They were
	// dropped.
	Forged Forgeries
	// Violations counts states that were seen although the protocol excludes them. It
	// must be 0.
	Violations uint64
	// Failed counts messages of this node, without an asker, that failed after Tell had
	// accepted them. Failures splits the number by reason; the log says the same, once in
	// a while.
	Failed   uint64
	Failures Failures
	// Dropped counts copies of messages that were dropped because the sender sends them
	// again, or had sent them twice. No message is lost by such a drop.
	Dropped uint64
	// Panics counts panics of entities, and goroutines that entities ended by
	// runtime.Goexit.
	Panics uint64
	// Unsent counts replies and acknowledgements that could not be sent. An ask that
	// waits for such a reply ends with an unknown outcome.
	Unsent uint64
	// Stuck is the number of entities that do not return at present: those that have been
	// at one message, start or stop for longer than sharding.stuck-after, and those that
	// their shard left behind.
	Stuck uint64
}

// counted reads the counters of the system, of its losses and forgeries, and of all cells.
func (s *System) counted() *telemetry.Collected {
	c := &telemetry.Collected{
		Counters: &s.counters, Leased: s.leases.On(), LeasesLost: s.leases.Lost(), Failed: s.losses.Counts(), Forged: s.forgeries.Counts(),
	}
	for _, r := range *s.routers.Load() {
		k := telemetry.KindTally{Kind: r.name, Limits: r.region.Limits(), Unleased: s.leases.Count(r.name)}
		k.Remembers, k.Remembered = r.region.Remembering()
		r.region.Past(&k.Tally)
		r.region.EachSlot(func(sl *runtime.Slot) {
			sl.Tally(&k.Tally)
			k.Senders += sl.Waiting()
		})
		c.Kinds = append(c.Kinds, k)
	}
	return c
}

// collect reads all counters, and asks the control machine for the phases of the shards.
func (s *System) collect(ctx context.Context) *telemetry.Collected {
	c := s.counted()
	e, _ := s.inquiry.Ask(ctx, s.ended, func(id uint64) error { return s.control.Post(control.CountShards{ID: id}) })
	c.KindCounts, c.Missing = e.Kinds, map[string]bool{}
	for kind, by := range s.Coordinators() {
		c.Missing[kind] = by.Node == ""
	}
	return c
}

// Stats returns the counters. The call looks at every cell, which takes some 50 ns a
// cell.
func (s *System) Stats() Stats {
	c := s.counted()
	stats := Stats{
		Malformed: c.Counters.Malformed.Load(), Misdirected: c.Counters.Misdirected.Load(), Violations: c.Counters.Violations.Load(),
		Panics: c.Counters.Panics.Load(), Unsent: c.Counters.Unsent.Load(),
		Stuck: uint64(max(c.Counters.Stuck.Load(), 0)), Failures: failuresOf(c.Failed), Forged: forgeriesOf(c.Forged),
	}
	for i := range c.Counters.Dropped {
		stats.Dropped += c.Counters.Dropped[i].Load()
	}
	stats.Failed = stats.Failures.Total()
	for i := range c.Kinds {
		k := &c.Kinds[i]
		stats.Sent += k.Sent
		stats.Received += k.Received
		stats.Handled += k.Handled
		stats.Held += uint64(k.Held)
		stats.Waiting += uint64(k.Senders)
	}
	return stats
}

// Failures counts tells that failed after they had been accepted, by the error that
// an asker would have got.
type Failures struct {
	// NotDelivered counts tells that a node that stopped gave back, see [ErrNotDelivered].
	NotDelivered uint64
	// UnknownOutcome counts tells that had left this node for a node that is gone, see
	// [ErrUnknownOutcome]. Tells that the other node had acknowledged, and not handled,
	// are not counted: nobody knows of them any more.
	UnknownOutcome uint64
	// EntityFailed counts tells to an entity that failed, see [ErrEntityFailed].
	EntityFailed uint64
	// Overloaded counts tells that met a full mailbox although this node had been told to
	// send no more, see [ErrOverloaded]: that request was lost several times.
	Overloaded uint64
	// Other counts tells that failed for another reason.
	Other uint64
}

// Total is the sum of all fields.
func (f Failures) Total() uint64 {
	return f.NotDelivered + f.UnknownOutcome + f.EntityFailed + f.Overloaded + f.Other
}

// failuresOf gives the sums of all codes their names.
func failuresOf(counts [protocol.Codes]uint64) Failures {
	var f Failures
	for code, n := range counts {
		switch protocol.Code(code) {
		case protocol.CodeNotDelivered:
			f.NotDelivered += n
		case protocol.CodeUnknownOutcome:
			f.UnknownOutcome += n
		case protocol.CodeEntityFailed:
			f.EntityFailed += n
		case protocol.CodeOverloaded:
			f.Overloaded += n
		default:
			f.Other += n
		}
	}
	return f
}

// Forgeries counts frames that members sent in a name that is not their own, by fault.
// The frames were dropped. Some are counted in good health too, when the map of a kind is
// late; their senders then repeat them.
type Forgeries struct {
	Origin uint64 // Messages that neither their origin sent, nor a member that passes them on.
	Home   uint64 // Acknowledgements, requests to transmit again, and flow controls, of nodes that are not the home.
	Reply  uint64 // Replies of nodes to which no such message went.
}

// forgeriesOf gives the sums of all faults their names.
func forgeriesOf(total [cell.Faults]uint64) Forgeries {
	return Forgeries{Origin: total[cell.FaultOrigin], Home: total[cell.FaultHome], Reply: total[cell.FaultReply]}
}

// Total is the sum of all fields.
func (f Forgeries) Total() uint64 { return f.Origin + f.Home + f.Reply }
