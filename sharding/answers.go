// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"slices"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// earlyMax bounds the early replies that one ask keeps. More than one comes only when
// somebody lies.
const earlyMax = 4

// early is a reply of a member to which, as far as this node knows, the message of the
// ask has not gone: the map by which it went there may still be on its way here.
type early struct {
	from  gossip.NodeID
	reply *protocol.Reply
}

// answered takes a reply from another node, which completes its ask if the message can
// have gone there, and is kept as an early one if not.
func (r *region) answered(c *cell, from gossip.NodeID, reply *protocol.Reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.asks[reply.Correlation]
	switch {
	case a == nil && (reply.Correlation != 0 || c.shard.Went(from, 0)):
		r.complete(c, reply)
	case a == nil:
		r.forged(c, from, protocol.FaultReply)
	case c.shard.Went(from, a.homes):
		r.complete(c, reply)
	default:
		r.forged(c, from, protocol.FaultReply)
		a.early = slices.DeleteFunc(a.early, func(e early) bool { return e.from == from })
		if len(a.early) < earlyMax {
			a.early = append(a.early, early{from, reply})
		}
	}
}

// settleEarly gives asks the replies of homes of which this node has just learned. The
// caller holds the cell.
func (r *region) settleEarly(c *cell) {
	for _, a := range c.asks {
		i := slices.IndexFunc(a.early, func(e early) bool { return c.shard.Went(e.from, a.homes) })
		if i >= 0 {
			r.complete(c, a.early[i].reply)
		}
	}
}
