// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"slices"

	"github.com/quorate/quorate/gossip"
)

// Which nodes may send what. A certificate, or a place in the state of the cluster, lets a
// node speak for itself and not for others. So each sort of frame may come only from the
// nodes of this table; from every other node it is a [Fault] that changes nothing:
//
//	a message            its origin; or a member that passes it on, for a member
//	Ack, Need            the home of the shard
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
	FaultHome                // An [protocol.Ack], [protocol.Need] or [protocol.Flow] of a node that is not the home of the shard.
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

// homesMax bounds the earlier homes that a cell remembers. An ask that outlasts more moves
// of its shard than that gets no answer from the first of the homes.
const homesMax = 8

// formerHome is a node where the shard lived before.
type formerHome struct {
	node   gossip.NodeID
	number uint64 // The number of the home, see [Cell.Homes].
}

// rehome notes that the shard has another home now. The caller changes the route
// afterwards.
func (c *Cell) rehome(next gossip.NodeID) {
	if next == c.route.Home {
		return
	}
	if !c.route.Home.IsZero() {
		if len(c.former) >= homesMax {
			c.former = slices.Delete(c.former, 0, 1)
		}
		c.former = append(c.former, formerHome{c.route.Home, c.homes})
	}
	c.homes++
}

// Homes returns the number of the home that the cell knows. A message that is accepted now
// goes to the home of this number or of a higher one.
func (c *Cell) Homes() uint64 { return c.homes }

// Went reports whether a message that was accepted when [Cell.Homes] returned since may
// have gone to a node, so that the node may reply. The result may turn true when the cell
// learns of another home.
func (c *Cell) Went(node gossip.NodeID, since uint64) bool {
	return node == c.route.Home ||
		slices.ContainsFunc(c.former, func(h formerHome) bool { return h.node == node && h.number >= since })
}

// atHome reports whether a node may speak for the home of the shard. A former home may not,
// and is no forger either: its frame comes too late.
func (c *Cell) atHome(from gossip.NodeID, out *Actions) bool {
	switch {
	case from == c.route.Home || from == c.cfg.Self:
		return true
	case !c.Went(from, 0):
		out.add(Action{Op: OpForged, To: from, Fault: FaultHome})
	}
	return false
}
