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
	"github.com/quorate/quorate/sharding/internal/window"
)

// The table of asks of a slot comes first: enter puts an ask into it before its message is accepted,
// and bound its deadline; complete, answered and settleEarly end it by a reply, and completeAll by the
// word that its outcome is unknown. Then come the ways of the slot to its table: expect and answered,
// and endLimited and end, which take messages back. When the slots are looked at for that is in
// deadlines.go.

// Ask is one wait for a reply. It is in the table of its slot from before the message is
// accepted until the reply comes, the ask is ended, or [Slot.Retract] takes it out. Whoever
// takes the ask out of the table, with mu held, tells its asker, unless it is the
// asker itself: so an asker is told once, and nothing comes for an ask that is over, which
// can be used again.
type Ask struct {
	Correlation uint64          // Names the ask, unique in this process. Never 0.
	Deadline    machine.Instant // When the asker stops waiting; 0: never.
	Limited     bool            // The runtime ends the ask at its deadline; else that is left to the asker, by [Slot.Retract].
	Asker       Asker

	slot atomic.Pointer[Slot] // The slot in whose table the ask is, or was last; nil before the first.

	// The fields below are guarded by the lock of the slot.
	delivered    bool         // The home has the message, or the message came to its end.
	entity       string       // The entity that was asked.
	homes        uint64       // The number of the home to which the message goes first, see [cell.Cell.Homes].
	earlyReplies []earlyReply // Replies from nodes that are not known as homes yet.
}

// Renew makes an ask that is in no table ready for use, with another name.
func (a *Ask) Renew(correlation uint64) {
	a.Correlation, a.Deadline, a.Limited, a.delivered, a.entity, a.earlyReplies = correlation, 0, false, false, "", nil
	a.slot.Store(nil)
}

// maxEarlyReplies bounds the early replies that one ask keeps. More than one comes only when
// a member forges replies.
const maxEarlyReplies = 4

// earlyReply is a reply of a member to which, as far as this node knows, the message of the
// ask has not gone: the map by which the message went there may still be on its way here.
type earlyReply struct {
	from  gossip.NodeID
	reply *protocol.Reply
}

// askTable is the asks of a slot without a reply. The zero value is ready; the lock of the slot guards it.
type askTable struct {
	open  map[uint64]*Ask // By correlation; made at first use.
	limit machine.Instant // When the asks are looked at, of which the first may end by itself then; 0: there is none.
}

// enter puts an ask for an entity into the table, whose message goes first to a home of the cell.
func (t *askTable) enter(a *Ask, entity string, homes uint64) {
	if t.open == nil {
		t.open = make(map[uint64]*Ask)
	}
	t.open[a.Correlation], a.entity, a.homes = a, entity, homes
}

// complete hands a reply to the ask that waits for it, and reports whether there is one. If not, the ask has a reply
// already, or was told why it has none.
func (t *askTable) complete(reply *protocol.Reply) bool {
	a := t.open[reply.Correlation]
	if a == nil {
		return false
	}
	delete(t.open, reply.Correlation)
	a.Asker.Answer(reply)
	return true
}

// completeAll ends the asks that are meant, in the order of their correlations: the outcome
// of their messages is unknown.
func (t *askTable) completeAll(detail string, meant func(*Ask) bool) {
	if len(t.open) == 0 {
		return
	}
	for _, correlation := range slices.Sorted(maps.Keys(t.open)) {
		if meant(t.open[correlation]) {
			t.complete(&protocol.Reply{Correlation: correlation, Code: protocol.CodeUnknownOutcome, Detail: detail})
		}
	}
}

// answered takes a reply of another node to an ask of the table. The reply completes the ask if the message can have
// gone to that node, and is kept as an early reply if not: then it may be forged.
func (t *askTable) answered(c *cell.Cell, from gossip.NodeID, reply *protocol.Reply) (genuine bool) {
	a := t.open[reply.Correlation]
	if c.Went(from, a.homes) {
		return t.complete(reply)
	}
	a.earlyReplies = slices.DeleteFunc(a.earlyReplies, func(e earlyReply) bool { return e.from == from })
	if len(a.earlyReplies) < maxEarlyReplies {
		a.earlyReplies = append(a.earlyReplies, earlyReply{from, reply})
	}
	return false
}

