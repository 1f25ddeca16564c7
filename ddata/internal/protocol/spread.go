// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"

	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/machine"
)

// What this node has changed goes to all other homes in batches: those that wait are one
// batch, sent when an operation waits for it or after an interval. Then the side that
// takes batches in.

// spread is the part of a group that sends deltas. A batch that nobody answers is
// forgotten: comparisons heal what was lost.
type spread struct {
	group   *group
	seq     uint64
	flights []*flight // The batches that are not answered by all, oldest first.
	armed   bool
	more    bool // What waits is sent when a replica has answered.
}

// flight is a batch of deltas on its way.
type flight struct {
	seq     uint64
	sent    machine.Instant
	keys    map[string]mark    // Up to which update of each key the batch goes.
	to      map[ReplicaID]bool // Who has not answered yet.
	more    bool               // The batch has left changes behind for the next one.
	taken   map[ReplicaID]bool
	not     map[ReplicaID]map[string]bool // The keys that a replica did not take, by replica.
	stale   map[ReplicaID]bool            // Who has refused the whole batch.
	waiting []*op
}

// mark is the last update of a change.
type mark struct {
	origin crdt.Origin
	to     uint64
}

// has reports whether the batch carries what an operation has written.
func (f *flight) has(o *op) bool {
	m, ok := f.keys[o.key]
	return ok && o.makes() && m.origin == o.made.Origin && m.to >= o.made.To
}

// flightsAtOnce is how many batches that operations wait for may be on their way before
// the next one waits for an answer: under load, batches grow by themselves.
const flightsAtOnce = 2

func newSpread(g *group) spread { return spread{group: g} }

// soon makes sure that changes are sent within the interval.
func (s *spread) soon() {
	if !s.armed {
		s.armed = true
		s.group.m.arm(spreadTimer{s.group.index}, s.group.m.cfg.Timing.Spread)
	}
}

// due sends what waits.
func (s *spread) due() {
	s.armed = false
	s.flush(false)
}

// confirm has the changes confirmed for which operations stand in line: at once, or with the
// next batch when enough of them are on their way.
func (s *spread) confirm() {
	if len(s.waited()) < flightsAtOnce {
		s.flush(false)
	} else {
		s.soonest()
	}
}

// waited returns the batches for which operations wait.
func (s *spread) waited() []*flight {
	var all []*flight
	for _, f := range s.flights {
		if len(f.waiting) > 0 && len(f.taken) == 0 {
			all = append(all, f)
		}
	}
	return all
}

// soonest makes sure that changes are sent soon, if no answer comes before.
func (s *spread) soonest() {
	s.armed = true
	s.group.m.arm(spreadTimer{s.group.index}, s.group.m.cfg.Timing.Spread/20)
}

// board has an operation wait for a batch.
func (s *spread) board(f *flight, o *op) {
	o.flight = f.seq
	f.waiting = append(f.waiting, o)
	for _, r := range s.group.sortedIDs(f.taken) {
		s.credit(f, o, r)
	}
}

// credit counts the answer of a replica for an operation.
func (s *spread) credit(f *flight, o *op, r ReplicaID) {
	if !f.not[r][o.key] {
		s.group.ops.held(o, r)
	}
}

// flush sends what waits, and lets the operations board that wait for it. Of more than
// a few batches can carry, the rest waits until a replica has taken one of them: otherwise a
// burst of changes would stand in the lanes before everything else, and what they have no
// room for would be lost. With everything, nothing waits.
func (s *spread) flush(everything bool) {
	g := s.group
	if !g.holds() {
		return
	}
	for s.more = false; !s.more; {
		if !everything && s.full() {
			s.more = true
			s.soon() // For the case that no replica answers.
			break
		}
		changes := g.table.Pending(g.m.cfg.Bounds.MessageBytes)
		if len(changes) == 0 {
			break
		}
		s.send(changes)
	}
	g.ops.board(s.more)
}

