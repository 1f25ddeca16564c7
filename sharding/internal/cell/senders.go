// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell

import "github.com/quorate/quorate/gossip"

// Which nodes may send what. A certificate, or a place in the state of the cluster, lets a
// node speak for itself and not for others. So each sort of frame may come only from the
// nodes of this table; from every other node it is a [Fault] that changes nothing:
//
//	a message            its origin; or a member that passes it on, for a member
//	Ack, Nack            the home of the shard
//	Flow: hold, open     the home of the shard
//	Flow: ask            any member; the answer tells what sending would show too
//	Reply                a home to which the message went, see [Cell.Went]
//
// In good health a home may be one that this node does not know of yet: the map of the
// coordinator and what an old home passed on take different ways. What such a home says
// is not lost for good. Its acknowledgements and requests are made up for by the window,
// which is transmitted again when the map comes, its holds are repeated, and its replies
// are kept by the runtime until then.
//
// A message of this node comes back when an old home passes it on. The copy is dropped: the
// window has the message until it is acknowledged, and no other node can replace it.
//
// A member that passes a message on is believed about its origin: the member has been, or
// was taken for, a home, and could have changed the message as well.

// Fault says why a frame of another node is refused.
type Fault uint8

// The faults.
const (
	FaultNone   Fault = iota // The frame is not refused.
	FaultOrigin              // A message whose origin did not send it, nor a member that passes it on.
	FaultHome                // An ack, a nack or a flow of a node that is not the home of the shard.
	FaultReply               // A [protocol.Reply] of a node to which no message with its number went.

	faultCount
)

// Faults is the number of values of [Fault].
const Faults = int(faultCount)

// String returns the name of the fault.
func (f Fault) String() string {
	switch f {
	case FaultOrigin:
		return "origin"
	case FaultHome:
		return "home"
	case FaultReply:
		return "reply"
	default:
		return "none"
	}
}

// OriginFault checks that a message of an origin, passed on hops times, may come from the
// node from. The function member reports whether a node is a member.
func OriginFault(from, origin gossip.NodeID, hops uint8, member func(gossip.NodeID) bool) Fault {
	if from == origin || hops > 0 && member(origin) {
		return FaultNone
	}
	return FaultOrigin
}
