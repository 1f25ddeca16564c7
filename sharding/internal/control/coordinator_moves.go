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

// A move of a shard: depart tells the home to stop it, land or settle gives it the next home,
// end records the outcome; overdue handles homes that do not stop in time. Shards of regions
// that leave are planned by intend and begin in waves. A coordinator that ends itself lets its
// moves end, by retire. Last is the history of the moves.

// Bounds of moves.
const (
	// waveFactor times [KindConfig.MaxSimultaneousPerRegion] is the number of shards that
	// a region which leaves hands back at one time.
	waveFactor = 8
	// waveAge is the age from which a move does not count against that number any more,
	// so that entities that do not stop hold up no other shards.
	waveAge = 500 * time.Millisecond
	// historySize is how many moves of the past are kept.
	historySize = 256
)

// plan is a move of a shard away from a region that leaves: it is decided and has not
// begun.
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
	handBack bool            // The move is because the home leaves.
	at       machine.Instant // When the move began.
	started  time.Time       // When the move began, by the wall clock.
}

// advance begins the moves that have become possible since another move took a step.
func (c *coordinator) advance() {
	if !c.opened || c.control().suspended {
		return
	}
	c.wave()
	c.followUp()
}

// depart begins a move: the home of the shard is told to stop it.
func (c *coordinator) depart(id protocol.ShardID, m *move) {
	s := &c.shards[id]
	c.enter(s, PhaseStopping)
	s.deadline = c.now().Add(c.kind.timings.Handoff)
	m.at, m.started = c.now(), c.control().now.Wall
	c.moves[id] = m
}

// land gives a shard that has stopped the home on which its move decided, if that node can
// still take it.
func (c *coordinator) land(id protocol.ShardID, from gossip.NodeID, open []gossip.NodeID) bool {
	m := c.moves[id]
	if m == nil || !c.opened || c.control().suspended {
		return false
	}
	if m.to == from || !slices.Contains(open, m.to) {
		m.strand()
		return false
	}
	c.settle(id, m.to, m.reason)
	return true
}

// settle gives a shard a home.
func (c *coordinator) settle(id protocol.ShardID, node gossip.NodeID, decision string) {
	s := &c.shards[id]
	epoch := protocol.Epoch{Born: c.born, Term: c.term, N: c.n + 1}
	if !s.travelling {
		s.base, s.positions = epoch, nil
	}
	s.home, s.epoch, s.decision = node, epoch, decision
	c.enter(s, PhaseStarting)
	c.changed[id], c.toHost[id] = true, true
	delete(c.wanted, id)
	c.populated = true
	if m := c.moves[id]; m != nil {
		if m.stranded {
			m.reason = clip(m.reason + "; " + decision)
		}
		m.to, m.stranded = node, false
	}
}

// strand takes the target from a move, because the target cannot take the shard any more.
func (m *move) strand() {
	if !m.to.IsZero() {
		m.reason, m.stranded = clip(fmt.Sprintf("%s can take it no more; %s", m.to, m.reason)), true
	}
	m.to = gossip.NodeID{}
}

// end ends the move of a shard, if there is one.
func (c *coordinator) end(id protocol.ShardID, how Outcome) {
	m := c.moves[id]
	if m == nil {
		return
	}
	delete(c.moves, id)
	moved := Moved{
		Shard: id, From: m.from, To: m.to, Started: m.started, Ended: c.control().now.Wall, Outcome: how, Reason: m.reason,
	}
	c.history.add(moved)
	if !m.handBack {
		c.rebalance.ended(how)
		if how == OutcomeMoved {
			c.shards[id].came = arrival{from: m.from, at: c.now()}
		}
	}
	c.control().out.Publish(MoveEnded{Kind: c.kind.name, Moved: moved})
}

// leaversShards returns the shards that a batch should find targets for: those of
// regions that leave.
func (c *coordinator) leaversShards() []protocol.ShardID {
	if c.ending {
		return nil
	}
	leaving := map[gossip.NodeID]bool{}
	for node := range c.regions { //quorate:unordered each entry by itself
		if c.isLeaving(node) {
			leaving[node] = true
		}
	}
	var ids []protocol.ShardID
	for i := range c.shards {
		s := &c.shards[i]
		if s.phase != PhaseServing || !leaving[s.home] || c.now() < s.notBefore {
			continue
		}
		if _, known := c.plans[protocol.ShardID(i)]; !known {
			ids = append(ids, protocol.ShardID(i))
		}
	}
	return ids
}

