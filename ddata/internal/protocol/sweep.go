// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"
	"time"

	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/machine"
)

// A sweep drops tombstones and retires the origins of nodes that are gone, once ALL replicas of Current have said, in
// the same generation and having caught up, that they hold the same tombstones and the same updates of those origins.
// The leader asks ([sweep.tick], [sweep.answered], [sweep.agreed]); each replica marks the tombstones that its answer
// covers ([sweep.asked]), and drops exactly those when the sweep is decided ([sweep.marked], and Sweep of the table).

// sweep is the part of a group that sweeps.
type sweep struct {
	*known

	disk *disk           // The store: marks are written before the leader is told of them.
	mark SweepMark       // What this replica has marked, to drop it with the next generation.
	late map[string]bool // The tombstones that would have been marked if they had come before.

	// While this node leads: the question, and the answers to it.
	next    machine.Instant // When the next sweep begins.
	from    int             // The bucket at which the search for idle keys goes on.
	asking  Sweep
	answers map[ReplicaID]SweepReply
	stale   bool // Another generation is needed before anything can be swept.

	// What the last answers have said of buckets that this replica does not hold.
	goneOrigins []crdt.Origin // The origins of nodes that are gone.
	newer       bool          // There are tombstones, all of them of this generation.
}

// tick asks all replicas, when it is time and there is something to sweep. A sweep is about the tombstones of earlier
// generations: hardly any are added to those, so that all replicas can come to hold the same. For tombstones of this
// generation, another one has to begin first.
func (s *sweep) tick() []peerMessage {
	now := s.m.now.Mono
	if now < s.next {
		return nil
	}
	s.next = now.Add(s.m.cfg.Timing.Sweep)
	s.stale = s.failed()
	s.noteAnswers()
	s.answers = nil
	// The homes of buckets that are held back are not asked, and must not miss a sweep.
	if s.reg == nil || s.reg.Phase == PhaseJoint || !s.sealed || len(s.reg.Held) > 0 || !s.caught || !s.reg.Current.Has(s.self) {
		s.stale = false
		return nil
	}
	s.expire()
	if !s.leads() {
		s.stale = false
		return nil
	}
	retired := s.retirable()
	count, _ := s.table.Tombstones(s.gen() - 1)
	all, _ := s.table.Tombstones(s.gen())
	switch {
	case s.stale:
	case count > 0 || len(retired) > 0 || s.cfg.Copies > 0 && !s.newer:
		return s.ask(Sweep{Gen: s.gen(), UpTo: s.gen() - 1, Retired: retired})
	case all > 0 || s.newer:
		s.stale, s.newer = true, false
	}
	return nil
}

// noteAnswers notes what the answers to the last question say of buckets that the leader does not hold itself.
func (s *sweep) noteAnswers() {
	s.goneOrigins, s.newer = nil, false
	marked := uint64(0)
	for _, a := range s.answers { //quorate:unordered sets and sums
		s.goneOrigins = append(s.goneOrigins, a.Gone...)
		s.newer = s.newer || a.Newer
		marked += a.Marked
	}
	s.newer = s.newer && marked == 0
}

// ask asks all replicas what they hold.
func (s *sweep) ask(question Sweep) (out []peerMessage) {
	s.asking = question
	s.answers = map[ReplicaID]SweepReply{s.self: s.answer(question)}
	for _, r := range s.reg.Current {
		if p := s.peers[r.ID]; p != nil && r.ID != s.self {
			out = append(out, peerMessage{p, question})
		}
	}
	return out
}

// failed reports whether all replicas have answered the last question, and do not hold the same. What they have marked
// stays marked in this generation, so that only the next one can be asked again.
func (s *sweep) failed() bool {
	if s.answers == nil || s.reg == nil || s.asking.Gen != s.gen() {
		return false
	}
	for _, r := range s.reg.Current {
		if _, ok := s.answers[r.ID]; !ok {
			return false
		}
	}
	return !s.same(func(x, y SweepReply) bool { return x.Tombs == y.Tombs }, func(x, y table.BucketSum) bool { return x.Tombs == y.Tombs })
}

// same compares the answers of all replicas: each one with that of the leader or, where replicas hold different
// buckets, those of the homes of each bucket with each other.
func (s *sweep) same(whole func(x, y SweepReply) bool, part func(x, y table.BucketSum) bool) bool {
	if s.cfg.Copies == 0 {
		own := s.answers[s.self]
		return !slices.ContainsFunc(s.reg.Current, func(r Replica) bool { return !whole(s.answers[r.ID], own) })
	}
	for bucket := range table.Buckets {
		homes := s.views.bucket(bucket).current
		first := s.answers[homes[0].ID].bucket(bucket)
		if slices.ContainsFunc(homes[1:], func(r Replica) bool { return !part(s.answers[r.ID].bucket(bucket), first) }) {
			return false
		}
	}
	return true
}

// bucket returns what a reply says of a bucket, zero for nothing.
func (b SweepReply) bucket(bucket int) table.BucketSum {
	at, ok := slices.BinarySearchFunc(b.Buckets, bucket, func(s table.BucketSum, bucket int) int { return int(s.Bucket) - bucket })
	if !ok {
		return table.BucketSum{}
	}
	return b.Buckets[at]
}

// adopted forgets the question of an earlier generation.
func (s *sweep) adopted() { s.answers, s.stale = nil, false }

