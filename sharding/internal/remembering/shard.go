// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package remembering

import (
	"slices"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// A shard that this node serves: its set, the entities that are to begin, and those that are to be forgotten when no
// set of a former layout has them any more.

// shard is what a machine knows of one shard.
type shard struct {
	set

	machine *Machine
	id      protocol.ShardID

	known   bool                // The set was read since the shard was last served.
	pending []string            // Are to begin, the first one first.
	gone    map[string]struct{} // Of pending, those that were forgotten since they were read, and others. Nil when none are pending.

	waited   map[string]struct{}        // Waited to begin when the set was read, and were there. Nil when there are none.
	handed   map[string]struct{}        // Are in an outbox to begin, and were not forgotten since. Nil when there are none.
	held     map[string]machine.Instant // Are to be forgotten, when no set of a former layout has them. Nil when there are none.
	stops    bool                       // The shard stops: nothing begins any more.
	flushing bool                       // Flushed is to follow.
}

var _ holder = (*shard)(nil)

// writing returns how many ids are to be written, or being written.
func (s *shard) writing() int { return s.set.writing() + len(s.held) }

// asked returns what was asked for last of an id and is not written yet.
func (s *shard) asked(id string) op {
	if _, there := s.held[id]; there {
		return opForget
	}
	return s.set.asked(id)
}

// owns reports whether an entity is one of the shard.
func (s *shard) owns(id string) bool {
	return protocol.HashOf(id)%uint64(s.name.Of) == uint64(s.name.Number)
}

// remember notes that an entity is to be remembered.
func (s *shard) remember(now machine.Instant, id string, waits bool) {
	if s.release(id) {
		s.machine.importer.withdraw(id)
	}
	s.put(request{id: id, op: opRemember, waits: waits, since: now})
}

// forget notes that an entity is to be forgotten: at once, or when the sets of former layouts do not have it.
func (s *shard) forget(now machine.Instant, id string) {
	if len(s.pending) > 0 {
		if s.gone == nil {
			s.gone = map[string]struct{}{}
		}
		s.gone[id] = struct{}{}
	}
	if !s.machine.importer.holds(s) {
		s.put(request{id: id, op: opForget, since: now})
		return
	}
	s.hold(now, id)
	s.machine.importer.report(s, id)
}

// hold keeps an id until no set of a former layout has it, and then has it forgotten. If it is not reported to the
// importer, and one of these sets gives it, it is not new, and stays.
func (s *shard) hold(now machine.Instant, id string) {
	s.drop(id)
	if s.held == nil {
		s.held = map[string]machine.Instant{}
	}
	s.held[id] = now
}

// begins reports whether an entity was read, or taken over, and is to begin without a message, or has begun with one.
func (s *shard) begins(id string) bool {
	if s.asked(id) == opForget {
		return false
	}
	_, waited := s.waited[id]
	if _, there := s.handed[id]; there || waited {
		return true
	}
	if _, gone := s.gone[id]; !gone && slices.Contains(s.pending, id) {
		return true
	}
	w, there := s.requests[id]
	return there && w.op == opRemember && !w.waits
}

// release cancels that an entity is to be forgotten, and reports whether it was to be.
func (s *shard) release(id string) bool {
	_, there := s.held[id]
	if delete(s.held, id); len(s.held) == 0 {
		s.held = nil
	}
	return there
}

// await queues ids to begin, after those that wait already.
func (s *shard) await(ids []string) {
	if len(ids) == 0 {
		return
	}
	if len(s.pending) == 0 {
		s.gone = nil
		s.machine.starting = append(s.machine.starting, s)
	}
	for _, id := range ids {
		delete(s.gone, id)
	}
	s.pending = append(s.pending, ids...)
}

// halt cancels every start of this shard, those already handed out too.
func (s *shard) halt() {
	if len(s.pending) > 0 {
		s.machine.starting = slices.DeleteFunc(s.machine.starting, func(o *shard) bool { return o == s })
	}
	s.pending, s.gone, s.handed = nil, nil, nil
}

// markHanded records that the runtime was told to start ids.
func (s *shard) markHanded(ids []string) {
	if s.handed == nil {
		s.handed = make(map[string]struct{}, len(ids))
	}
	for _, id := range ids {
		s.handed[id] = struct{}{}
	}
}

// writable implements holder: nothing is written to a set that the index does not tell of.
func (s *shard) writable() bool { return s.machine.importer.lists(s.id.Layout()) }

// read implements holder. When the set was read before, its entities have begun, and it was opened again only for the
// sake of what is to be written.
func (s *shard) read(_ machine.Instant, ids []string, out *Outbox) {
	var there []string
	first := !s.known && !s.stops
	starts := ids[:0]
	for _, id := range ids {
		o := s.asked(id)
		switch {
		case s.machine.cfg.Fault(id) != "" || !s.owns(id):
			s.machine.stats.Foreign++
			continue
		case o == opForget:
			continue
		case o == opRemember:
			if w, wished := s.requests[id]; wished && w.waits {
				there = append(there, id)
				s.noteWaited(id)
			}
			s.drop(id)
		}
		starts = append(starts, id)
	}
	s.known = true
	s.kept(there, out)
	if !first {
		return
	}
	for _, id := range s.line {
		if w, there := s.requests[id]; there && w.op == opRemember && !w.waits { // They have begun, or had until a move was called off.
			starts = append(starts, id)
		}
	}
	s.await(starts)
}

// noteWaited records that an id with a waiting entity was in the set when the set was read for the first time.
func (s *shard) noteWaited(id string) {
	if s.known {
		return // It may be there because it waits.
	}
	if s.waited == nil {
		s.waited = map[string]struct{}{}
	}
	s.waited[id] = struct{}{}
}

// kept tells the entities that wait for the store that it has them.
func (s *shard) kept(ids []string, out *Outbox) {
	if len(ids) > 0 {
		out.Kept = append(out.Kept, Entities{Shard: s.id, IDs: ids})
	}
}

// wrote implements holder.
func (s *shard) wrote(_ machine.Instant, done, full []request, out *Outbox) {
	m := s.machine
	var there, none []string
	for _, w := range done {
		if w.op == opForget {
			m.stats.Forgotten++
			continue
		}
		m.stats.Remembered++
		if s.asked(w.id) != opForget && !w.waits { // Who waits may give up: then it counts whether a former set has the id.
			m.importer.written(s, w.id)
		}
		if w.waits && s.asked(w.id) != opForget {
			there = append(there, w.id)
		}
	}
	for _, w := range full {
		m.stats.Full++
		if w.waits {
			none = append(none, w.id)
		}
	}
	s.kept(there, out)
	if len(none) > 0 {
		out.Unkept = append(out.Unkept, Entities{Shard: s.id, IDs: none, Why: "it has no room"})
	}
}

// failed implements holder. It tells once of the entities that have waited for too long. Whoever gives them up has them
// forgotten, since the store may have taken them all the same; one that runs meanwhile, since it was read, goes on and
// stays to be written.
func (s *shard) failed(now machine.Instant, why string, out *Outbox) {
	var late []string
	for _, id := range s.line {
		if w, there := s.requests[id]; there && w.op == opRemember && w.waits && now.Sub(w.since) >= s.machine.cfg.Timeout {
			late = append(late, id)
			s.machine.stats.Unkept++
			w.since = machine.Never
			s.requests[id] = w
		}
	}
	if len(late) > 0 {
		out.Unkept = append(out.Unkept, Entities{Shard: s.id, IDs: late, Why: why})
	}
}