// intend plans that a shard of a region that leaves goes to a node.
func (c *coordinator) intend(id protocol.ShardID, to gossip.NodeID, reason string) {
	home := c.shards[id].home
	c.plans[id] = plan{to: to, reason: home.String() + " is leaving; " + reason}
	c.planned[home] = append(c.planned[home], id)
}

// wave begins planned moves, as many from each region as may be under way at one time.
func (c *coordinator) wave() {
	if len(c.planned) == 0 || c.ending {
		return
	}
	open := c.eligible()
	young := map[gossip.NodeID]int{}
	for _, m := range c.moves { //quorate:unordered a count
		if m.handBack && c.now().Sub(m.at) < waveAge {
			young[m.from]++
		}
	}
	o := newCommands()
	for _, home := range sortedNodes(c.planned) {
		c.planned[home] = c.release(home, c.planned[home], waveFactor*c.kind.cfg.perRegion()-young[home], open, o)
		if len(c.planned[home]) == 0 {
			delete(c.planned, home)
		}
	}
	c.send(o)
}

// release begins at most most of the moves that are planned from a home, and returns
// the shards of the others. A plan that is out of date is dropped, and made anew by the
// next batch.
func (c *coordinator) release(home gossip.NodeID, ids []protocol.ShardID, most int, open []gossip.NodeID, o commands) []protocol.ShardID {
	for len(ids) > 0 && most > 0 {
		id := ids[0]
		ids = ids[1:]
		p, known := c.plans[id]
		delete(c.plans, id)
		s := &c.shards[id]
		if !known || s.phase != PhaseServing || s.home != home || !slices.Contains(open, p.to) {
			continue
		}
		c.depart(id, &move{from: home, to: p.to, reason: p.reason, handBack: true})
		o.add(id, s)
		most--
	}
	return ids
}

// overdue gives up waiting for homes that do not stop shards in time: the stop is taken
// back, or the entities are given up.
func (c *coordinator) overdue() {
	next, verdict := PhaseResuming, "called off"
	if c.kind.cfg.OnStuck == OnStuckAbandon {
		next, verdict = PhaseReleasing, "abandoned"
	}
	late := map[gossip.NodeID]int{}
	for i := range c.shards {
		s := &c.shards[i]
		if s.phase == PhaseStopping && c.now() >= s.deadline {
			c.enter(s, next)
			late[s.home]++
		}
	}
	for _, node := range sortedNodes(late) {
		c.control().out.Decide("handoff", c.kind.name, verdict,
			fmt.Sprintf("%s did not stop %d shards within the handoff timeout", node, late[node]))
	}
}

// The times for which a coordinator that ends waits for its moves.
const (
	// endPatience is how long shards may take to stop, before their stop is taken back.
	endPatience = time.Second
	// endLimit is how long the coordinator waits at most. A shard that is on its way then
	// is found by the next coordinator, without the positions of its streams.
	endLimit = 3 * time.Second
)

// retire lets the moves under way come to their ends, and begins no other. Plans that have
// not begun are left to the next coordinator.
func (c *coordinator) retire() {
	c.ending, c.endBy = true, c.now().Add(endLimit)
	clear(c.plans)
	clear(c.planned)
	for i := range c.shards {
		if s := &c.shards[i]; s.phase == PhaseStopping || s.phase == PhaseReleasing {
			s.deadline = min(s.deadline, c.now().Add(endPatience))
		}
	}
	if c.call.id != 0 {
		c.forgetCall()
	}
	c.evaluate()
}

// retired reports whether a coordinator that ends can stop. Its successor must have asked
// for that, since until then no other node answers regions that need maps and homes. And no
// shard may be on its way: every shard is open, or with a home, which reports it to the
// successor.
func (c *coordinator) retired() bool {
	if !c.ending {
		return false
	}
	if c.now() >= c.endBy {
		return true
	}
	if c.kind.successor() && !c.kind.core.Asked() {
		return false
	}
	for i := range c.shards {
		if s := &c.shards[i]; s.travelling || s.phase != PhaseOpen && s.phase != PhaseServing {
			return false
		}
	}
	return true
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

// inFlight returns the shards on their way, sorted.
func (c *coordinator) inFlight() []protocol.ShardID { return slices.Sorted(maps.Keys(c.moves)) }
