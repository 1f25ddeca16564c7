// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// Entities that are remembered: an entity that has begun runs, from then on and wherever its shard is, until it
// stops itself for good. The cell has it run as it has those that are permanent; which others have run
// before knows the [RememberPort], which the cell tells of what begins and ends, and which tells the cell
// by [Remembering] whom to start.
//
//	first message ──> Remember ──(written, if the first message waits)──> runs ──> asks to stop ──> Forget
//	                                    Remembering.Start ─────────────────^ │ fails, or stops otherwise
//	                                                                       └─┘ rests

// RememberPort remembers the entities of a region. It is called with mu of the slot held, by the cells of the
// region at once, and returns without waiting for any of them.
type RememberPort interface {
	// Serve says that the node hosts a shard from now on, or again. [Remembering.Start] follows.
	Serve(shard protocol.ShardID, epoch protocol.Epoch)
	// Remember says that an entity has begun; or, with [Config.RememberFirst], that it waits for
	// [Remembering.Kept] or [Remembering.Unkept]. It may be said again.
	Remember(shard protocol.ShardID, id string)
	// Forget says that an entity has stopped for good.
	Forget(shard protocol.ShardID, id string)
	// GiveUp says that an entity does not wait any more, as nobody does for it: it is forgotten, unless it has run
	// before.
	GiveUp(shard protocol.ShardID, id string)
	// Flush says that the shard stops, and reports whether everything is written; [Remembering.Flushed]
	// follows if not. It may be said again.
	Flush(shard protocol.ShardID) (written bool)
	// End says that the node does not host the shard any more.
	End(shard protocol.ShardID)
}

// rememberedEntities is the part of the entity table that has entities remembered. Invariants, between calls:
//
//	G1  an entity that was started, or waits for standing to be, is known to the RememberPort, unless it
//	    has stopped for good;
//	G2  with RememberFirst an entity without an epoch has no instance;
//	G3  while an entity of G1 rests, next is not zero, and the alarm is set to it.
type rememberedEntities struct {
	env
	next   machine.Instant // When resting entities are looked at; 0: none rests.
	looked machine.Instant // When they were looked at last.
	halted machine.Instant // Since when only what is to be written keeps the shard from having stopped; 0: something else does.
	hasty  bool            // The shard does not wait for what is to be written.
}

// on reports whether entities are remembered.
func (m *rememberedEntities) on() bool { return m.cfg.Rememberer != nil }

// runs reports whether e runs whenever the node hosts the shard: it has begun, and was not forgotten.
func (m *rememberedEntities) runs(e *Entity) bool { return m.on() && e.epoch != nil }

// serve and end tell that the node hosts the shard, and that it does not.
func (m *rememberedEntities) serve() {
	m.halted, m.hasty = 0, false
	if m.on() {
		m.cfg.Rememberer.Serve(m.cfg.Shard, m.place.hostedUnder())
	}
}

func (m *rememberedEntities) end() {
	m.next, m.halted = 0, 0
	if m.on() {
		m.cfg.Rememberer.End(m.cfg.Shard)
	}
}

// stop has nothing more begin without a message, since the shard stops.
func (m *rememberedEntities) stop() {
	if m.on() {
		m.cfg.Rememberer.Flush(m.cfg.Shard)
	}
}

// written reports whether the shard, all of whose entities have stopped, may go: what is to be written is, or
// has taken for too long.
func (m *rememberedEntities) written(now machine.Instant, out *Actions) bool {
	if !m.on() || m.hasty || m.cfg.Rememberer.Flush(m.cfg.Shard) {
		return true
	}
	if m.halted == 0 {
		m.halted = now
	}
	if now.Sub(m.halted) >= m.cfg.SnapshotTimeout {
		return true
	}
	m.alarm.at(m.halted.Add(m.cfg.SnapshotTimeout), out)
	return false
}

// mustWait reports whether e, which has messages, may not begin before the store has it.
func (m *rememberedEntities) mustWait(e *Entity) bool {
	if !m.on() || !m.cfg.RememberFirst || e.epoch != nil {
		return false
	}
	m.cfg.Rememberer.Remember(m.cfg.Shard, e.id)
	return true
}

