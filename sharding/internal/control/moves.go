// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// What is to move and what is on its way: intend plans a move and next takes it up; begin enters
// a move, targetOf says where it goes on once the shard has stopped, aim notes the home that the
// shard got, end takes the move out. Then come the questions about the moves, and last their
// history.

// Bounds of moves.
const (
	// waveAge is the age from which a move does not count against the number that a region
	// which leaves hands back at one time, so that entities that do not stop hold up no other
	// shards.
	waveAge = 500 * time.Millisecond
	// historySize is how many moves of the past are kept.
	historySize = 256
)

// moves is the part of a coordinator that knows which shards are to move, which are on their
// way, and which were. Invariants, between steps:
//
//	A1  a shard takes part in at most one move, and active holds every move under way;
//	A2  the shard of every plan is in planned, below the home that it had when the plan was
//	    made; a shard in planned that has no plan any more is passed over.
type moves struct {
	env
	plans   map[protocol.ShardID]plan            // Shards of leaving or drained regions whose stop has not begun.
	planned map[gossip.NodeID][]protocol.ShardID // The shards of plans by their homes, in the order in which their moves begin.
	active  map[protocol.ShardID]*move           // The moves under way, by shard.
	history history
}

// plan is a move of a shard away from a region that leaves or is drained: it is decided and has
// not begun.
type plan struct {
	to     gossip.NodeID
	reason string
}

// move is a shard on its way from one home to another.
type move struct {
	from     gossip.NodeID
	to       gossip.NodeID // The new home; zero: to be decided once the shard has stopped.
	reason   string
	stranded bool            // The target was lost on the way, and there is no other yet.
	handBack bool            // The move is because the home leaves or is drained.
	at       machine.Instant // When the move began.
	started  time.Time       // When the move began, by the wall clock.
}

// strand takes the target from a move, because the target cannot take the shard any more.
func (m *move) strand() {
	if !m.to.IsZero() {
		m.reason, m.stranded = clip(fmt.Sprintf("%s can take it no more; %s", m.to, m.reason)), true
	}
	m.to = gossip.NodeID{}
}

// planMove plans that a shard goes to a node, away from a home that is to hand it back.
func (ms *moves) planMove(id protocol.ShardID, home, to gossip.NodeID, reason string) {
	ms.plans[id] = plan{to: to, reason: home.String() + " " + reason}
	ms.planned[home] = append(ms.planned[home], id)
}

// homes returns the nodes with shards that are planned to move away, sorted.
func (ms *moves) homes() []gossip.NodeID { return sortedNodes(ms.planned) }

// next takes up the plan that is first in the order of a home; false: there is none.
func (ms *moves) next(home gossip.NodeID) (protocol.ShardID, plan, bool) {
	for len(ms.planned[home]) > 0 {
		id := ms.planned[home][0]
		if ms.planned[home] = ms.planned[home][1:]; len(ms.planned[home]) == 0 {
			delete(ms.planned, home)
		}
		if p, known := ms.plans[id]; known {
			delete(ms.plans, id)
			return id, p, true
		}
	}
	return 0, plan{}, false
}

// drop gives up the plan for a shard, if there is one, and dropAll gives up all plans.
func (ms *moves) drop(id protocol.ShardID) { delete(ms.plans, id) }

// cancel takes a move out that will have no next home, and leaves no trace of it.
func (ms *moves) cancel(id protocol.ShardID) { delete(ms.active, id) }

func (ms *moves) dropAll() {
	clear(ms.plans)
	clear(ms.planned)
}

// dropFrom gives up the plans for the shards of a home.
func (ms *moves) dropFrom(home gossip.NodeID) {
	for _, id := range ms.planned[home] {
		ms.drop(id)
	}
	delete(ms.planned, home)
}

// begin enters a move of a shard, which begins now.
func (ms *moves) begin(id protocol.ShardID, m move) {
	m.at, m.started = ms.now(), ms.control().now.Wall
	ms.active[id] = &m
}

// targetOf says to which of the open regions a shard that has stopped goes, and why. False: no move
// of the shard has such a target, and if it had another one it has lost it.
func (ms *moves) targetOf(id protocol.ShardID, from gossip.NodeID, open []gossip.NodeID) (to gossip.NodeID, reason string, ok bool) {
	m := ms.active[id]
	if m == nil {
		return gossip.NodeID{}, "", false
	}
	if m.to == from || !slices.Contains(open, m.to) {
		m.strand()
		return gossip.NodeID{}, "", false
	}
	return m.to, m.reason, true
}