// retirable returns, sorted, the origins of nodes that are gone and of which this replica or, as it has said, another
// one holds updates.
func (s *sweep) retirable() []crdt.Origin {
	all := slices.Concat(s.table.Origins(), s.goneOrigins)
	all = slices.DeleteFunc(all, func(o crdt.Origin) bool { return o == 0 || s.m.alive(o) })
	slices.Sort(all)
	return slices.Compact(all)
}

// answer marks the tombstones, and returns what this replica holds. It marks once in a generation: whoever asks again
// in that generation gets the same answer about tombstones.
func (s *sweep) answer(b Sweep) SweepReply {
	if s.mark.Gen != b.Gen {
		s.mark = SweepMark{Gen: b.Gen, UpTo: b.UpTo, Tombs: s.table.Confirm(b.Gen, b.UpTo)}
		s.late = map[string]bool{}
		s.disk.metaChanged()
	}
	veto := slices.ContainsFunc(b.Retired, s.m.alive)
	answer := SweepReply{Gen: b.Gen, Tombs: s.mark.Tombs, Origins: s.table.OriginHash(b.Retired), Veto: veto}
	if s.cfg.Copies > 0 {
		answer.Buckets, answer.Marked = s.table.Sums(b.Gen, b.Retired)
		all, _ := s.table.Tombstones(b.Gen)
		answer.Newer = uint64(all) > answer.Marked
		answer.Gone = slices.DeleteFunc(s.table.Origins(), func(o crdt.Origin) bool { return o == 0 || s.m.alive(o) })
	}
	return answer
}

// changed notes which of some changed keys have tombstones that came after the others were marked, and reports whether
// there are any. They are not dropped with the marked ones, also if this node is started again.
func (s *sweep) changed(keys []string) (some bool) {
	if s.mark.Gen == 0 || s.mark.Gen != s.gen() {
		return false
	}
	for _, key := range keys {
		if e, ok := s.table.Get(key); ok && e.State != table.Live && e.Stamp <= s.mark.UpTo && !s.table.Marked(key, s.mark.Gen) {
			s.late[key], some = true, true
		}
	}
	return some
}

// restore marks again what was marked before this node started.
func (s *sweep) restore(m SweepMark) {
	s.mark, s.late = m, map[string]bool{}
	if m.Gen == 0 {
		return
	}
	s.table.Confirm(m.Gen, m.UpTo)
	for _, key := range m.Late {
		s.late[key] = true
		s.table.Unmark(key)
	}
}

// asked answers the leader; nil: no answer, since this replica may lack something.
func (s *sweep) asked(b Sweep) (answer any) {
	if b.Gen == s.gen() && s.caught && s.reg.Current.Has(s.self) {
		return s.answer(b)
	}
	return nil
}

// answered notes an answer.
func (s *sweep) answered(p *peer, b SweepReply) {
	if s.answers != nil && b.Gen == s.gen() && b.Gen == s.asking.Gen && s.reg.Current.Has(p.id) {
		s.answers[p.id] = b
	}
}

// agreed returns what is to be swept, if all replicas have answered that they hold the same.
func (s *sweep) agreed() (tombs uint64, retired []crdt.Origin, ok bool) {
	own, asked := s.answers[s.self]
	if !asked || s.asking.Gen != s.gen() || s.mark.Gen != s.gen() || s.mark.Tombs != own.Tombs {
		return 0, nil, false
	}
	marked := uint64(0)
	for _, r := range s.reg.Current {
		theirs, ok := s.answers[r.ID]
		if !ok || theirs.Veto {
			return 0, nil, false
		}
		marked += theirs.Marked
	}
	if s.cfg.Copies > 0 && marked == 0 && len(s.asking.Retired) == 0 {
		return 0, nil, false
	}
	if !s.same(func(x, y SweepReply) bool { return x.Tombs == y.Tombs && x.Origins == y.Origins }, func(x, y table.BucketSum) bool { return x == y }) {
		return 0, nil, false
	}
	s.m.counts.Sweeps++
	s.answers = nil
	if s.cfg.Copies > 0 {
		return 0, s.asking.Retired, true // Each replica has another hash.
	}
	return own.Tombs, s.asking.Retired, true
}

// marked reports whether this replica has marked exactly the tombstones that the sweep of a register drops.
func (s *sweep) marked(r *Register) bool {
	if s.cfg.Copies > 0 {
		return s.mark.Gen+1 == r.Swept
	}
	return s.mark.Gen+1 == r.Swept && s.mark.Tombs == r.Dropped && s.table.Confirmed(s.mark.Gen, s.mark.Tombs)
}

// expire makes tombstones of keys that have not changed for longer than they may. The tombstones reach other replicas
// by passes.
func (s *sweep) expire() {
	if s.cfg.ExpireAfter <= 0 {
		return
	}
	after := uint32(s.cfg.ExpireAfter/time.Second) + 1
	if now := s.m.seconds(); now > after {
		var idle []table.Entry
		idle, s.from = s.table.Idle(now-after, s.from, idleAtOnce)
		for _, e := range idle {
			if !s.first(table.BucketOf(e.Key)) {
				continue
			}
			s.table.Expire(e.Key, e.Versions, s.gen())
		}
	}
}

// first reports whether this replica is the first home of a bucket that can be reached: that one looks for idle keys.
func (s *sweep) first(bucket int) bool {
	for _, r := range s.views.bucket(bucket).current {
		if s.present(r.ID) {
			return r.ID == s.self
		}
	}
	return false
}

// idleAtOnce is how many entries are looked at for expiry in one step.
const idleAtOnce = 50_000
