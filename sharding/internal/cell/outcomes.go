// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/window"
)

// What the runtime says of the actions of a cell and asks in between: of entities, from their
// start to their stop, with the runs in between; of lanes, how far messages have come; of homes
// and acknowledgements; last what an ask takes back.

// Started says that the instance of e was started, or could not be.
func (c *Cell) Started(now machine.Instant, e *Entity, ok bool, out *Actions) {
	c.entities.started(now, e, ok, out)
	c.checkHalted(now, out)
}

// StartFailed says that the instance of e could not be started, and why.
func (c *Cell) StartFailed(now machine.Instant, e *Entity, why string, out *Actions) {
	c.entities.startFailed(now, e, why, out)
	c.checkHalted(now, out)
}

// Postpone gives back the message of an OpRun whose processing did not begin,
// since the node's clock showed no standing. The processing begins after [protocol.UnsuspendHosting] or,
// should the clock show standing again, after a short time.
func (c *Cell) Postpone(now machine.Instant, e *Entity, out *Actions) {
	c.entities.postpone(now, e, out)
}

// Lapse gives back the message of an OpRun whose deadline had passed before its
// processing began. The next message may begin at once.
func (c *Cell) Lapse(now machine.Instant, e *Entity, out *Actions) {
	c.entities.lapse(now, e, out)
}

// Done says that e has processed its message. The next message may begin at once.
func (c *Cell) Done(now machine.Instant, e *Entity, r Result, out *Actions) {
	c.entities.done(now, e, r, out)
}

// Passivate stops the instance of e once its mailbox is empty. A message that
// comes later starts a new instance; no message is lost.
func (c *Cell) Passivate(now machine.Instant, e *Entity, out *Actions) {
	c.entities.passivate(now, e, out)
}

// Remind puts a message of an instance to itself into its mailbox. It does nothing
// when the instance is ending, whose timers end with it. Such messages are taken by a full
// mailbox too, since their number is bounded by the number of timers.
func (c *Cell) Remind(now machine.Instant, e *Entity, m *Message, out *Actions) {
	c.entities.remind(now, e, m, out)
}

// Stopped says that the instance of e has stopped.
func (c *Cell) Stopped(now machine.Instant, e *Entity, out *Actions) {
	c.entities.stopped(now, e, out)
	c.checkHalted(now, out)
}

// BeginStop says why the instance of e, of an OpStop, is stopped. The runtime calls
// BeginStop just before the stop; held says whether the clock shows standing then. False:
// the instance must not be stopped now; another OpStop follows.
func (c *Cell) BeginStop(now machine.Instant, e *Entity, held bool, out *Actions) (StopReason, bool) {
	return c.entities.beginStop(now, e, held, out)
}

// Maintenance returns the upkeep of the entities of the cell: sweeps, evictions, changes of the limit.
func (c *Cell) Maintenance() Maintenance { return Maintenance{&c.entities} }

// Handoff returns the inputs about the memory of entities when the shard moves.
func (c *Cell) Handoff() Handoff { return Handoff{c} }

// Ahead hands out up to n further messages behind the present message of e. The runtime may
// read them until [Cell.Ran] takes them back; it begins none once the hosting has ended
// ([OpEnd]) or the clock shows no standing.
func (c *Cell) Ahead(e *Entity, n int) AheadQueue {
	return c.entities.ahead(e, n)
}

// Ran says that e has processed its message and the first n messages that [Cell.Ahead]
// handed out. The last processed message becomes the one that [Cell.Done] is about. The
// other processed messages that were more than a value are returned as a list, which
// belongs to the caller. Messages that did not begin wait again, or are refused when the hosting has ended meanwhile.
func (c *Cell) Ran(e *Entity, n int, out *Actions) (over *Message) {
	return c.entities.ran(e, n, out)
}

// Outbound has the methods about the messages of a cell that go to a lane: what there is to transmit, and how far
// that has come.
type Outbound struct{ own *origin }

// Outbound returns the messages that the runtime is asked to transmit.
func (c *Cell) Outbound() Outbound { return Outbound{&c.own} }

