// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"maps"
	"slices"

	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// What this node has changed goes to all other homes in batches: those that wait are one
// batch, sent when an operation waits for it or after an interval. Then the side that
// takes batches in. What is to be sent, and what operations learn of their changes, is returned.

// propagation is the part of a group that sends deltas. A batch that nobody answers is
// forgotten: comparisons heal what was lost.
type propagation struct {
	*known

	lags    *lags
	seq     uint64
	unsent  []*op     // Writes whose batch was not sent yet.
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
	untaken map[ReplicaID]map[string]bool // The keys that a replica did not take, by replica.
	stale   map[ReplicaID]bool            // Who has refused the whole batch.
	waiting []*op
}

// mark is the last update of a change.
type mark struct {
	origin crdt.Origin
	to     uint64
}

// carries reports whether the batch carries what an operation has written.
func (f *flight) carries(o *op) bool {
	m, ok := f.keys[o.key]
	return ok && o.makes() && m.origin == o.made.Origin && m.to >= o.made.To
}

// notice is what an operation learns of its change.
type notice struct {
	o       *op
	outcome changeOutcome
	of      ReplicaID     // For all but changeUnsent: the replica that has answered a batch with the change,
	node    gossip.NodeID // and for changeRefused its node,
	reason  string        // and why.
}

// changeOutcome is what became of a change.
type changeOutcome uint8

const (
	changeUnsent  changeOutcome = iota // No batch carries it: the homes are asked one by one.
	changeHeld                         // A replica holds it.
	changeDeleted                      // The key is deleted at a replica.
	changeRefused                      // A replica has refused it.
)

// flightsAtOnce is how many batches that operations wait for may be on their way before
// the next one waits for an answer: under load, batches grow by themselves.
const flightsAtOnce = 2

func newPropagation(k *known, l *lags) propagation { return propagation{known: k, lags: l} }

// soon makes sure that changes are sent within the interval.
func (s *propagation) soon() {
	if !s.armed {
		s.armed = true
		s.m.arm(spreadTimer{s.index}, s.m.cfg.Timing.Spread)
	}
}

// due sends what waits.
func (s *propagation) due() ([]peerMessage, []notice) {
	s.armed = false
	return s.flush(false)
}

// confirm has the changes confirmed for which operations stand in line: at once, or with the
// next batch when enough of them are on their way.
func (s *propagation) confirm() ([]peerMessage, []notice) {
	if len(s.awaited()) < flightsAtOnce {
		return s.flush(false)
	}
	s.soonest()
	return nil, nil
}

// awaited returns the batches for which operations wait.
func (s *propagation) awaited() []*flight {
	var all []*flight
	for _, f := range s.flights {
		if len(f.waiting) > 0 && len(f.taken) == 0 {
			all = append(all, f)
		}
	}
	return all
}

// soonest makes sure that changes are sent soon, if no answer comes before.
func (s *propagation) soonest() {
	s.armed = true
	s.m.arm(spreadTimer{s.index}, s.m.cfg.Timing.Spread/20)
}

// assign has operations wait for the batches that carry their changes. With more, some changes were not sent yet: their
// operations stay in the line.
func (s *propagation) assign() (all []notice) {
	line := s.unsent
	s.unsent = nil
	for _, o := range line {
		if o.done || o.flight != 0 {
			continue
		}
		at := len(s.flights) - 1
		for at >= 0 && !s.flights[at].carries(o) {
			at--
		}
		switch {
		case at >= 0:
			all = append(all, s.flights[at].await(o)...)
		case s.more:
			s.unsent = append(s.unsent, o)
		default:
			all = append(all, notice{o: o, outcome: changeUnsent})
		}
	}
	return all
}

// await has an operation wait for a batch.
func (f *flight) await(o *op) (all []notice) {
	o.flight = f.seq
	f.waiting = append(f.waiting, o)
	for _, r := range sortedIDs(f.taken) {
		all = f.countFor(all, o, r)
	}
	return all
}