// begins notes that an instance of e begins. The epoch is that of the instance before, if there was one.
func (m *rememberedEntities) begins(e *Entity) {
	if m.on() && e.epoch == nil {
		m.cfg.Rememberer.Remember(m.cfg.Shard, e.id)
	}
}

// asked notes that e, which is to be stopped, has asked for it.
func (m *rememberedEntities) asked(e *Entity) {
	if m.on() {
		e.set(isForGood)
	}
}

// ends notes for which reason the instance of e is about to be stopped. One that was to move, and stays since that was
// called off, is stopped as one that passivates, and has not asked for it.
func (m *rememberedEntities) ends(e *Entity, why StopReason) {
	if m.on() && why != StopPassivated {
		e.unset(isForGood)
	}
}

// ended forgets e, whose instance has stopped, if that was for good.
func (m *rememberedEntities) ended(e *Entity) {
	if !m.on() || e.flags&isForGood != isForGood {
		return
	}
	e.unset(isForGood)
	if m.place.hosts() && !m.place.isOver() && !e.Ended() {
		e.epoch = nil
		m.cfg.Rememberer.Forget(m.cfg.Shard, e.id)
	}
}

// rests has e looked at when its rest is over. Many that fail at once, each at its time, are looked at
// together.
func (m *rememberedEntities) rests(e *Entity, out *Actions) {
	if !m.runs(e) {
		return
	}
	at := max(e.at, m.looked.Add(postponeRetry))
	if m.next == 0 || at < m.next {
		m.next = at
	}
	m.alarm.at(m.next, out)
}

// due reports whether resting entities are to be looked at, which the caller does. If not, the alarm, which may
// have rung for something else, is set again.
func (m *rememberedEntities) due(now machine.Instant, out *Actions) bool {
	switch {
	case m.next == 0:
		return false
	case now < m.next:
		m.alarm.at(m.next, out)
		return false
	}
	m.next, m.looked = 0, now
	return true
}

// Remembering has the inputs by which the [RememberPort] drives a cell. They do nothing to a cell that does not serve
// its shard.
type Remembering struct{ c *Cell }

// Remembering returns the inputs by which the store of remembered entities drives the cell. It allocates nothing.
func (c *Cell) Remembering() Remembering { return Remembering{c} }

// Start has entities run that have run before, if they do not.
func (x Remembering) Start(now machine.Instant, ids []string, out *Actions) {
	r := &x.c.entities
	if !r.place.serves() || r.place.isOver() {
		return
	}
	for _, id := range ids {
		e := r.entity(id)
		if e == nil {
			e = r.create(id)
			r.counts.Recalled++
		}
		if e.epoch == nil {
			e.epoch = r.place.token()
		}
		r.advance(now, e, out)
	}
}

// Kept says that the store has entities. One that does not wait any more is given up.
func (x Remembering) Kept(now machine.Instant, ids []string, out *Actions) {
	r := &x.c.entities
	if !r.place.hosts() || r.place.isOver() {
		return
	}
	for _, id := range ids {
		switch e := r.entity(id); {
		case e == nil:
			r.cfg.Rememberer.GiveUp(r.cfg.Shard, id)
		case e.epoch == nil:
			e.epoch = r.place.token()
			r.advance(now, e, out)
		}
	}
	x.c.checkHalted(now, out)
}

// Unkept says that the store did not take entities in time, and why. The messages of those that wait are refused, and
// they are given up.
func (x Remembering) Unkept(now machine.Instant, ids []string, why string, out *Actions) {
	r := &x.c.entities
	if !r.place.hosts() || r.place.isOver() {
		return
	}
	for _, id := range ids {
		e := r.entity(id)
		if e != nil && e.epoch != nil {
			continue // It was read meanwhile, and runs.
		}
		r.cfg.Rememberer.GiveUp(r.cfg.Shard, id)
		if e != nil {
			e.failures = min(e.failures+1, 16)
			r.rest(now, e, r.cfg.backoff(e.failures), unkept+why, out)
			r.removeIdle(e)
		}
	}
	x.c.checkHalted(now, out)
}

// unkept begins the reason of an entity whose first message was refused.
const unkept = "the entity does not begin, since the store of remembered entities did not take it: "

// Flushed says that everything of the shard is written.
func (x Remembering) Flushed(now machine.Instant, out *Actions) { x.c.checkHalted(now, out) }
