// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// Clocks knows, for each node that acknowledged something lately, what its clock shows
// at least. An acknowledgement carries the clock of its sender, which has gone on since.
// A message that says so shows its receiver how long it was on its way, although no two
// clocks of a cluster agree:
//
//	host    ──Ack, my clock is 70──>   origin    it took some time: 70 or more now
//	host    <──ask, 3 left, yours is 80 or more──   ten later
//	host, at 81: the ask was 1 on its way at most, 2 are left at least
//	host, at 95: it was 15 on its way, nothing is left
//
// So what waits in a connection that stands still for a while, and comes when that
// goes on, is known to be late. The error is the way of the acknowledgement, which is
// taken from what is left of the deadline; and what the clocks drift apart over the
// time since, at most as long as a connection may be idle.
//
// The zero value knows nothing.
type Clocks struct{ nodes map[gossip.NodeID]reading }

// reading is what a clock elsewhere showed, and when that was heard here.
type reading struct{ there, here machine.Instant }

// readingLasts is how long a reading is preferred to later ones that took longer on
// their way. It is short because a clock that stood still is behind for good.
const readingLasts = 30 * time.Second

// clocksMost bounds the nodes of which something is known. Beyond it all is forgotten,
// which costs their next messages little, and is cheaper than to find the oldest.
const clocksMost = 4096

// Heard says that an acknowledgement of node, which came now, shows its clock. Zero, of
// a node that does not say, is ignored.
func (c *Clocks) Heard(node gossip.NodeID, there, now machine.Instant) {
	if there == 0 {
		return
	}
	if old, known := c.nodes[node]; known && now.Sub(old.here) < readingLasts && old.at(now) > there {
		return
	}
	if c.nodes == nil || len(c.nodes) >= clocksMost {
		c.nodes = make(map[gossip.NodeID]reading)
	}
	c.nodes[node] = reading{there, now}
}

// At returns what the clock of node shows now, at least; 0 when that is not known.
func (c *Clocks) At(node gossip.NodeID, now machine.Instant) machine.Instant {
	r, known := c.nodes[node]
	if !known {
		return 0
	}
	return r.at(now)
}

// Forget ends what is known of a node.
func (c *Clocks) Forget(node gossip.NodeID) { delete(c.nodes, node) }

func (r reading) at(now machine.Instant) machine.Instant { return r.there.Add(now.Sub(r.here)) }
