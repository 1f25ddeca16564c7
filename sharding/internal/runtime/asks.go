// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"maps"
	"slices"
	"sync/atomic"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// The table of asks of a slot: expect enters an ask before its message is accepted, and bound
// its deadline; complete, answered and settleEarly end it by a reply, completeAll by the word
// that its outcome is unknown, and endLimited and end without one. When the slots are looked at
// for that is in deadlines.go.

// Ask is one wait for a reply. It is in the table of its slot from before the message is
// accepted until the reply comes, the ask is ended, or [Slot.Retract] takes it out. Whoever
// takes the ask out of the table, with the slot in hand, tells its asker, unless it is the
// asker itself: so an asker is told once, and nothing comes for an ask that is over, which
// can be used again.
type Ask struct {
	Correlation uint64          // Names the ask, unique in this process. Never 0.
	Deadline    machine.Instant // When the asker stops waiting; 0: never.
	Limited     bool            // The runtime ends the ask at its deadline; else that is left to the asker, by [Slot.Retract].
	Asker       Asker

	slot atomic.Pointer[Slot] // The slot in whose table the ask is, or was last; nil before the first.

	// The fields below are guarded by the lock of the slot.
	delivered bool    // The home has the message, or the message came to its end.
	entity    string  // The entity that was asked.
	homes     uint64  // The number of the home to which the message goes first, see [cell.Cell.Homes].
	early     []early // Replies from nodes that are not known as homes yet.
}

// Renew makes an ask that is in no table ready for use, with another name.
func (a *Ask) Renew(correlation uint64) {
	a.Correlation, a.Deadline, a.Limited, a.delivered, a.entity, a.early = correlation, 0, false, false, "", nil
	a.slot.Store(nil)
}

// earlyMax bounds the early replies that one ask keeps. More than one comes only when
// a member forges replies.
const earlyMax = 4

// early is a reply of a member to which, as far as this node knows, the message of the
// ask has not gone: the map by which the message went there may still be on its way here.
type early struct {
	from  gossip.NodeID
	reply *protocol.Reply
}

// expect puts an ask into the table of asks.
func (sl *Slot) expect(a *Ask, entity string) {
	if sl.asks == nil {
		sl.asks = make(map[uint64]*Ask)
	}
	a.entity = entity
	a.slot.Store(sl)
	sl.asks[a.Correlation], a.homes = a, sl.cell.Homes()
}

// complete hands a reply to the ask that waits for it. A reply without a correlation
// reports a tell that was refused. A reply whose ask is not in the table is dropped: the ask
// has a reply already, or was told why it has none.
func (sl *Slot) complete(reply *protocol.Reply) {
	a := sl.asks[reply.Correlation]
	if a == nil {
		if reply.Correlation == 0 && reply.Code != protocol.CodeOK {
			sl.region.node.Ports.Notes.Lost(sl.region.name, "", reply.Code, reply.Detail)
		}
		return
	}
	delete(sl.asks, reply.Correlation)
	a.Asker.Answer(reply)
}

// completeAll ends the asks that are meant, in the order of their correlations: the outcome
// of their messages is unknown.
func (sl *Slot) completeAll(detail string, meant func(*Ask) bool) {
	if len(sl.asks) == 0 {
		return
	}
	for _, correlation := range slices.Sorted(maps.Keys(sl.asks)) {
		if meant(sl.asks[correlation]) {
			sl.complete(&protocol.Reply{Correlation: correlation, Code: protocol.CodeUnknownOutcome, Detail: detail})
		}
	}
}

// answered takes a reply from another node. The reply completes its ask if the message
// can have gone to that node, and is kept as an early reply if not.
func (sl *Slot) answered(from gossip.NodeID, reply *protocol.Reply) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	a := sl.asks[reply.Correlation]
	switch {
	case a == nil && (reply.Correlation != 0 || sl.cell.Went(from, 0)):
		sl.complete(reply)
	case a == nil:
		sl.forged(from, cell.FaultReply)
	case sl.cell.Went(from, a.homes):
		sl.complete(reply)
	default:
		sl.forged(from, cell.FaultReply)
		a.early = slices.DeleteFunc(a.early, func(e early) bool { return e.from == from })
		if len(a.early) < earlyMax {
			a.early = append(a.early, early{from, reply})
		}
	}
}

// settleEarly completes asks with early replies from homes of which this node has just
// learned.
func (sl *Slot) settleEarly() {
	if len(sl.asks) == 0 {
		return
	}
	for _, correlation := range slices.Sorted(maps.Keys(sl.asks)) {
		a := sl.asks[correlation]
		i := slices.IndexFunc(a.early, func(e early) bool { return sl.cell.Went(e.from, a.homes) })
		if i >= 0 {
			sl.complete(a.early[i].reply)
		}
	}
}

// bound has an ask that was accepted ended at its deadline. The caller holds the slot.
func (sl *Slot) bound(a *Ask) {
	if a.Limited && (sl.limit == 0 || a.Deadline < sl.limit) {
		sl.limit = a.Deadline
		sl.region.node.limits.add(sl.region.node, sl, a.Deadline, sl.now())
	}
}

// endLimited ends the asks of the slot whose deadlines have passed. The slot was in the list
// for the time at: if an ask with an earlier deadline came later, it stands there twice.
func (sl *Slot) endLimited(at machine.Instant) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.limit != at {
		return
	}
	now := sl.now()
	sl.end(nil, func(a *Ask) bool { return a.Limited && a.Deadline <= now })
	sl.limit = 0
	for _, a := range sl.asks {
		if a.Limited && (sl.limit == 0 || a.Deadline < sl.limit) {
			sl.limit = a.Deadline
		}
	}
	if sl.limit != 0 {
		sl.limit = max(sl.limit, now.Add(deadlinesApart))
		sl.region.node.limits.add(sl.region.node, sl, sl.limit, now)
	}
}

// EndAsks ends all asks of the kind without replies. The cause is for the askers.
func (r *Region) EndAsks(cause error) {
	r.EachSlot(func(sl *Slot) {
		sl.mu.Lock()
		defer sl.mu.Unlock()
		sl.end(cause, func(*Ask) bool { return true })
	})
}

// end takes the asks that are meant out of the table, in the order of their correlations,
// takes their messages back where that is possible, and tells their askers.
func (sl *Slot) end(cause error, meant func(*Ask) bool) {
	if len(sl.asks) == 0 {
		return
	}
	for _, correlation := range slices.Sorted(maps.Keys(sl.asks)) {
		if a := sl.asks[correlation]; a != nil && meant(a) { // To take back a message may have ended other asks.
			delete(sl.asks, correlation)
			a.Asker.End(sl.takeBack(a), cause)
		}
	}
	sl.carry(nil)
}