// settleEarly completes asks with early replies from homes of which the cell has just
// learned.
func (t *askTable) settleEarly(c *cell.Cell) {
	if len(t.open) == 0 {
		return
	}
	for _, correlation := range slices.Sorted(maps.Keys(t.open)) {
		a := t.open[correlation]
		i := slices.IndexFunc(a.earlyReplies, func(e earlyReply) bool { return c.Went(e.from, a.homes) })
		if i >= 0 {
			t.complete(a.earlyReplies[i].reply)
		}
	}
}

// bound notes the deadline of an ask, and reports whether it is the first of the table.
func (t *askTable) bound(a *Ask) (first bool) {
	if first = a.Limited && (t.limit == 0 || a.Deadline < t.limit); first {
		t.limit = a.Deadline
	}
	return first
}

// renew finds the first deadline of the table anew, which is looked at some time after now at the earliest; 0: there
// is none.
func (t *askTable) renew(now machine.Instant) machine.Instant {
	t.limit = 0
	for _, a := range t.open {
		t.bound(a)
	}
	if t.limit != 0 {
		t.limit = max(t.limit, now.Add(deadlinesApart))
	}
	return t.limit
}

// delivered notes that the asks among messages that have left the window now wait for their
// replies.
func (t *askTable) delivered(items window.Items) {
	if len(t.open) == 0 {
		return
	}
	for v := (window.View{}); items.Next(&v); {
		if c := v.Correlation(); c != 0 {
			t.arrived(c)
		}
	}
}

// arrived notes that the message of an ask has come to the mailbox of its entity, or to its end.
func (t *askTable) arrived(correlation uint64) {
	if a := t.open[correlation]; a != nil {
		a.delivered = true
	}
}

// expect puts an ask into the table of asks.
func (sl *Slot) expect(a *Ask, entity string) {
	a.slot.Store(sl)
	sl.asks.enter(a, entity, sl.cell.Homes())
}

// bound has an ask that was accepted ended at its deadline. The caller holds mu.
func (sl *Slot) bound(a *Ask) {
	if sl.asks.bound(a) {
		sl.region.node.limits.add(sl.region.node, sl, a.Deadline, sl.now())
	}
}

// complete hands a reply to the ask that waits for it. A reply without a correlation
// reports a tell that was refused. A reply whose ask is not in the table is dropped.
func (sl *Slot) complete(reply *protocol.Reply) {
	if !sl.asks.complete(reply) && reply.Correlation == 0 && reply.Code != protocol.CodeOK {
		sl.region.node.Ports.Notes.Lost(sl.region.name, "", reply.Code, reply.Detail)
	}
}

// answered takes a reply from another node.
func (sl *Slot) answered(from gossip.NodeID, reply *protocol.Reply) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	switch waits := sl.asks.open[reply.Correlation] != nil; {
	case waits && sl.asks.answered(sl.cell, from, reply):
	case !waits && (reply.Correlation != 0 || sl.cell.Went(from, 0)):
		sl.complete(reply)
	default:
		sl.forged(from, cell.FaultReply)
	}
}

// endLimited ends the asks of the slot whose deadlines have passed. The slot was in the list
// for the time at: if an ask with an earlier deadline came later, it stands there twice.
func (sl *Slot) endLimited(at machine.Instant) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.asks.limit != at {
		return
	}
	now := sl.now()
	sl.end(nil, func(a *Ask) bool { return a.Limited && a.Deadline <= now })
	if next := sl.asks.renew(now); next != 0 {
		sl.region.node.limits.add(sl.region.node, sl, next, now)
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
	if len(sl.asks.open) == 0 {
		return
	}
	for _, correlation := range slices.Sorted(maps.Keys(sl.asks.open)) {
		if a := sl.asks.open[correlation]; a != nil && meant(a) { // To take back a message may have ended other asks.
			delete(sl.asks.open, correlation)
			a.Asker.End(sl.takeBack(a), cause)
		}
	}
	sl.carry(nil)
}
