// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// ClockBounds knows, for each node that acknowledged something lately, the least that its clock
// can show now. An acknowledgement carries the clock of its sender, which has gone on since.
// An ask that carries such a lower bound of the receiver's clock shows the receiver how
// long it was on its way, although no two clocks of a cluster agree:
//
//	host    ──Ack, my clock is 70──>   origin    it took some time: 70 or more now
//	host    <──ask, 3 left, yours is 80 or more──   ten later
//	host, at 81: the ask was 1 on its way at most, 2 are left at least
//	host, at 95: it was 15 on its way, nothing is left
//
// So an ask that waited in a connection that stood still is known to be late when it comes.
// The error has two parts: the time that the acknowledgement took, which is taken from what
// is left of the deadline; and the drift of the two clocks since then, at most for as long
// as a connection may be idle.
//
// The zero value knows no clock.
type ClockBounds struct{ nodes map[gossip.NodeID]reading }

// reading is what the clock of another node showed, and when this node heard so.
type reading struct{ there, here machine.Instant }

// readingLasts is how long a reading is preferred to later readings that took longer on
// their way. The time is short because a clock that stood still is behind for good.
const readingLasts = 30 * time.Second

// maxClocks bounds the readings that are kept. Beyond the bound all are forgotten, which
// costs the next messages little, and is cheaper than to find the oldest reading.
const maxClocks = 4096

// Heard takes the clock that an acknowledgement of node, which came now, carries. Zero, of
// a node that does not send its clock, is ignored.
func (c *ClockBounds) Heard(node gossip.NodeID, there, now machine.Instant) {
	if there == 0 {
		return
	}
	if old, known := c.nodes[node]; known && now.Sub(old.here) < readingLasts && old.at(now) > there {
		return
	}
	if c.nodes == nil || len(c.nodes) >= maxClocks {
		c.nodes = make(map[gossip.NodeID]reading)
	}
	c.nodes[node] = reading{there, now}
}

// At returns what the clock of node shows now, at least; 0 when that is not known.
func (c *ClockBounds) At(node gossip.NodeID, now machine.Instant) machine.Instant {
	r, known := c.nodes[node]
	if !known {
		return 0
	}
	return r.at(now)
}

// Forget forgets the clock of a node.
func (c *ClockBounds) Forget(node gossip.NodeID) { delete(c.nodes, node) }

func (r reading) at(now machine.Instant) machine.Instant { return r.there.Add(now.Sub(r.here)) }