// countFor counts the answer of a replica for an operation.
func (f *flight) countFor(all []notice, o *op, r ReplicaID) []notice {
	if f.untaken[r][o.key] {
		return all
	}
	return append(all, notice{o: o, outcome: changeHeld, of: r})
}

// flush sends what waits, and lets the operations board that wait for it. Of more than
// a few batches can carry, the rest waits until a replica has taken one of them: otherwise a
// burst of changes would stand in the lanes before everything else, and what they have no
// room for would be lost. With everything, nothing waits.
func (s *propagation) flush(everything bool) (out []peerMessage, all []notice) {
	if !s.holds() {
		return nil, nil
	}
	for s.more = false; !s.more; {
		if !everything && s.full() {
			s.more = true
			s.soon() // For the case that no replica answers.
			break
		}
		changes := s.table.Pending(s.m.cfg.Bounds.MessageBytes)
		if len(changes) == 0 {
			break
		}
		out = s.send(out, changes)
	}
	return out, s.assign()
}

// full reports whether as many batches are on their way that have left something behind as
// may be before any replica has taken one. A batch to nobody who is there holds nothing up.
func (s *propagation) full() bool {
	n := 0
	for _, f := range s.flights {
		if f.more && len(f.taken) == 0 && slices.ContainsFunc(sortedIDs(f.to), s.present) {
			n++
		}
	}
	return n >= flightsAtOnce
}

// forget forgets the batches that are on their way. The numbers of updates begin anew for a key that is swept: a batch
// of before says nothing about them.
func (s *propagation) forget() {
	for _, f := range s.flights {
		s.lags.unanswered(f)
	}
	s.flights = nil
}

// send adds the messages of one batch.
func (s *propagation) send(out []peerMessage, changes []table.Change) []peerMessage {
	f := s.flight()
	f.more = s.table.Unspread() > 0
	for _, c := range changes {
		f.keys[c.Key] = mark{c.Origin, c.To}
		s.lags.received(c.Key, f.keys[c.Key])
	}
	for _, p := range s.sorted() {
		part := changes
		if !s.reg.In(p.id) {
			continue
		}
		if s.cfg.Copies > 0 {
			part = slices.DeleteFunc(slices.Clone(changes), func(c table.Change) bool { return !s.views.bucket(table.BucketOf(c.Key)).has(p.id) })
		}
		if len(part) > 0 {
			f.to[p.id] = true
			out = append(out, peerMessage{p, Deltas{Seq: f.seq, Stamp: s.gen(), Changes: part}})
		}
	}
	s.m.counts.Batches++
	s.keep(f)
	return out
}

// flight returns a batch of which nothing is known yet.
func (s *propagation) flight() *flight {
	s.seq++
	return &flight{seq: s.seq, sent: s.m.now.Mono, keys: map[string]mark{}, to: map[ReplicaID]bool{}, taken: map[ReplicaID]bool{}, untaken: map[ReplicaID]map[string]bool{}, stale: map[ReplicaID]bool{}}
}

// keep keeps a batch until it is answered.
func (s *propagation) keep(f *flight) {
	if s.flights = append(s.flights, f); len(s.flights) > s.m.cfg.Bounds.Flights {
		s.lags.unanswered(s.flights[0])
		s.flights = slices.Delete(s.flights, 0, 1)
	}
}

// resend returns the change of an operation, which this replica has dropped, for the homes that are not known to have
// it.
func (s *propagation) resend(o *op, homes []*peer) (out []peerMessage) {
	f := s.flight()
	f.keys[o.key] = mark{o.made.Origin, o.made.To}
	for _, p := range homes {
		if !o.stored[p.id] {
			f.to[p.id] = true
			out = append(out, peerMessage{p, Deltas{Seq: f.seq, Stamp: o.stamp, Changes: []table.Change{o.made}}})
		}
	}
	if len(out) > 0 {
		s.keep(f)
		f.await(o)
	}
	return out
}