// full reports whether as many batches are on their way that have left something behind as
// may be before any replica has taken one. A batch to nobody who is there holds nothing up.
func (s *spread) full() bool {
	n := 0
	for _, f := range s.flights {
		if f.more && len(f.taken) == 0 && slices.ContainsFunc(s.group.sortedIDs(f.to), s.group.present) {
			n++
		}
	}
	return n >= flightsAtOnce
}

// rest sends what waits before another register is adopted, since afterwards it would have to
// say another generation, and forgets the batches that are on their way.
func (s *spread) rest() {
	if s.group.reg != nil {
		s.flush(true)
	}
	// The numbers of updates begin anew for a key that is swept: a batch of before says
	// nothing about them.
	for _, f := range s.flights {
		s.group.lags.unanswered(f)
	}
	s.flights = nil
}

// send sends one batch.
func (s *spread) send(changes []table.Change) {
	g := s.group
	f := s.flight()
	f.more = g.table.Unspread() > 0
	for _, c := range changes {
		f.keys[c.Key] = mark{c.Origin, c.To}
		g.lags.took(c.Key, f.keys[c.Key])
	}
	for _, p := range g.sorted() {
		part := changes
		if !g.reg.In(p.id) {
			continue
		}
		if g.cfg.Copies > 0 {
			part = slices.DeleteFunc(slices.Clone(changes), func(c table.Change) bool { return !g.views.bucket(table.BucketOf(c.Key)).has(p.id) })
		}
		if len(part) > 0 {
			f.to[p.id] = true
			g.send(p, Deltas{Seq: f.seq, Stamp: g.gen(), Changes: part})
		}
	}
	g.m.counts.Batches++
	s.keep(f)
}

// flight returns a batch of which nothing is known yet.
func (s *spread) flight() *flight {
	s.seq++
	return &flight{seq: s.seq, sent: s.group.m.now.Mono, keys: map[string]mark{}, to: map[ReplicaID]bool{}, taken: map[ReplicaID]bool{}, not: map[ReplicaID]map[string]bool{}, stale: map[ReplicaID]bool{}}
}

// keep keeps a batch until it is answered.
func (s *spread) keep(f *flight) {
	if s.flights = append(s.flights, f); len(s.flights) > s.group.m.cfg.Bounds.Flights {
		s.group.lags.unanswered(s.flights[0])
		s.flights = slices.Delete(s.flights, 0, 1)
	}
}

// resend sends the change of an operation, which this replica has dropped, to the homes that are not known to have it.
func (s *spread) resend(o *op) {
	g := s.group
	f := s.flight()
	f.keys[o.key] = mark{o.made.Origin, o.made.To}
	for _, p := range g.ops.targets(o) {
		if !o.stored[p.id] {
			f.to[p.id] = true
			g.send(p, Deltas{Seq: f.seq, Stamp: o.stamp, Changes: []table.Change{o.made}})
		}
	}
	if len(f.to) > 0 {
		s.keep(f)
		s.board(f, o)
	}
}

// answered notes that a replica has taken a batch, or what of it.
func (s *spread) answered(p *peer, b DeltasTaken) {
	g := s.group
	at := slices.IndexFunc(s.flights, func(f *flight) bool { return f.seq == b.Seq })
	s.fill(p, b.Gaps)
	if at < 0 || !s.flights[at].to[p.id] {
		return
	}
	f := s.flights[at]
	delete(f.to, p.id)
	f.not[p.id] = map[string]bool{}
	f.lacks(p.id, b.Gaps)
	deleted, refused := f.lacks(p.id, b.Deleted), map[string]string{}
	for _, r := range slices.Backward(b.Refusals) {
		f.lacks(p.id, []string{r.Key})
		refused[r.Key] = r.Reason
	}
	for _, o := range slices.Clone(f.waiting) {
		if deleted[o.key] {
			g.ops.dead(o)
		}
	}
	for _, o := range slices.Clone(f.waiting) {
		if reason, is := refused[o.key]; is {
			g.ops.refuse(o, p, reason)
		}
	}
	if !b.Stale {
		f.taken[p.id] = true
		g.lags.answered(p.id, f)
		for _, o := range f.waiting {
			s.credit(f, o, p.id)
		}
	}
	if len(f.to) == 0 {
		s.flights = slices.Delete(s.flights, at, at+1)
	}
	if s.more || len(s.waited()) < flightsAtOnce && g.ops.boarding() {
		s.flush(false)
	}
}

