// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package remembering

import (
	"cmp"
	"maps"
	"slices"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// A machine takes one input after the other: what cells say is noted with the shard, what the store says is
// in calls.go, and after each input whatever can begin begins, calls there and entities in starts.go. What
// is left of former layouts is taken over by importer.go and exporter.go.

// Machine serves the shards of a kind that a node hosts.
type Machine struct {
	cfg     Config
	layouts []protocol.Layout         // In force, by number.
	retired map[protocol.ShardID]bool // Of the former one of two layouts, the shards that are retired.
	shards  map[protocol.ShardID]*shard
	order   []*shard     // All of shards, by their numbers.
	sets    map[Set]*set // All that may be called: those of shards, and those of the exporter.

	ready    []*set          // Want a call of the store, the first one first.
	calls    int             // Under way.
	sessions uint64          // The number of the last session, or question.
	retry    machine.Instant // When the first of the closed sets goes on; [machine.Never]: there is none.

	closing  []Close         // For the next outbox.
	flushing int             // Shards that are to be told when everything is written.
	starting []*shard        // Have entities to start; the first one goes on.
	next     machine.Instant // When the next entity may begin.

	importer importer
	exporter exporter
	stats    Stats
}

// New returns a machine that serves no shard, of a kind with one layout.
func New(cfg Config, layout protocol.Layout) *Machine {
	m := &Machine{
		cfg: cfg, layouts: []protocol.Layout{layout}, shards: map[protocol.ShardID]*shard{}, sets: map[Set]*set{}, retry: machine.Never,
	}
	m.importer.machine, m.exporter.machine = m, m
	return m
}

// Step feeds one input to the machine, and appends to out what follows.
func (m *Machine) Step(now machine.Instant, in any, out *Outbox) {
	switch in := in.(type) {
	case Serve:
		m.serve(in)
	case Remember:
		m.request(now, in.Shard, in.ID, opRemember, out)
	case Forget:
		m.request(now, in.Shard, in.ID, opForget, out)
	case GiveUp:
		m.giveUp(now, in.Shard, in.ID, out)
	case Flush:
		m.flush(in.Shard)
	case End:
		m.end(in.Shard)
	case Layouts:
		m.relayout(now, in.InForce)
	case Retired:
		m.retire(in.Shard)
	case Opened:
		m.opened(now, in, out)
	case Changed:
		m.changed(now, in, out)
	case protocol.Asked:
		m.exporter.asked(now, in, out)
	case protocol.ExportReply:
		m.importer.imported(now, in, out)
	case Rate:
		m.cfg.Rate = in.Entities
	case Tick:
	}
	m.wake(now)
	m.exporter.load()
	m.call(out)
	m.start(now, out)
	m.flushed(out)
	m.importer.ask(now, out)
	out.Close, m.closing = append(out.Close, m.closing...), nil
}

// serve begins to serve a shard. One that is served already is read again: its entities were stopped for a
// move that was called off. What was not written stays to be written.
func (m *Machine) serve(in Serve) {
	at := slices.IndexFunc(m.layouts, func(l protocol.Layout) bool { return l.Has(in.Shard) })
	if at < 0 {
		return // A shard of a layout that is not in force is not served.
	}
	s := m.shards[in.Shard]
	if s == nil {
		s = &shard{machine: m, id: in.Shard, set: set{name: Set{in.Shard.Index(), m.layouts[at].Shards}}}
		s.holder = s
		m.shards[in.Shard] = s
		i, _ := slices.BinarySearchFunc(m.order, in.Shard, func(o *shard, id protocol.ShardID) int { return cmp.Compare(o.id, id) })
		m.order = slices.Insert(m.order, i, s)
		m.sets[s.name] = &s.set
	}
	s.epoch = in.Epoch
	s.giveBack()
	m.setFlushing(s, false)
	s.state, s.session, s.again, s.known, s.stops, s.waited = closed, 0, 0, false, false, nil
	s.halt()
	m.want(&s.set)
	if in.Shard == m.present().Shard(0) {
		m.exporter.begin(in.Epoch)
	}
}

// add makes a set one for which the store is called, and remove ends that.
func (m *Machine) add(s *set) {
	m.sets[s.name] = s
	m.want(s)
}

func (m *Machine) remove(s *set) {
	if m.sets[s.name] == s {
		delete(m.sets, s.name)
	}
	m.ready = slices.DeleteFunc(m.ready, func(o *set) bool { return o == s })
	if s.session > 0 {
		m.closing = append(m.closing, Close{s.name, s.session})
	}
}

// relayout handles a change of the layouts in force.
func (m *Machine) relayout(now machine.Instant, inForce []protocol.Layout) {
	before := m.present()
	m.layouts, m.retired = slices.Clone(inForce), nil
	if before != m.present() {
		m.exporter.end()
		m.importer.begin(now)
	} else if m.exporter.index != nil {
		m.exporter.relayout()
	}
}

// retire records that a shard of the former layout is retired.
func (m *Machine) retire(id protocol.ShardID) {
	if len(m.layouts) < 2 || !m.layouts[0].Has(id) {
		return
	}
	if m.retired == nil {
		m.retired = map[protocol.ShardID]bool{}
	}
	m.retired[id] = true
	m.exporter.retire(id)
}

// isInForce reports whether a layout in force has so many shards.
func (m *Machine) isInForce(shards uint32) bool {
	return slices.ContainsFunc(m.layouts, func(l protocol.Layout) bool { return l.Shards == shards })
}

// request takes that an id is to be remembered, or to be forgotten.
func (m *Machine) request(now machine.Instant, id protocol.ShardID, entity string, op op, out *Outbox) {
	s := m.shards[id]
	if s == nil {
		return
	}
	if op == opForget {
		delete(s.handed, entity)
		delete(s.waited, entity)
	}
	if s.asked(entity) == op {
		return
	}
	switch {
	case op == opRemember && m.cfg.First && s.begins(entity):
		s.kept([]string{entity}, out) // The store has it: it begins now, and waits for no turn.
		return
	case op == opRemember:
		s.remember(now, entity, m.cfg.First)
	case s.forgets+len(s.held) >= MaxForgets:
		m.stats.Overflowed++
		s.drop(entity) // Of two requests neither is written: the store may have the entity.
		return
	default:
		s.forget(now, entity)
	}
	m.want(&s.set)
}

// giveUp handles an id that does not wait any more. It is to be forgotten if it is new: the store may have taken it all
// the same. What the store has had before runs until it stops for good, whoever waits for it.
func (m *Machine) giveUp(now machine.Instant, id protocol.ShardID, entity string, out *Outbox) {
	s := m.shards[id]
	switch {
	case s == nil || s.begins(entity):
	case !s.known:
		s.drop(entity) // Whether it is new is known when the set is read.
	case m.importer.holds(s) && s.forgets+len(s.held) < MaxForgets:
		s.hold(now, entity) // And here when no set of a former layout has given it.
	default:
		m.request(now, id, entity, opForget, out)
	}
}

// flush cancels the starts of a shard that stops; Flushed follows when everything of it is written.
func (m *Machine) flush(id protocol.ShardID) {
	if s := m.shards[id]; s != nil {
		s.halt()
		s.stops = true
		m.setFlushing(s, true)
	}
}

// setFlushing records whether Flushed is to follow when everything of a shard is written.
func (m *Machine) setFlushing(s *shard, flushing bool) {
	if s.flushing != flushing {
		s.flushing = flushing
		if m.flushing--; flushing {
			m.flushing += 2
		}
	}
}

// Quiet reports whether nothing of a shard is to be written, nor being written, and nobody waits for what ends with it.
func (m *Machine) Quiet(id protocol.ShardID) bool {
	s := m.shards[id]
	return s == nil || m.quiet(s)
}

// quiet is Quiet of a shard that is served. The index ends with the first shard: that stays until others that have
// something to write may.
func (m *Machine) quiet(s *shard) bool {
	return s.writing() == 0 && (s.id != m.present().Shard(0) || !m.exporter.owes())
}

// flushed reports the shards that stop and have nothing to write any more.
func (m *Machine) flushed(out *Outbox) {
	if m.flushing == 0 {
		return
	}
	for _, s := range m.order {
		if s.flushing && m.quiet(s) {
			m.setFlushing(s, false)
			out.Flushed = append(out.Flushed, s.id)
		}
	}
}

// end forgets a shard. A call of it that is under way still counts.
func (m *Machine) end(id protocol.ShardID) {
	s := m.shards[id]
	if s == nil {
		return
	}
	m.stats.Unwritten += uint64(s.writing())
	m.setFlushing(s, false)
	s.halt()
	delete(m.shards, id)
	m.order = slices.DeleteFunc(m.order, func(o *shard) bool { return o == s })
	m.remove(&s.set)
	if id == m.present().Shard(0) {
		m.exporter.end()
	}
}

// Wake returns when the machine must be told that time has passed.
func (m *Machine) Wake(now machine.Instant) machine.Instant {
	at := m.retry
	if len(m.starting) > 0 {
		at = min(at, max(m.next, now.Add(startsEvery)))
	}
	if m.importer.asks() {
		at = min(at, m.importer.next)
	}
	return at
}

// Status returns what is known of a shard.
func (m *Machine) Status(id protocol.ShardID) Status {
	s := m.shards[id]
	if s == nil {
		return Status{}
	}
	st := Status{
		Served: true, Read: s.known, Starting: len(s.pending), Writing: s.writing(), Failures: s.failures, Why: s.why, Again: s.again,
		Listed: s.writable(), Taking: m.importer.holds(s), Held: len(s.held),
	}
	if id == m.present().Shard(0) {
		st.Former, st.FormerWhy = m.exporter.left(), m.exporter.fault()
	}
	return st
}

// Stats returns the counters, and the present numbers.
func (m *Machine) Stats() Stats {
	all := m.stats
	all.Shards = len(m.order)
	for _, s := range m.order {
		if !s.known {
			all.Unread++
		}
		all.Starting += len(s.pending)
		all.Writing += s.writing()
	}
	for _, s := range m.sets { //quorate:unordered a count
		if s.failures > 0 {
			all.Faulty++
		}
	}
	all.Taking, all.Former = m.importer.asks(), m.exporter.left()
	return all
}

// sorted returns the keys of a map in order.
func sorted[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// sortedBy returns the keys of a map in an order.
func sortedBy[K comparable, V any](m map[K]V, compare func(K, K) int) []K {
	return slices.SortedFunc(maps.Keys(m), compare)
}