// answered notes that a replica has taken a batch, or what of it, and reports whether it was asked.
func (s *propagation) answered(p *peer, b DeltasTaken) (all []notice, asked bool) {
	at := slices.IndexFunc(s.flights, func(f *flight) bool { return f.seq == b.Seq })
	if at < 0 || !s.flights[at].to[p.id] {
		return nil, false
	}
	f := s.flights[at]
	delete(f.to, p.id)
	f.untaken[p.id] = map[string]bool{}
	f.lacks(p.id, b.Gaps)
	gone, reasons := f.lacks(p.id, b.Deleted), map[string]string{}
	for _, r := range slices.Backward(b.Refusals) {
		f.lacks(p.id, []string{r.Key})
		reasons[r.Key] = r.Reason
	}
	for _, o := range f.waiting {
		if gone[o.key] {
			all = append(all, notice{o: o, outcome: changeDeleted, of: p.id})
		}
	}
	for _, o := range f.waiting {
		if reason, is := reasons[o.key]; is {
			all = append(all, notice{o: o, outcome: changeRefused, of: p.id, node: p.node, reason: reason})
		}
	}
	if !b.Stale {
		f.taken[p.id] = true
		s.lags.answered(p.id, f)
		for _, o := range f.waiting {
			all = f.countFor(all, o, p.id)
		}
	}
	if len(f.to) == 0 {
		s.flights = slices.Delete(s.flights, at, at+1)
	}
	return all, true
}

// proceed sends what has waited for an answer.
func (s *propagation) proceed() ([]peerMessage, []notice) {
	if s.more || len(s.unsent) > 0 && len(s.awaited()) < flightsAtOnce {
		return s.flush(false)
	}
	return nil, nil
}

// lacks notes that a replica did not take some keys of a batch, and returns those that the batch has.
func (f *flight) lacks(r ReplicaID, keys []string) map[string]bool {
	of := map[string]bool{}
	for _, key := range keys {
		if _, carried := f.keys[key]; carried {
			of[key], f.untaken[r][key] = true, true
		}
	}
	return of
}

// lacked returns the whole entries of keys for a replica that lacks an earlier change, as far as it is a home of them.
func (k *known) lacked(p *peer, keys []string) []table.Entry {
	var whole []table.Entry
	for _, key := range keys {
		if e, ok := k.table.Get(key); ok && k.home(p.id, key) {
			whole = append(whole, e)
		}
	}
	return whole
}

// tick forgets batches that were not answered.
func (s *propagation) tick() {
	now := s.m.now.Mono
	s.flights = slices.DeleteFunc(s.flights, func(f *flight) bool {
		late := now.Sub(f.sent) > s.m.cfg.Timing.Patient
		if late {
			s.lags.unanswered(f)
		}
		return late
	})
}

// taken takes in a batch of another replica, and returns the answer.
func (s *propagation) taken(b Deltas) DeltasTaken {
	answer := DeltasTaken{Seq: b.Seq}
	if !s.holds() || b.Stamp < s.reg.fence() {
		s.m.counts.Stale++
		answer.Stale = true
		return answer
	}
	for _, c := range b.Changes {
		if !s.home(s.self, c.Key) {
			s.m.counts.Foreign++
			answer.Stale = true
			continue
		}
		outcome, err := s.table.Apply(c)
		switch {
		case outcome == table.Gap:
			s.m.counts.Gaps++
			answer.Gaps = append(answer.Gaps, c.Key)
		case err != nil || outcome == table.Refused:
			s.m.counts.Refused++
			answer.Refusals = append(answer.Refusals, Refusal{Key: c.Key, Reason: reason(err)})
		case outcome == table.Known && s.deleted(c.Key):
			answer.Deleted = append(answer.Deleted, c.Key)
		default:
			s.m.counts.Changes++
			if outcome == table.Applied {
				s.lags.received(c.Key, mark{c.Origin, c.To})
			}
		}
	}
	return answer
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
func sortedIDs(of map[ReplicaID]bool) []ReplicaID {
	return slices.Sorted(maps.Keys(of))
}