// Transmission is what a cell has to transmit: messages of one stream, by their numbers.
type Transmission struct {
	Kind        string
	Shard       protocol.ShardID
	Origin      gossip.NodeID
	Base, Route protocol.Epoch
	Window      *window.Window
}

// Transmission returns what the cell has to transmit. The epochs are valid until the next call of the
// cell.
func (s Outbound) Transmission() Transmission {
	o := s.own
	return Transmission{o.cfg.Kind, o.cfg.Shard, o.cfg.Self, o.place.baseEpoch(), o.place.mapEpoch(), &o.window}
}

// Handed says that the messages of an OpTransmit from number first on, up to and without unsent,
// are at a place of the present passage. When a message was handed over several times, its
// first place counts, since that leaves first.
func (s Outbound) Handed(first, unsent, place uint64) {
	s.own.handed(first, unsent, place)
}

// Handing says that the messages of an OpTransmit from number first on, up to and without unsent,
// are about to be appended to a lane. They count as having left until a method of the result says
// what became of them; the cell may be called in between, and learn of another home.
func (s Outbound) Handing(first, unsent uint64) PendingAppend { return s.own.handOver(first, unsent) }

// Written says that messages at places under below of the present passage may have left.
// The runtime calls Written before it applies an input by which the streams may begin anew:
// messages that have not left by then are sent to the new host, and all others end with
// [protocol.CodeUnknownOutcome].
func (s Outbound) Written(below uint64) {
	s.own.leftBelow(below)
}

// Rerouted says that messages which are handed over from now on take another passage. Of
// the passage before, messages at places under below may have left; over says that no
// further message will leave by it, so that the others were never sent.
func (s Outbound) Rerouted(below uint64, over bool) {
	s.own.rerouted(below, over)
}

// Unsent says that the message with a number, of an OpTransmit, could not be appended to its lane,
// nor any message that follows it. They are transmitted by the next [Cell.Flush] or [Cell.Tick].
func (s Outbound) Unsent(seq uint64) {
	s.own.unsent(seq)
}

// Strip has the message with a number travel with flags in the place of its payload, which no
// frame has room for. False: it does so already.
func (s Outbound) Strip(seq uint64, flags uint32, out *Actions) bool {
	spent := s.own.window.Strip(seq, flags)
	if spent == nil {
		return false
	}
	out.spent = append(out.spent, spent)
	return true
}

// Went reports whether a message that was accepted when [Cell.Homes] returned since may
// have gone to a node, so that the node may reply. The result may turn true when the cell
// learns of another home.
func (c *Cell) Went(node gossip.NodeID, since uint64) bool {
	return c.place.went(node, since)
}

// Acks appends the acknowledgements that are due. The runtime calls Acks after messages
// were delivered, with or without a delay; without after [OpPress].
func (c *Cell) Acks(out *Actions) {
	c.in.acks(out)
}

// Hold says whether e must not be stopped for being idle, because it has timers, which
// would end with the instance.
func (c *Cell) Hold(e *Entity, hold bool) {
	e.unset(isHeld)
	if hold && !e.Ended() {
		e.set(isHeld)
	}
}

// Homes returns the number of the home that the cell knows. A message that is accepted now
// goes to the home of this number or of a higher one.
func (c *Cell) Homes() uint64 { return c.place.heard() }

// Retract takes back the message of an ask of this node, to an entity, for whose reply nobody
// waits any more. If it reports true, the message has not been, nor will be, processed, and m,
// which is nil if the cell had its value or its bytes alone, belongs to the caller. Else the message
// stays where it is, and nobody here knows what becomes of it.
func (c *Cell) Retract(now machine.Instant, entity string, correlation uint64, out *Actions) (m *Message, back bool) {
	if c.own.retractSent(correlation, out) {
		c.own.callWindow(out)
		return nil, true
	}
	if m, back = c.entities.retract(now, entity, correlation, out); back {
		c.checkHalted(now, out)
	}
	return m, back
}
