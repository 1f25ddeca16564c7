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

// How the changes of this node reach the other homes: in batches of deltas, one of which is sent when an operation
// waits for it, or after an interval. Then the side that takes batches in. What is to be sent, and what became of the
// changes of operations, is returned.

// propagation is the part of a group that sends deltas. A batch that is not answered is forgotten: passes repair what
// was lost.
type propagation struct {
	*known

	lags    *lags
	seq     uint64
	unsent  []*op     // Writes whose changes are in no batch yet.
	flights []*flight // The batches that are not answered by all, oldest first.
	armed   bool      // The timer for the next batch is armed.
	more    bool      // Changes wait until a replica has answered a batch.
}

// flight is a batch of deltas that was sent, and is not answered by all replicas.
type flight struct {
	seq     uint64
	sent    machine.Instant
	keys    map[string]mark               // The last update of each key in the batch.
	to      map[ReplicaID]bool            // The replicas that have not answered yet.
	more    bool                          // There were more changes than the batch could carry.
	taken   map[ReplicaID]bool            // The replicas that have taken the batch, perhaps but for some keys:
	untaken map[ReplicaID]map[string]bool // the keys that a replica did not take, by replica.
	stale   map[ReplicaID]bool            // The replicas that have refused the whole batch.
	waiting []*op                         // The operations that wait for answers to the batch.
}

// mark names an update: the one with a number among those of an origin.
type mark struct {
	origin crdt.Origin
	to     uint64
}

// carries reports whether the batch carries what an operation has written.
func (f *flight) carries(o *op) bool {
	m, ok := f.keys[o.key]
	return ok && o.makes() && m.origin == o.made.Origin && m.to >= o.made.To
}

// notice says what became of the change of an operation.
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
	changeUnsent  changeOutcome = iota // No batch carries it: the operation sends it to the homes itself.
	changeHeld                         // A replica holds it.
	changeDeleted                      // The key is deleted at a replica.
	changeRefused                      // A replica has refused it.
)

// flightsAtOnce is how many batches for which operations wait may be unanswered before the next one waits for an
// answer: so under load, batches carry more.
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

// confirm sends the changes of the operations in unsent: at once or, when enough batches are unanswered, soon.
func (s *propagation) confirm() ([]peerMessage, []notice) {
	if len(s.awaited()) < flightsAtOnce {
		return s.flush(false)
	}
	s.soonest()
	return nil, nil
}

// awaited returns the batches for which operations wait, and that no replica has taken yet.
func (s *propagation) awaited() []*flight {
	var all []*flight
	for _, f := range s.flights {
		if len(f.waiting) > 0 && len(f.taken) == 0 {
			all = append(all, f)
		}
	}
	return all
}

// soonest makes sure that changes are sent after a small part of the interval, if no answer has them sent before.
func (s *propagation) soonest() {
	s.armed = true
	s.m.arm(spreadTimer{s.index}, s.m.cfg.Timing.Spread/20)
}

// assign has the operations in unsent wait for the batches that carry their changes. While s.more says that some
// changes were not sent yet, operations whose changes are in no batch stay in unsent.
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

// await has an operation wait for the answers to a batch, and returns those that have come.
func (f *flight) await(o *op) (all []notice) {
	o.flight = f.seq
	f.waiting = append(f.waiting, o)
	for _, r := range sortedIDs(f.taken) {
		all = f.countFor(all, o, r)
	}
	return all
}

// countFor adds to the notices that a replica holds the change of an operation, if it has taken its key.
func (f *flight) countFor(all []notice, o *op, r ReplicaID) []notice {
	if f.untaken[r][o.key] {
		return all
	}
	return append(all, notice{o: o, outcome: changeHeld, of: r})
}

// flush sends the changes that wait, and has operations wait for their batches. If there are more than a few batches
// can carry, the rest waits until a replica has taken one of them: otherwise a burst of changes would fill the lanes,
// delay all other messages, and be lost where there is no room. With everything, the rest is sent too.
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

// full reports whether further changes have to wait: as many batches as may be have left changes for the next one, and
// no replica has taken them. A batch does not count if no replica that can be reached has to answer it.
func (s *propagation) full() bool {
	n := 0
	for _, f := range s.flights {
		if f.more && len(f.taken) == 0 && slices.ContainsFunc(sortedIDs(f.to), s.present) {
			n++
		}
	}
	return n >= flightsAtOnce
}

// forget forgets the batches that are not answered. In another generation the updates of a key that was swept are
// numbered anew, so that an answer to an earlier batch says nothing about them.
func (s *propagation) forget() {
	for _, f := range s.flights {
		s.lags.unanswered(f)
	}
	s.flights = nil
}

// send makes a batch of changes, and adds its messages to out.
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

// flight returns a new batch, without changes.
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

// resend makes a batch of the change of an operation, which this replica has dropped, for the homes that are not known
// to have it.
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

// answered notes what a replica has taken of a batch; asked is false if it was sent no such batch, or has answered
// before.
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

// proceed sends changes that have waited for an answer, if they need not wait for another one.
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

// lacked returns the whole entries of those keys of which a peer is a home, for a peer that lacks earlier changes.
func (k *known) lacked(p *peer, keys []string) []table.Entry {
	var whole []table.Entry
	for _, key := range keys {
		if e, ok := k.table.Get(key); ok && k.home(p.id, key) {
			whole = append(whole, e)
		}
	}
	return whole
}

// tick forgets batches that were not answered for too long.
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

// deleted reports whether this replica holds a tombstone of a key.
func (k *known) deleted(key string) bool {
	e, ok := k.table.Get(key)
	return ok && e.State == table.Deleted
}

// reason returns the text of an error, cut to the length that a message may carry.
func reason(err error) string {
	if err == nil {
		return "refused"
	}
	text := err.Error()
	return text[:min(len(text), 200)]
}

// sortedIDs returns the keys of a map of replicas, sorted.
func sortedIDs(of map[ReplicaID]bool) []ReplicaID {
	return slices.Sorted(maps.Keys(of))
}