// aim notes which home a shard got by a decision, if the shard is on its way.
func (ms *moves) aim(id protocol.ShardID, node gossip.NodeID, decision string) {
	m := ms.active[id]
	if m == nil {
		return
	}
	if m.stranded {
		m.reason = clip(m.reason + "; " + decision)
	}
	m.to, m.stranded = node, false
}

// end ends the move of a shard, and reports whether there was one. The move evened out the load
// unless it was a handing back.
func (ms *moves) end(id protocol.ShardID, how Outcome) (moved Moved, handBack, ok bool) {
	m := ms.active[id]
	if m == nil {
		return Moved{}, false, false
	}
	delete(ms.active, id)
	moved = Moved{
		Shard: id, From: m.from, To: m.to, Started: m.started, Ended: ms.control().now.Wall, Outcome: how, Reason: m.reason,
	}
	ms.history.add(moved)
	return moved, m.handBack, true
}

// isPlanned reports whether a shard is planned to move, and isMoving whether it is on its way.
func (ms *moves) isPlanned(id protocol.ShardID) bool {
	_, planned := ms.plans[id]
	return planned
}

func (ms *moves) isMoving(id protocol.ShardID) bool { return ms.active[id] != nil }

// at returns a copy of the move of a shard that is on its way: who looks at it changes nothing.
func (ms *moves) at(id protocol.ShardID) move { return *ms.active[id] }

// target returns to which node a shard is to move, or is on its way; zero: to none yet.
func (ms *moves) target(id protocol.ShardID) gossip.NodeID {
	if p, ok := ms.plans[id]; ok {
		return p.to
	}
	if m := ms.active[id]; m != nil {
		return m.to
	}
	return gossip.NodeID{}
}

// purpose returns to which node a shard is on its way, or is to move, and why.
func (ms *moves) purpose(id protocol.ShardID) (to gossip.NodeID, reason string) {
	if m := ms.active[id]; m != nil {
		return m.to, m.reason
	}
	p := ms.plans[id]
	return p.to, p.reason
}

// underWay returns how many shards are on their way, and inFlight returns them, sorted.
func (ms *moves) underWay() int { return len(ms.active) }

func (ms *moves) inFlight() []protocol.ShardID { return slices.Sorted(maps.Keys(ms.active)) }

// young returns how many shards each region hands back that have not been on their way for long.
func (ms *moves) young() map[gossip.NodeID]int {
	young := map[gossip.NodeID]int{}
	for _, m := range ms.active { //quorate:unordered a count
		if m.handBack && ms.now().Sub(m.at) < waveAge {
			young[m.from]++
		}
	}
	return young
}

// handsBack reports whether shards are on their way from regions that leave, or are planned
// to be.
func (ms *moves) handsBack() bool {
	if len(ms.plans) > 0 {
		return true
	}
	for _, m := range ms.active { //quorate:unordered any
		if m.handBack {
			return true
		}
	}
	return false
}

// past returns the last moves that have ended, the oldest first, and pastOf those of a shard.
func (ms *moves) past() []Moved { return ms.history.all() }

func (ms *moves) pastOf(id protocol.ShardID) []Moved { return ms.history.of(id) }

// String describes the moves in a part of a line.
func (ms *moves) String() string {
	return fmt.Sprintf("moves %d planned %d", len(ms.active), len(ms.plans))
}

// history holds the last moves, in a ring.
type history struct {
	ring []Moved
	next int // The place of the oldest move, once the ring is full.
}

func (h *history) add(m Moved) {
	if len(h.ring) < historySize {
		h.ring = append(h.ring, m)
		return
	}
	h.ring[h.next] = m
	h.next = (h.next + 1) % historySize
}

// all returns the moves, the oldest first.
func (h *history) all() []Moved {
	return slices.Concat(h.ring[h.next:], h.ring[:h.next])
}

// of returns the last moves of a shard, the oldest first.
func (h *history) of(id protocol.ShardID) []Moved {
	var moves []Moved
	for _, m := range h.all() {
		if m.Shard == id {
			moves = append(moves, m)
		}
	}
	return moves[max(0, len(moves)-MaxExplainedMoves):]
}
