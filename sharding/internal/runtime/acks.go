// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"sync"
	"sync/atomic"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/wire"
)

// Acknowledgements, in rounds: acknowledge notes that a cell has some; Acknowledge, after a delay, and
// acknowledgePressing, when a window may run full before, begin a round; step and gather sort what the
// cells say by kind and origin, and sendAcks sends a list.

// dueAcks are the slots whose cells have acknowledgements to send, each at most once. Under
// load one round acknowledges everything that came since the last round. A round begins a short time
// after something is due, or as soon as the window of a sender may run full meanwhile: whoever has
// read the frame then begins it.
type dueAcks struct {
	mu    sync.Mutex // Guards due, spare and asked.
	due   []*Slot
	spare []*Slot // The memory of the list of the last round.
	asked bool    // The port was asked for a round, and has not begun it.

	pressing atomic.Bool // A round is to begin at once.

	turn  sync.Mutex // Held during a round. No lock of a slot is held when it is taken.
	round round      // Guarded by turn.
}

// acknowledge notes that the cell of a slot has acknowledgements to send.
func (n *Node) acknowledge(sl *Slot) {
	if sl.due.Swap(true) {
		return
	}
	n.acks.mu.Lock()
	n.acks.due = append(n.acks.due, sl)
	first := !n.acks.asked
	n.acks.asked = true
	n.acks.mu.Unlock()
	if first {
		n.Ports.AcksDue()
	}
}

// Acknowledge sends the acknowledgements of all cells that have any.
func (n *Node) Acknowledge() {
	n.acks.mu.Lock()
	n.acks.asked = false
	n.acks.mu.Unlock()
	n.acknowledgeAll()
}

// acknowledgePressing begins a round if the window of a sender may run full before the next.
func (n *Node) acknowledgePressing() {
	if n.acks.pressing.Load() && n.acks.pressing.Swap(false) {
		n.acknowledgeAll()
	}
}

// acknowledgeAll is a round of acknowledgements.
func (n *Node) acknowledgeAll() {
	n.acks.turn.Lock()
	defer n.acks.turn.Unlock()
	n.acks.mu.Lock()
	due := n.acks.due
	n.acks.due, n.acks.spare = n.acks.spare[:0], nil
	n.acks.mu.Unlock()
	r := &n.acks.round
	r.now = n.Ports.Clock.Instant()
	for _, sl := range due {
		sl.due.Store(false)
		r.step(sl)
	}
	for i := range r.lists {
		n.sendAcks(&r.lists[i], r.now)
	}
	if len(r.lists) > maxRoundLists {
		r.lists = nil // The kinds and nodes of one round may never come again.
	}
	clear(due)
	n.acks.mu.Lock()
	n.acks.spare = due[:0]
	n.acks.mu.Unlock()
}

// round gathers the acknowledgements of many cells, so that those to one origin travel in one
// envelope: with a thousand shards there would be an envelope for every few messages.
type round struct {
	now   machine.Instant // The clock of the round.
	lists []ackList
	last  int // The index of the list that was used last: cells that are due together mostly have the same origin.
}

// ackList holds the acknowledgements of a round for one kind and origin.
type ackList struct {
	kind string
	to   gossip.NodeID
	acks wire.AckList
}

// maxAckListBytes bounds the bytes of the acknowledgements in one envelope. Every frame has room
// for them.
const maxAckListBytes = 16 << 10

// maxRoundLists bounds the lists whose memory is kept for the next round.
const maxRoundLists = 64

// list returns the list for a kind and an origin.
func (r *round) list(kind string, to gossip.NodeID) *ackList {
	if r.last < len(r.lists) {
		if l := &r.lists[r.last]; l.to == to && l.kind == kind {
			return l
		}
	}
	for i := range r.lists {
		if l := &r.lists[i]; l.to == to && l.kind == kind {
			r.last = i
			return l
		}
	}
	r.last = len(r.lists)
	r.lists = append(r.lists, ackList{kind: kind, to: to})
	return &r.lists[r.last]
}

// step puts the acknowledgements of a cell into the round.
func (r *round) step(sl *Slot) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	sl.round = r
	sl.cell.Acks(&sl.out)
	sl.carry(nil)
	sl.round = nil
}

// gather puts an acknowledgement into the round of the slot. Without a round, as at the end of
// a hosting, and to a node of an earlier version, the acknowledgement travels by itself.
func (n *Node) gather(sl *Slot, a *cell.Action) {
	r := sl.round
	ack := protocol.Ack{Kind: sl.region.name, Shard: sl.shard, Base: a.Base, Seq: a.Seq}
	if r == nil || n.peer(a.To).version.Load() < protocol.VersionFrames {
		ack.Clock = sl.now()
		n.answer(a.To, func(dst []byte) []byte { return wire.AppendAck(dst, ack) })
		return
	}
	l := r.list(sl.region.name, a.To)
	if l.acks.Add(ack); l.acks.Bytes() >= maxAckListBytes {
		n.sendAcks(l, r.now)
	}
}

// sendAcks sends the acknowledgements of a list, and empties the list.
func (n *Node) sendAcks(l *ackList, now machine.Instant) {
	if l.acks.Bytes() > 0 {
		n.answer(l.to, func(dst []byte) []byte { return l.acks.Append(dst, l.kind, now) })
		l.acks.Reset()
	}
}
