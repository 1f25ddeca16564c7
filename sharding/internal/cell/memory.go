// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"slices"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/handoff"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// The memory of entities that takes part in a planned move: an instance that has stopped for the move
// is asked for a snapshot, which goes with the shard, or to the next instance here if the move is
// called off.
//
//	OpStop ──> Stopped ──────────────────────────────────────────> gone
//	              └──> Leaves: OpSnapshot ──> Gave ──> in the buffer ──> gone
//	                                 └─ too slow ──> left behind
//
//	OpStart, with the snapshot as Entity.Value ──> Began ──> Started

// memory is the part of a cell that keeps the snapshots of entities without an instance. Invariants,
// between calls:
//
//	E1  a snapshot is in the buffer while this node hosts the shard, and otherwise nowhere here;
//	E2  an entity with an instance that starts or runs has no snapshot in the buffer;
//	E3  asked holds the entities whose instance has stopped and is asked for its snapshot, in the order
//	    in which they were asked, unless they were left behind or their hosting has ended, and the
//	    alarm is set while the shard stops.
type memory struct {
	env
	buffer handoff.Buffer
	asked  []*Entity
}

// take returns the snapshot of an entity whose instance starts, as the Value of its record; nil: there
// is none.
func (m *memory) take(entity string) any {
	if data := m.buffer.Take(entity); data != nil {
		return &protocol.Snapshot{Entity: entity, Data: data}
	}
	return nil
}

// begin takes the snapshots that have come with the shard, and end gives those that go with it.
func (m *memory) begin(now machine.Instant, all []protocol.Snapshot, out *Actions) {
	m.forgotten(m.buffer.Begin(now, all), protocol.LossOnTheWay, out)
}

func (m *memory) end() []protocol.Snapshot {
	machine.Assert(len(m.asked) == 0, "E3: a shard that has stopped asks nobody for a snapshot", "asked", len(m.asked))
	return m.buffer.End()
}

// clear forgets everything: the hosting ends without a next home that is known.
func (m *memory) clear() {
	m.buffer.Clear()
	m.asked = nil // Nothing waits for them any more.
}

// expire drops the snapshots of entities that would have been stopped for being idle.
func (m *memory) expire(now machine.Instant, out *Actions) {
	if m.place.serves() {
		m.forgotten(m.buffer.Expire(now, m.cfg.PassivateAfter), protocol.LossIdle, out)
	}
}

// forgotten counts and tells of memories that are lost.
func (m *memory) forgotten(entities []string, why protocol.Loss, out *Actions) {
	for _, entity := range entities {
		m.counts.Forgotten[why]++
		out.add(Action{Op: OpForgotten, Event: protocol.MemoryLost{Entity: entity, Loss: why}})
	}
}

// ask has the instance of e, which has stopped, asked for its snapshot.
func (m *memory) ask(now machine.Instant, e *Entity, out *Actions) {
	e.at = now
	m.asked = append(m.asked, e)
	out.entity(OpSnapshot, e)
}

// watch sets the alarm to the time at which the first of the snapshots takes too long, while the
// shard stops: a hosting that goes on has no hurry.
func (m *memory) watch(out *Actions) {
	if len(m.asked) > 0 && m.place.stops() {
		m.alarm.at(m.asked[0].at.Add(m.cfg.SnapshotTimeout), out)
	}
}

// answered notes that e is not asked for its snapshot any more.
func (m *memory) answered(e *Entity) {
	m.asked = slices.DeleteFunc(m.asked, func(o *Entity) bool { return o == e })
}

// put keeps the snapshot that the instance of e gave, or tells why it is lost.
func (m *memory) put(now machine.Instant, s protocol.Snapshot, out *Actions) {
	lost := m.buffer.Put(now, s)
	switch {
	case lost != protocol.LossNone:
		m.forgotten([]string{s.Entity}, lost, out)
	case len(s.Data) > 0:
		m.counts.Snapshots++
	}
}

// giveUp goes on without the snapshots of all who are asked: they are left behind.
func (m *memory) giveUp(now machine.Instant, out *Actions) {
	for _, e := range m.asked {
		m.put(now, protocol.Snapshot{Entity: e.id, Loss: protocol.LossTooSlow}, out)
	}
	m.asked = nil
}

// slow takes the entities from asked that have been asked for too long, while the shard stops.
func (m *memory) slow(now machine.Instant) []*Entity {
	n := 0
	for m.place.stops() && n < len(m.asked) && now.Sub(m.asked[n].at) >= m.cfg.SnapshotTimeout {
		n++
	}
	slow := slices.Clone(m.asked[:n])
	m.asked = slices.Delete(m.asked, 0, n)
	return slow
}

// Handoff is what a cell does about the memory of its entities when their shard moves, and about all that
// it has when its shard, or one of the layout before, is retired.
type Handoff struct{ c *Cell }

// Handoff returns the inputs about the memory of entities when the shard moves.
func (c *Cell) Handoff() Handoff { return Handoff{c} }

// Leaves says that the instance of e, of an OpStop, has stopped for the reason why, and can give a
// snapshot. If the memory goes with the shard OpSnapshot follows, else it is as with [Instances.Stopped].
func (h Handoff) Leaves(now machine.Instant, e *Entity, why StopReason, out *Actions) {
	c := h.c
	moves := why == StopMoved || why == StopLeaving
	if !moves || e.state != entityStopping || e.Ended() || c.place.isOver() || !c.place.hosts() {
		c.Instances().Stopped(now, e, out)
		return
	}
	c.entities.returned(e, out)
	c.memory.ask(now, e, out)
	h.hurry(now, out)
}

// Gave says that the instance of e, of an OpSnapshot, gave its snapshot, or why not.
func (h Handoff) Gave(now machine.Instant, e *Entity, s protocol.Snapshot, out *Actions) {
	c := h.c
	c.memory.answered(e)
	if s.Entity = e.id; !e.Ended() && c.place.hosts() && !c.place.isOver() {
		c.memory.put(now, s, out)
	}
	c.Instances().Stopped(now, e, out)
}

// Restored says whether the instance of e, of an OpStart with a snapshot, has taken it.
func (h Handoff) Restored(now machine.Instant, e *Entity, restored bool, out *Actions) {
	m := &h.c.memory
	if restored {
		m.counts.Restored++
		return
	}
	m.buffer.Lose(now, e.id, protocol.LossRefused)
	m.forgotten([]string{e.id}, protocol.LossRefused, out)
}

// Lost returns the last loss of an entity's memory that the cell remembers; false for none.
func (h Handoff) Lost(entity string) (handoff.Lost, bool) { return h.c.memory.buffer.LossOf(entity) }

// Kept returns how many snapshots wait for the next instance of their entity.
func (h Handoff) Kept() int { return h.c.memory.buffer.Len() }

// Sweep drops the snapshots to whose entities no message has come for [Config.PassivateAfter].
func (h Handoff) Sweep(now machine.Instant, out *Actions) { h.c.memory.expire(now, out) }

// hurry goes on without the entities that take too long for their snapshots. They have stopped.
func (h Handoff) hurry(now machine.Instant, out *Actions) {
	c := h.c
	for _, e := range c.memory.slow(now) {
		c.memory.put(now, protocol.Snapshot{Entity: e.id, Loss: protocol.LossTooSlow}, out)
		c.entities.refuseWaiting(e, protocol.CodeNotDelivered, out)
		c.entities.disband(e, out)
		c.entities.release(now, e, out)
	}
	c.memory.watch(out)
	c.checkHalted(now, out)
}