// lacks notes that a replica did not take some keys of a batch, and returns those that the batch has.
func (f *flight) lacks(r ReplicaID, keys []string) map[string]bool {
	of := map[string]bool{}
	for _, key := range keys {
		if _, carried := f.keys[key]; carried {
			of[key], f.not[r][key] = true, true
		}
	}
	return of
}

// fill sends the whole entries of keys to a replica that lacks an earlier change, as far as it
// is a home of them.
func (s *spread) fill(p *peer, keys []string) {
	g := s.group
	var whole []table.Entry
	for _, key := range keys {
		if e, ok := g.table.Get(key); ok && g.home(p.id, key) {
			whole = append(whole, e)
		}
	}
	g.give(p, whole)
}

// give sends entries to a replica, each key once, in messages of a bounded size.
func (g *group) give(p *peer, entries []table.Entry) {
	given := make(map[string]bool, len(entries))
	entries = slices.DeleteFunc(entries, func(e table.Entry) bool {
		again := given[e.Key]
		given[e.Key] = true
		return again
	})
	for part := range chunks(entries, g.m.cfg.Bounds.MessageBytes) {
		g.send(p, Put{Stamp: g.gen(), Entries: part})
	}
}

// tick forgets batches that were not answered.
func (s *spread) tick() {
	now := s.group.m.now.Mono
	s.flights = slices.DeleteFunc(s.flights, func(f *flight) bool {
		late := now.Sub(f.sent) > s.group.m.cfg.Timing.Patient
		if late {
			s.group.lags.unanswered(f)
		}
		return late
	})
}

// taken takes in a batch of another replica.
func (s *spread) taken(p *peer, b Deltas) {
	g := s.group
	answer := DeltasTaken{Seq: b.Seq}
	if !g.holds() || b.Stamp < g.reg.fence() {
		g.m.counts.Stale++
		answer.Stale = true
		g.send(p, answer)
		return
	}
	for _, c := range b.Changes {
		if !g.home(g.self, c.Key) {
			g.m.counts.Foreign++
			answer.Stale = true
			continue
		}
		outcome, err := g.table.Apply(c)
		switch {
		case outcome == table.Gap:
			g.m.counts.Gaps++
			answer.Gaps = append(answer.Gaps, c.Key)
		case err != nil || outcome == table.Refused:
			g.m.counts.Refused++
			answer.Refusals = append(answer.Refusals, Refusal{Key: c.Key, Reason: reason(err)})
		case outcome == table.Known && g.deleted(c.Key):
			answer.Deleted = append(answer.Deleted, c.Key)
		default:
			g.m.counts.Changes++
			if outcome == table.Applied {
				g.lags.took(c.Key, mark{c.Origin, c.To})
			}
		}
	}
	g.send(p, answer)
	g.spread.fill(p, answer.Deleted)
}

// home reports whether a replica is a home of a key.
func (k *known) home(id ReplicaID, key string) bool {
	return k.reg != nil && k.views.bucket(table.BucketOf(key)).has(id)
}

// deleted reports whether a tombstone stands for a key.
func (k *known) deleted(key string) bool {
	e, ok := k.table.Get(key)
	return ok && e.State == table.Deleted
}

// reason is the text of an error, for a message.
func reason(err error) string {
	if err == nil {
		return "refused"
	}
	text := err.Error()
	return text[:min(len(text), 200)]
}

// sortedIDs returns the replicas of a set that is kept as a map, sorted.
func (g *group) sortedIDs(of map[ReplicaID]bool) []ReplicaID {
	all := make([]ReplicaID, 0, len(of))
	for id := range of { //quorate:unordered sorted below
		all = append(all, id)
	}
	slices.Sort(all)
	return all
}
