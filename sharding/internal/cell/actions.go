// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/window"
)

// What a cell asks of its caller. The actions of one call are collected in an Actions, in
// order, and carried out by the runtime before the next call. Each value of Op says which fields
// of the Action belong to it and which call answers it.

// Op says what an [Action] asks for.
type Op uint8

// The actions of a cell.
const (
	// OpTransmit: append the messages of [Outbound.Transmission] from number Seq on to the lane to
	// To. The runtime calls [Outbound.Handed], and before that [Outbound.Rerouted] when the lane uses
	// another passage than before. When the lane is full or the peer unknown, the runtime
	// calls [Outbound.Unsent] with the first message that was not appended, and carries out no
	// further OpTransmit of the same Actions to that peer.
	OpTransmit Op = iota + 1
	// OpForward is OpTransmit for a message of another origin, which is passed
	// on. The cell gives the message up: an OpFree follows. When the lane is full the
	// message is lost here, and its origin sends it again.
	OpForward
	// OpFree: the cell does not refer to Message any more, and the runtime reuses it. An
	// entity of this node has processed the message, or it was refused.
	OpFree
	// OpArrived: an entity of this node has handled the ask of this node that Seq names, or left
	// it behind, and the ask waits for its reply. Of an ask that came as a Message OpFree says so.
	OpArrived
	// OpAcked: the home has put the messages Items of this origin into mailboxes, and the
	// window has them no longer. An ask among them now waits for its reply.
	OpAcked
	// OpMove: hand Message, of this origin, on to the cell of its entity in the next layout, by
	// [Handoff.Adopt] and in this order, with its ask; the runtime owns it from now on.
	OpMove
	// OpFail: Message, of this origin, failed with Code, and with the detail of
	// Reply if there is one. The cell gives the message up; no OpFree follows. An ask
	// ends with the error, a tell is counted.
	OpFail
	// OpReset: the streams of the shard begin anew since its host is gone. All
	// asks of this origin to this shard whose message was freed, and that have no
	// reply yet, end with [protocol.CodeUnknownOutcome]. OpReset comes before any message that
	// is sent to the new home.
	OpReset
	// OpReply: send Reply to To, or complete the ask at once if To is this node.
	OpReply
	// OpAck: send Ack to To.
	OpAck
	// OpNeed: send a Nack to To.
	OpNeed
	// OpPress: so much was delivered since [Cell.Acks] was called that an origin may wait for the
	// acknowledgement: call Acks without delay.
	OpPress
	// OpStart: create the instance of Entity, restore it if the Value of Entity is a
	// *[protocol.Snapshot] and call [Handoff.Restored], start it, then call [Instances.Started].
	OpStart
	// OpRun: let Entity process [Entity.Message], then call [Instances.Done]. The
	// runtime looks up the node's standing first, see [Instances.Postpone].
	OpRun
	// OpStop: call [Instances.BeginStop] and, if that agrees, stop the instance of Entity and
	// call [Instances.Stopped], or [Handoff.Leaves] if the instance can give a snapshot.
	OpStop
	// OpSnapshot: have the instance of Entity, which has stopped, give its snapshot, then call
	// [Handoff.Gave]. It comes of [Handoff.Leaves] alone.
	OpSnapshot
	// OpForgotten: the memory of an entity was lost, as Event says, a [protocol.MemoryLost]. For
	// reporting.
	OpForgotten
	// OpStuck: Entity has not returned from a call for too long, or was left behind by
	// [protocol.ReleaseHosting]. For reporting; OpReturned follows when the call returns.
	OpStuck
	// OpReturned: Entity, which was stuck, has returned from its call.
	OpReturned
	// OpEnd: the hosting has ended; so must the context of entities that are still
	// at work, see [Entity.Ended].
	OpEnd
	// OpDrop: Message was dropped and freed without an error, because its sender knows,
	// or sends it again: Drop says why. For counting.
	OpDrop
	// OpOfferAgain: Message, for which [Cell.Accept] found no room, may be given to
	// Accept again. The caller still owns the message.
	OpOfferAgain
	// OpFlow: send Flow to To.
	OpFlow
	// OpEvent: hand Event to the control machine of the node, as a FromShard.
	OpEvent
	// OpForged: a frame from To was refused, Fault says why. For counting.
	OpForged
	// OpWake: call [Cell.Tick] at or after At, once. Replaces an earlier OpWake.
	OpWake
)

// Drop says why a message was dropped.
type Drop uint8

// The reasons for [OpDrop].
const (
	DropDuplicate     Drop = iota + 1 // The message was delivered before.
	DropOldStream                     // The stream of the message ended with the host that died; the sender was told.
	DropOverflow                      // A bounded buffer was full; the sender sends the message again.
	DropHops                          // The message was passed on too often.
	DropUnknownStream                 // The stream has a number that is not known; the sender sends the message again. By the runtime alone.
	DropStopped                       // This node has stopped.
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
	case DropUnknownStream:
		return "unknown-stream"
	case DropStopped:
		return "stopped"
	default:
		return "none"
	}
}

// Action is one consequence of a call of a [Cell]. The comments of the values of [Op]
// say which fields are set.
type Action struct {
	Op      Op
	Code    protocol.Code
	Drop    Drop
	Fault   Fault
	To      gossip.NodeID
	Message *Message
	Entity  *Entity
	Reply   *protocol.Reply
	Flow    *protocol.Flow
	Base    protocol.Epoch
	Seq     uint64
	Items   window.Items
	At      machine.Instant
	Event   protocol.CellEvent
}

// Actions collects the actions of a call, in order. The zero value is ready for
// use, and reused from call to call. Actions are carried out in order, by the
// caller, before it lets go of the cell: a message in them may be freed by the
// next call. None of them waits.
type Actions struct {
	list  []Action
	spent []*window.Chunk
}

// List returns the actions since the last [Actions.Reset]; valid until then.
func (a *Actions) List() []Action { return a.list }

// Reset empties a and keeps its memory.
func (a *Actions) Reset() {
	clear(a.list)
	a.list = a.list[:0]
	clear(a.spent)
	if a.spent = a.spent[:0]; cap(a.spent) > maxSpentKept {
		a.spent = nil
	}
}

// maxSpentKept is for how many chunks memory is kept: a window that was long has many.
const maxSpentKept = 64

// Spent returns the chunks that windows do not use any more once the actions are carried out;
// valid until [Actions.Reset].
func (a *Actions) Spent() []*window.Chunk { return a.spent }

// spend notes the chunks of messages that have left their window.
func (a *Actions) spend(i window.Items) { a.spent = i.AppendSpent(a.spent) }

func (a *Actions) add(x Action) { a.list = append(a.list, x) }

func (a *Actions) free(m *Message) { a.list = append(a.list, Action{Op: OpFree, Message: m}) }

// freeMail frees what a message from a mailbox has beside its value.
func (a *Actions) freeMail(m Mail) {
	switch {
	case m.about == nil:
	case m.about.message != nil:
		a.free(m.about.message)
	case m.about.correlation != 0 && m.about.from == nil: // An ask of this node.
		a.add(Action{Op: OpArrived, Seq: m.about.correlation})
	}
}

func (a *Actions) entity(op Op, e *Entity) { a.list = append(a.list, Action{Op: op, Entity: e}) }

func (a *Actions) drop(m *Message, why Drop) {
	a.list = append(a.list, Action{Op: OpDrop, Message: m, Drop: why})
}
