// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"

	"github.com/quorate/quorate/gossip"
)

// Whose word counts. A certificate, or a place in the state of the cluster, lets a node
// speak; it does not let it speak for others. So each thing that comes has those who may
// have sent it, and from everybody else it is a [Fault] that changes nothing:
//
//	a message            its origin; or a member that passes it on, for a member
//	Ack, Need            the home of the shard
//	Flow: hold, open     the home of the shard
//	Flow: ask            any member; it is told what it could see by sending
//	Reply                a home to which the message went, see [Cell.Went]
//
// In good health a home may be one that this node does not know of yet: the map of the
// coordinator and what an old home passed on take different ways. What such a home says
// is not lost for good. Its acknowledgements and requests are made up for by the window,
// which is transmitted again when the map comes, its holds are repeated, and its replies
// are kept by the runtime until then.
//
// What this node sent itself comes back when an old home passes it on. It is dropped: the
// window has it until it is acknowledged, and nobody can slip something else in for it.
//
// A member that passes messages on is believed about whose they are: it has been, or was
// taken for, a home, and could have changed what it passes on.

// Fault says why something that came from another node is not taken.
type Fault uint8

// The faults.
const (
	FaultNone   Fault = iota // It is taken.
	FaultOrigin              // A message whose origin did not send it, nor a member that passes it on.
	FaultHome                // An [Ack], [Need] or [Flow] of a node that is not the home of the shard.
	FaultReply               // A [Reply] of a node to which no message with its number went.

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

// OriginFault looks whether a member may have sent a message with an origin that was
// passed on a number of times. Member reports who is one.
func OriginFault(from, origin gossip.NodeID, hops uint8, member func(gossip.NodeID) bool) Fault {
	if from == origin || hops > 0 && member(origin) {
		return FaultNone
	}
	return FaultOrigin
}

// homesMax bounds the earlier homes that a cell remembers. An ask that waits for longer
// than that many moves of its shard gets no answer of the first of these homes.
const homesMax = 8

// formerHome is where a shard lived before.
type formerHome struct {
	node   gossip.NodeID
	number uint64
}

// rehome notes that the shard has another home now. It is called before the route
// changes.
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

// Homes numbers the home that the cell knows. A message that is accepted now goes to
// this one or to a later one.
func (c *Cell) Homes() uint64 { return c.homes }

// Went reports whether a message that was accepted when [Cell.Homes] was since may have
// gone to a node, so that a reply from there can be one to it. It may turn true when the
// cell learns of another home.
func (c *Cell) Went(node gossip.NodeID, since uint64) bool {
	return node == c.route.Home ||
		slices.ContainsFunc(c.former, func(h formerHome) bool { return h.node == node && h.number >= since })
}

// atHome looks whether a node may speak for the home of the shard. Who was the home
// before says nothing wrong, only too late.
func (c *Cell) atHome(from gossip.NodeID, out *Actions) bool {
	switch {
	case from == c.route.Home || from == c.cfg.Self:
		return true
	case !c.Went(from, 0):
		out.add(Action{Op: OpForged, To: from, Fault: FaultHome})
	}
	return false
}
