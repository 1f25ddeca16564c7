// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// Op says what an [Action] asks for.
type Op uint8

// The actions of a cell.
const (
	// OpTransmit: append Message, and all that follow it by [Message.Next], to the
	// lane to To. The messages stay the cell's. The runtime calls [Cell.Handed],
	// with [Cell.Rerouted] before it when the lane goes by another passage. When the
	// lane is full or the peer unknown, it calls [Cell.Unsent] with the first that
	// was not appended, and carries out no further OpTransmit of this outbox to that
	// peer.
	OpTransmit Op = iota + 1
	// OpForward is OpTransmit for a message of another origin, which is passed
	// on. The cell gives it up: an OpFree follows. When the lane is full it is
	// lost here, and its origin sends it again.
	OpForward
	// OpFree: nothing of the cell refers to Message any more, nor to those that
	// follow it by [Message.Next]; the runtime reuses them. For a message of this origin with a correlation: it was put into a
	// mailbox (the host acknowledged it), so the ask now waits for the reply. For
	// a message that an entity of this node has processed: it is done with.
	OpFree
	// OpFail: Message, of this origin, failed with Code, and with the detail of
	// Reply if there is one. The cell gives it up; no OpFree follows. An ask ends
	// with the error, a tell is counted.
	OpFail
	// OpReset: the streams of the shard begin anew since its host is gone. All
	// asks of this origin to this shard whose message was freed, and that have no
	// reply yet, end with [CodeUnknownOutcome]. It comes before any message that
	// is sent to the new home.
	OpReset
	// OpReply: send Reply to To, or complete the ask at once if To is this node.
	OpReply
	// OpAck: send Ack to To.
	OpAck
	// OpNeed: send Need to To.
	OpNeed
	// OpStart: create and start the instance of Entity, then call
	// [Cell.Started].
	OpStart
	// OpRun: let Entity process [Entity.Message], then call [Cell.Done]. The
	// runtime looks up the node's standing first, see [Cell.Postpone].
	OpRun
	// OpStop: call [Cell.BeginStop] and, if that agrees, stop the instance of Entity and
	// call [Cell.Stopped].
	OpStop
	// OpStuck: Entity has been at what it does for too long, or was left behind by
	// [ReleaseHosting]. For reporting; OpReturned follows when it is done.
	OpStuck
	// OpReturned: Entity, that was stuck, is done with what it was at.
	OpReturned
	// OpEnd: the hosting has ended; so must the context of entities that are still
	// at work, see [Entity.Ended].
	OpEnd
	// OpDrop: a message was dropped and freed that needs no error, because its
	// sender knows or sends it again: Drop says why. For counting.
	OpDrop
	// OpOfferAgain: Message, that [Cell.Accept] found no room for, may be given to it
	// anew. The caller still owns it.
	OpOfferAgain
	// OpFlow: send Flow to To.
	OpFlow
	// OpEvent: feed [FromShard] with Event to the node's [Control].
	OpEvent
	// OpForged: what came from To was not taken, Fault says why. For counting.
	OpForged
	// OpWake: call [Cell.Tick] at or after At, once. Replaces an earlier wish.
	OpWake
)

// Drop says why a message was dropped.
type Drop uint8

// The reasons for [OpDrop].
const (
	DropDuplicate Drop = iota + 1 // It was delivered before.
	DropOldStream                 // Its stream ended with the host that died; the sender was told.
	DropOverflow                  // A bounded buffer was full; the sender sends it again.
	DropHops                      // It was passed on too often.
	DropStopped                   // This node has stopped.
)

// String returns the name of the reason.
func (d Drop) String() string {
	switch d {
	case DropDuplicate:
		return "duplicate"
	case DropOldStream:
		return "old-stream"
	case DropOverflow:
		return "overflow"
	case DropHops:
		return "hops"
	case DropStopped:
		return "stopped"
	default:
		return "none"
	}
}

// Action is one consequence of a call of a [Cell]. Which fields are set is
// said at the values of [Op].
type Action struct {
	Op      Op
	Code    Code
	Drop    Drop
	Fault   Fault
	To      gossip.NodeID
	Message *Message
	Entity  *Entity
	Reply   *Reply
	Flow    *Flow
	Base    Epoch
	Seq     uint64
	At      machine.Instant
	Event   CellEvent
}

// Actions collects the actions of a call, in order. The zero value is ready for
// use, and reused from call to call. Actions are carried out in order, by the
// caller, before it lets go of the cell: a message in them may be freed by the
// next call. None of them waits.
type Actions struct{ list []Action }

// List returns the actions since the last [Actions.Reset]; valid until then.
func (a *Actions) List() []Action { return a.list }

// Reset empties a and keeps its memory.
func (a *Actions) Reset() {
	clear(a.list)
	a.list = a.list[:0]
}

func (a *Actions) add(x Action) { a.list = append(a.list, x) }

func (a *Actions) free(m *Message) { a.list = append(a.list, Action{Op: OpFree, Message: m}) }

func (a *Actions) entity(op Op, e *Entity) { a.list = append(a.list, Action{Op: op, Entity: e}) }

func (a *Actions) drop(m *Message, why Drop) {
	a.list = append(a.list, Action{Op: OpDrop, Message: m, Drop: why})
}
