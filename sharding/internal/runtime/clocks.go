// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"sync"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/cell"
)

// peerClocks holds what this node knows of the clocks of other nodes, for all of its cells.
// The entry of a node is forgotten when the session of the lane to that node ends.
type peerClocks struct {
	mu    sync.Mutex // Guards known; held for one look-up or entry.
	known cell.ClockBounds
}

func (c *peerClocks) heard(node gossip.NodeID, there, now machine.Instant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known.Heard(node, there, now)
}

func (c *peerClocks) at(node gossip.NodeID, now machine.Instant) machine.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known.At(node, now)
}

func (c *peerClocks) forget(node gossip.NodeID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known.Forget(node)
}
