// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"slices"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// earlyMax bounds the early replies that one ask keeps. More than one comes only when
// a member forges replies.
const earlyMax = 4

// early is a reply of a member to which, as far as this node knows, the message of the
// ask has not gone: the map by which the message went there may still be on its way here.
type early struct {
	from  gossip.NodeID
	reply *protocol.Reply
}

// answered takes a reply from another node. The reply completes its ask if the message
// can have gone to that node, and is kept as an early reply if not.
func (r *router) answered(sl *slot, from gossip.NodeID, reply *protocol.Reply) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	a := sl.asks[reply.Correlation]
	switch {
	case a == nil && (reply.Correlation != 0 || sl.cell.Went(from, 0)):
		r.complete(sl, reply)
	case a == nil:
		r.forged(sl, from, cell.FaultReply)
	case sl.cell.Went(from, a.homes):
		r.complete(sl, reply)
	default:
		r.forged(sl, from, cell.FaultReply)
		a.early = slices.DeleteFunc(a.early, func(e early) bool { return e.from == from })
		if len(a.early) < earlyMax {
			a.early = append(a.early, early{from, reply})
		}
	}
}

// settleEarly completes asks with early replies from homes of which this node has just
// learned. The caller holds the slot.
func (r *router) settleEarly(sl *slot) {
	for _, a := range sl.asks {
		i := slices.IndexFunc(a.early, func(e early) bool { return sl.cell.Went(e.from, a.homes) })
		if i >= 0 {
			r.complete(sl, a.early[i].reply)
		}
	}
}
