// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// A message of this node takes one of two ways into its cell. The short cut, Tell and Ask, puts
// its value into the mailbox of an entity of this node. The long way, Blank and Offer,
// hands it to the cell, which may want it encoded first, or have no room for it at present.
// Withdraw and Retract take back what has become pointless.

// EncodeFirst is the answer of [Slot.Offer] to a message that was not handed to its cell,
// since the message is not encoded and may have to travel.
const EncodeFirst cell.Admission = 0xff

// Tell puts a message into the mailbox of an entity of this node that has a record and room,
// which is so for most messages. It reports false when nothing was done, and the message must
// take the long way.
func (sl *Slot) Tell(entity string, message any) bool { return sl.join(entity, message, nil) }

// Ask is Tell for the message of an ask, which waits in the table of asks if the result is true.
func (sl *Slot) Ask(entity string, message any, a *Ask) bool { return sl.join(entity, message, a) }

// join does the work of Tell, for which a is nil, and of Ask.
func (sl *Slot) join(entity string, message any, a *Ask) bool {
	if sl.remoteHint.Load() {
		return false
	}
	sl.mu.Lock()
	defer sl.mu.Unlock()
	e := sl.cell.Open(entity)
	if e == nil {
		return false
	}
	var correlation uint64
	var deadline machine.Instant
	if a != nil {
		sl.expect(a, entity) // The ask must be in the table before its reply can come.
		sl.bound(a)
		correlation, deadline = a.Correlation, a.Deadline
	}
	if sl.cell.Join(e, message, correlation, deadline) {
		sl.cell.Rouse(sl.now(), e, &sl.out)
		sl.carry(nil)
	}
	return true
}

// TellLiving puts a message into the mailbox of an entity of this node if it lives, in a shard that is served under
// an epoch; it wakes none.
func (sl *Slot) TellLiving(entity string, under protocol.Epoch, message any) cell.Liveness {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	e, reach := sl.cell.Reachable(entity, under)
	if reach == cell.Reached && sl.cell.Join(e, message, 0, 0) {
		sl.cell.Rouse(sl.now(), e, &sl.out)
		sl.carry(nil)
	}
	return reach
}

// Blank returns a message that the caller offers to the slot, and a buffer for its encoding
// if the message will probably go to another node.
func (sl *Slot) Blank(entity string, message any, trace []byte) (m *cell.Message, buffer []byte) {
	if sl.remoteHint.Load() {
		m = sl.region.node.messages.packed(0)
		buffer, m.Payload = m.Payload, nil
	} else {
		m = sl.region.node.messages.plain()
	}
	m.Kind, m.Shard, m.Entity, m.Value, m.Trace = sl.region.name, sl.shard, entity, message, trace
	return m, buffer
}

// Offer hands a message to the cell, once, which has it when the result is [cell.Accepted]; the ask that waits for its
// reply may be nil. With [cell.WindowFull] and [cell.MailboxFull] the result has a waiter, which is called when there
// is room and the message may be offered again; with [cell.EntityFailing] it says why.
func (sl *Slot) Offer(m *cell.Message, a *Ask) (admission cell.Admission, room Waiter, why string) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	local := sl.cell.Local()
	if sl.remoteHint.Load() == local {
		sl.remoteHint.Store(!local)
	}
	if m.Payload == nil && !local {
		return EncodeFirst, nil, ""
	}
	if a != nil {
		sl.expect(a, m.Entity) // The ask must be in the table before its reply can come.
	}
	if !local && sl.follow(m) {
		return sl.packed(m, a), nil, ""
	}
	admission = sl.cell.Accept(sl.now(), m, &sl.out)
	switch {
	case admission == cell.Packed:
		admission = sl.packed(m, a)
	case a == nil:
	case admission == cell.Accepted:
		sl.bound(a)
	default:
		delete(sl.asks.open, a.Correlation)
	}
	switch admission {
	case cell.WindowFull, cell.MailboxFull:
		room = sl.roomFor(m)
	case cell.EntityFailing:
		e, _ := sl.cell.Entity(m.Entity)
		why = e.Reason
	default:
	}
	sl.carry(nil)
	return admission, room, why
}

// follow puts a message behind those that wait for their lane, if it can go with them.
func (sl *Slot) follow(m *cell.Message) bool {
	if sl.link.collecting && sl.cell.Follow(m) {
		return true
	}
	sl.collect()
	return sl.cell.Follow(m)
}

// packed ends the way of a message that the cell has packed; the ask may be nil.
func (sl *Slot) packed(m *cell.Message, a *Ask) cell.Admission {
	if a != nil {
		sl.bound(a)
	}
	sl.region.node.messages.free(m)
	return cell.Accepted
}

// roomFor returns what is called when there is room for a message. The waiters are senders
// of the program, which bounds their number.
func (sl *Slot) roomFor(m *cell.Message) Waiter {
	if sl.waiters == nil {
		sl.waiters = make(map[*cell.Message]Waiter)
	}
	w := sl.region.node.Ports.Waiter(m)
	sl.waiters[m] = w
	return w
}

// Withdraw takes back a message that was offered, and is not accepted after all. The cell
// may keep room for it.
func (sl *Slot) Withdraw(m *cell.Message) {
	machine.Assert(m.Shard == sl.shard, "a message is withdrawn where it was offered last", "offered", uint32(m.Shard), "withdrawn", uint32(sl.shard))
	sl.mu.Lock()
	defer sl.mu.Unlock()
	delete(sl.waiters, m)
	sl.cell.Withdraw(m, &sl.out)
	sl.carry(nil)
}

// Retract takes an ask that does not wait any longer out of the table, and takes its
// message back if that is possible. If told, the asker has been told how the ask ended, and
// nothing is done. If back, the message was taken back, and no entity will process it.
func (a *Ask) Retract() (back, told bool) {
	for sl := a.slot.Load(); sl != nil; {
		if back, there := sl.retract(a); there {
			return back, false
		}
		now := a.slot.Load()
		if now == sl {
			break
		}
		sl = now // The slot has handed the ask on to one of the next layout.
	}
	return false, true
}

// retract does the work of [Ask.Retract], if the ask is in the table of this slot.
func (sl *Slot) retract(a *Ask) (back, there bool) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.asks.open[a.Correlation] != a {
		return false, false
	}
	delete(sl.asks.open, a.Correlation)
	back = sl.takeBack(a)
	sl.carry(nil)
	return back, true
}

// takeBack takes the message of an ask that is over back, if that is possible. The caller
// carries out the actions that follow.
func (sl *Slot) takeBack(a *Ask) bool {
	if a.delivered {
		return false
	}
	if p := sl.link.passage; p != nil {
		if _, over := p.Written(); over {
			sl.link.reroute(sl.cell, nil)
		}
	}
	m, back := sl.cell.Retract(sl.now(), a.entity, a.Correlation, &sl.out)
	if m != nil {
		sl.region.node.messages.free(m)
	}
	return back
}
