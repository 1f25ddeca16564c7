// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// Operations: how they begin (write, remove, read), how answers are counted (heldBy, answer), how they go on when
// another register is adopted or this replica has dropped what they store (adopted, goOn), when they are complete
// (finishIfComplete), and how they end (finish). Then the side that answers the operations of other nodes (put, ask).
//
// A change has an origin and a number, by which a replica that is sent it twice takes it once. So when this replica
// drops the change of a write, the operation keeps it, and sends that same change to the homes ([propagation.resend],
// [ops.restore]): a new change would count twice at a replica that already has the first one.

// ops are the operations of this node that wait for replicas.
type ops struct {
	known       *known
	out         *sender
	lags        *lags
	propagation *propagation
	remote      *remoteUpdates
	majorities  *majorities

	open map[OpID]*op
}

// stage says what an operation waits for.
type stage uint8

const (
	asking  stage = iota + 1 // A read waits for answers.
	storing                  // A write, or a read that writes back, waits for replicas that hold it.
)

// op is one operation.
type op struct {
	id     OpID
	key    string
	bucket int
	level  Level
	stage  stage
	read   bool
	needs  ReplicaID // For a read: a home whose answer it waits for whatever the level is, 0 for none.
	began  machine.Instant
	until  machine.Instant
	done   bool            // It has ended.
	asked  machine.Instant // When the replicas were asked last.
	flight uint64          // The batch that carries the change, 0 when whole entries are sent.
	gen    uint64          // The generation by which answers to a read count.
	made   table.Change    // For a write: the change that is to be confirmed.
	stamp  uint64          // The generation in which the change or the tombstone was made,
	turn   uint32          // and the turn of its lineage.
	ends   Verdict         // The verdict that follows from a sweep, 0 for none.
	marked bool            // For a delete: a tombstone of the key was marked for a sweep before the delete began,
	fell   bool            // and the sweep has dropped it.

	entry    table.Entry            // What is to be stored, or was read so far.
	exists   bool                   // entry is set: for a read, some replica holds the key.
	own      answered               // For a read: what this replica held when the read began,
	base     uint64                 // and the hash of that.
	answers  map[ReplicaID]answered // For a read.
	stored   map[ReplicaID]bool     // The replicas that hold entry, or more.
	refusals []NodeRefusal          // For the caller: the first refusal of each node.
	refusers map[ReplicaID]bool     // The replicas that have refused entry and have not taken it since.
}

// answered is what a replica answered to a read.
type answered struct {
	entry  table.Entry
	exists bool
}

// begin begins an operation, or refuses it when too many wait, and returns nil.
func (s *ops) begin(id OpID, key string, level Level, limit time.Duration) *op {
	k := s.known
	if len(s.open) >= k.m.cfg.Bounds.Operations {
		if d := (Done{Op: id, Verdict: Overloaded}); !s.remote.answerServed(d) {
			k.m.out.Add(d)
		}
		return nil
	}
	o := &op{
		id: id, key: key, bucket: table.BucketOf(key), level: level, began: k.m.now.Mono, asked: k.m.now.Mono, until: k.m.now.Mono.Add(limit),
		gen: k.gen(), answers: map[ReplicaID]answered{}, stored: map[ReplicaID]bool{}, refusers: map[ReplicaID]bool{},
	}
	if o.stamp = o.gen; k.reg != nil {
		o.turn = k.reg.Lineage.Turn
	}
	s.open[id] = o
	return o
}

// write begins to have a change confirmed.
func (s *ops) write(in Write) {
	o := s.begin(in.Op, in.Change.Key, in.Level, in.Limit)
	if o == nil {
		return
	}
	o.stage, o.made = storing, in.Change
	o.entry, o.exists = s.known.table.Get(o.key)
	if !o.holds(s.known) {
		o.stamp, o.turn = in.Stamp, in.Turn
		s.goOn(o, func(ReplicaID) bool { return false })
		return
	}
	s.propagation.unsent = append(s.propagation.unsent, o)
	s.heldHere(o)
	if !o.done {
		s.carry(s.propagation.confirm())
	} else {
		s.propagation.soon() // Confirmed by this replica alone: the others are sent it nevertheless.
	}
}

// remove begins a delete.
func (s *ops) remove(in Delete) {
	k := s.known
	if !k.home(k.self, in.Key) && in.Op < servedFrom {
		s.remote.remove(in)
		return
	}
	o := s.begin(in.Op, in.Key, in.Level, in.Limit)
	if o == nil {
		return
	}
	o.marked = k.table.Marked(in.Key, k.gen())
	if !s.putTombstone(o) {
		return
	}
	s.heldHere(o)
	s.askMissing(o)
}

// read begins a read.
func (s *ops) read(in Read) {
	o := s.begin(in.Op, in.Key, in.Level, in.Limit)
	if o == nil {
		return
	}
	o.read, o.stage = true, asking
	if in.Own {
		o.needs = s.remote.lastHome(in.Key)
	}
	s.restart(o)
}

// restart begins a read again, and forgets all answers.
func (s *ops) restart(o *op) {
	k := s.known
	o.stage, o.gen = asking, k.gen()
	clear(o.answers)
	clear(o.stored)
	clear(o.refusers)
	o.entry, o.exists = k.table.Get(o.key)
	if o.base = 0; o.exists {
		o.base = table.HashOfEntry(o.entry)
	}
	o.own = answered{o.entry, o.exists}
	if k.holds() && k.views.bucket(o.bucket).has(k.self) && !k.apart() {
		o.answers[k.self] = o.own
	}
	s.askMissing(o)
	s.finishIfComplete(o)
}

// targets returns the replicas that an operation asks: the homes of its bucket in every set
// that counts.
func (s *ops) targets(o *op) []*peer {
	k := s.known
	if k.reg == nil {
		return nil
	}
	v := k.views.bucket(o.bucket)
	return slices.DeleteFunc(k.sorted(), func(p *peer) bool { return p.id == k.self || !v.has(p.id) })
}

// asks reports whether a replica is one of those that an operation asks.
func (o *op) asks(k *known, p *peer) bool {
	return k.reg != nil && k.views.bucket(o.bucket).has(p.id)
}

// askMissing asks the replicas that have not answered yet: for what they hold, or to store what the operation stores.
func (s *ops) askMissing(o *op) {
	k := s.known
	o.asked = k.m.now.Mono
	if o.stage == storing && k.deleted(o.key) && !o.deletes() {
		s.keyDeleted(o)
		return
	}
	stamp := k.gen()
	switch {
	case o.stage == asking || o.read:
	case o.holds(s.known) || s.restore(o):
		if !k.apart() {
			o.stored[k.self] = true
		}
	case !o.mayRestore(s.known):
		return
	case o.makes():
		s.out.post(s.propagation.resend(o, s.targets(o))...)
		return
	default:
		stamp = o.stamp
	}
	for _, p := range s.targets(o) {
		_, has := o.answers[p.id]
		switch {
		case o.stage == asking && !has:
			s.out.send(p, Ask{Op: o.id, Key: o.key, Hash: o.base})
		case o.stage == storing && !o.stored[p.id]:
			s.out.send(p, Put{Op: o.id, Stamp: stamp, Entries: []table.Entry{s.payload(o)}})
		}
	}
}

// payload returns the entry that replicas are to store: that of this replica, if it contains what the operation stores.
// A read nevertheless returns only what it has found.
func (s *ops) payload(o *op) table.Entry {
	if o.holds(s.known) {
		own, _ := s.known.table.Get(o.key)
		return own
	}
	return o.entry
}

// deletes reports whether an operation stores a tombstone.
func (o *op) deletes() bool { return o.stage == storing && o.entry.State == table.Deleted }

// makes reports whether an operation is a write that has changed something.
func (o *op) makes() bool { return o.made.From < o.made.To }

// holds reports whether this replica holds what an operation has to store. A change is looked for by its number, and
// not by the entry of then, of which sweeps may have folded other parts since.
func (o *op) holds(k *known) bool {
	own, ok := k.table.Get(o.key)
	if !ok || !o.makes() {
		return ok && o.covered(own)
	}
	return max(own.Versions.Of(o.made.Origin), own.Floor.Of(o.made.Origin)) >= o.made.To
}

// mayRestore reports whether what an operation has kept may still be taken in: no sweep and no accepted loss came
// since.
func (o *op) mayRestore(k *known) bool {
	reg := k.reg
	return reg != nil && o.turn == reg.Lineage.Turn && o.stamp >= reg.fence()
}

// restore merges what an operation has kept into the table of this replica, if that has caught up, and reports whether
// it could.
func (s *ops) restore(o *op) bool {
	k := s.known
	if !o.mayRestore(s.known) || !k.caught || k.apart() || !k.home(k.self, o.key) {
		return false
	}
	var outcome table.Outcome
	var err error
	if o.makes() {
		outcome, err = k.table.Apply(o.made)
	} else {
		outcome, err = k.table.Join(o.entry)
	}
	return err == nil && (outcome == table.Applied || outcome == table.Known)
}

// covered reports whether an entry contains everything that the operation has to store.
func (o *op) covered(by table.Entry) bool {
	joined, err := table.Merge(by, o.entry)
	return err == nil && table.HashOfEntry(joined) == table.HashOfEntry(by)
}

// carry sends messages, and notes what has become of the changes of operations.
func (s *ops) carry(out []peerMessage, notices []notice) {
	if len(out) > 0 {
		s.out.post(out...)
	}
	for _, n := range notices {
		s.note(n)
	}
}

// note notes what has become of the change of an operation.
func (s *ops) note(n notice) {
	switch n.outcome {
	case changeUnsent:
		s.askMissing(n.o)
	case changeHeld:
		s.heldBy(n.o, n.of)
	case changeDeleted:
		s.keyDeleted(n.o)
	case changeRefused:
		s.refuse(n.o, n.of, n.node, n.reason)
	}
}

// heldBy notes that a replica holds what an operation has to store.
func (s *ops) heldBy(o *op, by ReplicaID) {
	if !o.done && o.stage == storing {
		o.stored[by] = true
		delete(o.refusers, by)
		s.finishIfComplete(o)
	}
}

// heldHere notes that this replica holds what an operation has to store, if it counts.
func (s *ops) heldHere(o *op) {
	if !s.known.apart() || o.level.Name == Local {
		s.heldBy(o, s.known.self)
	}
}

// rejoined counts this replica, which did not count before, for the operations that wait.
func (s *ops) rejoined() {
	for _, o := range s.sorted() {
		if o.stage == asking {
			s.restart(o)
		} else if s.stillHolds(o) && o.holds(s.known) {
			s.heldBy(o, s.known.self)
		}
	}
}

// refuse notes that a replica has refused a change.
func (s *ops) refuse(o *op, by ReplicaID, node gossip.NodeID, reason string) {
	if o.done || slices.ContainsFunc(o.refusals, func(r NodeRefusal) bool { return r.Node == node }) {
		return
	}
	o.refusals = append(o.refusals, NodeRefusal{Node: node, Reason: reason})
	if !o.stored[by] {
		o.refusers[by] = true
	}
	s.finishIfComplete(o)
}

// answer counts an answer to a read. One that was given in another generation does not count: it is asked for again.
func (s *ops) answer(p *peer, gen uint64, b Answer) {
	o := s.open[b.Op]
	if o == nil || o.stage != asking || b.Away || !o.asks(s.known, p) {
		return
	}
	k := s.known
	if !counts(gen, k.gen()) || !counts(gen, o.gen) {
		return // Adopting the generation has asked again, or the tick will.
	}
	a := answered{}
	switch {
	case b.Same && b.Hash != o.base:
		return
	case b.Same:
		a.entry, a.exists = o.own.entry, o.own.exists
	case b.Entry != nil:
		a.entry, a.exists = *b.Entry, true
	}
	o.answers[p.id] = a
	s.finishIfComplete(o)
}

// adopted goes on with every operation by another register. With next, its generation is the one after that of the
// register that was known before.
func (s *ops) adopted(next bool) {
	reg := s.known.reg
	for _, o := range s.sorted() {
		reset := reg.resetSince(o.bucket, o.gen)
		if o.stage == asking || o.read && (reset || o.turn != reg.Lineage.Turn) {
			o.turn = reg.Lineage.Turn
			s.restart(o)
			continue
		}
		o.gen = reg.Gen
		s.goOn(o, func(id ReplicaID) bool {
			return !reset && confirms(s.known.views.bucket(o.bucket).has(id), next)
		})
	}
}

// goOn goes on with an operation that stores something. What other replicas have confirmed still counts for those that
// confirmed names, and is asked for again from the rest.
func (s *ops) goOn(o *op, confirmed func(ReplicaID) bool) {
	if !s.stillHolds(o) {
		return
	}
	o.flight = 0
	maps.DeleteFunc(o.stored, func(id ReplicaID, _ bool) bool { return id != s.known.self && !confirmed(id) })
	s.askMissing(o)
	s.finishIfComplete(o)
}

// stillHolds looks whether this replica still holds what an operation has to store, and reports whether the operation
// goes on. A write or a delete goes on if the replica has dropped it, since the operation has kept it; a write that has
// changed nothing has nothing to keep, and ends as lost, since it can be made again without harm; a read begins again.
func (s *ops) stillHolds(o *op) bool {
	own, ok := s.known.table.Get(o.key)
	switch {
	case o.fell:
		return s.redoDelete(o)
	case o.ends != 0:
		s.finish(o, o.ends)
		return false
	case ok && own.State == table.Deleted && !o.deletes():
		s.keyDeleted(o)
		return false
	case o.holds(s.known):
		return true
	case o.read:
		s.restart(o)
		return false
	case !o.makes() && !o.deletes():
		s.finish(o, Lost)
		return false
	}
	delete(o.stored, s.known.self)
	return true
}

// sweeping notes what becomes of operations by a sweep that is about to drop the marked tombstones. All replicas that
// count held those at one time, after this replica had marked them: so a delete that began before that is confirmed,
// while one that began afterwards has to be made again.
func (s *ops) sweeping(r *Register) {
	for _, o := range s.sorted() {
		if o.read || o.stage != storing || !s.known.table.Marked(o.key, r.Swept-1) {
			continue
		}
		switch own, _ := s.known.table.Get(o.key); {
		case own.State == table.Deleted && !o.deletes():
			o.ends = WasDeleted
		case o.marked:
			o.fell = true
		case o.holds(s.known):
			o.ends = Confirmed
		}
	}
}

// transferEnded merges what operations have kept into the table of this replica, which has caught up.
func (s *ops) transferEnded() {
	for _, o := range s.sorted() {
		if o.stage == storing && !o.read && !o.stored[s.known.self] {
			s.askMissing(o)
			s.finishIfComplete(o)
		}
	}
}

// restartsRaised forgets what other replicas have acknowledged for operations that are not confirmed yet, and asks for
// it again: a replica may have lost in a crash what it acknowledged.
func (s *ops) restartsRaised() {
	for _, o := range s.sorted() {
		if o.stage == asking {
			s.restart(o)
			continue
		}
		s.goOn(o, func(ReplicaID) bool { return false })
	}
}

// recount looks at all operations again: a set of replicas counts no more.
func (s *ops) recount() {
	for _, o := range s.sorted() {
		s.finishIfComplete(o)
	}
}

// sorted returns the operations in the order in which they began.
func (s *ops) sorted() []*op {
	return slices.SortedFunc(maps.Values(s.open), func(a, b *op) int { return cmp.Compare(a.id, b.id) })
}

// finishIfComplete ends an operation that is complete, or cannot become so since too many replicas have refused it. A
// read that has enough answers first joins them.
func (s *ops) finishIfComplete(o *op) {
	k := s.known
	if k.reg == nil || o.done {
		return
	}
	v := k.views.bucket(o.bucket)
	if o.stage == asking {
		awaits := v.has(o.needs) && k.present(o.needs) && !k.isApart(o.needs) && !o.has(o.needs)
		if awaits || !o.level.reads(v, o.hosting(s.known, o.has)) {
			return
		}
		s.join(o)
		if o.done {
			return
		}
	}
	switch {
	case o.complete(s.known, v, o.hosting(s.known, o.agrees)):
		s.finish(o, Confirmed)
	case len(o.refusers) > 0 && !o.complete(s.known, v, func(id ReplicaID) bool { return !o.refusers[id] }):
		s.finish(o, Refused)
	}
}

// hosting returns which of some replicas count for an operation: at the levels Majority and All those whose nodes may
// host, and none while this node may not.
func (o *op) hosting(k *known, in func(ReplicaID) bool) func(ReplicaID) bool {
	if o.level.Name < Majority {
		return in
	}
	may := k.m.mayHost()
	return func(id ReplicaID) bool { return may && in(id) && k.hosts(id) }
}

// complete reports whether an operation is complete if the replicas that are in hold what it stores.
func (o *op) complete(k *known, v *view, in func(ReplicaID) bool) bool {
	reg, sealed := k.reg, k.sealed
	agreed := o.read && len(o.answers) > 0 && o.level.agreed(v, reg.Phase, sealed, in)
	return agreed || o.level.writes(v, reg.Phase, sealed, in)
}

// has reports whether a replica has answered a read.
func (o *op) has(id ReplicaID) bool {
	_, ok := o.answers[id]
	return ok
}

// agrees reports whether a replica is known to hold everything that the operation stores.
func (o *op) agrees(id ReplicaID) bool { return o.stored[id] }

// join joins the answers to a read. Replicas that have answered with less than the result are asked to store it.
func (s *ops) join(o *op) {
	k := s.known
	o.stage = storing
	o.entry, o.exists = table.Entry{}, false
	for _, id := range o.ids() {
		a := o.answers[id]
		if !a.exists {
			continue
		}
		if _, unreadable := a.entry.Value.(table.Unknown); unreadable {
			// Nothing can be joined with it or written back: the caller is given the reason.
			o.entry, o.exists = a.entry, true
			s.finish(o, Confirmed)
			return
		}
		joined, err := a.entry, error(nil)
		if o.exists {
			joined, err = table.Merge(o.entry, a.entry)
		}
		if err != nil {
			s.report(o, Done{Op: o.id, Verdict: Refused, Err: err})
			return
		}
		o.entry, o.exists = joined, true
	}
	if !o.exists { // Nothing has to be written back, whichever sets count.
		s.finish(o, Confirmed)
		return
	}
	if v := k.views.bucket(o.bucket); k.holds() && v.has(k.self) {
		if outcome, err := k.table.Join(o.entry); err == nil && outcome != table.Refused && !k.apart() {
			o.stored[k.self] = true
			if outcome == table.Applied {
				s.lags.receivedEntry(o.entry)
			}
		}
	}
	hash := table.HashOfEntry(o.entry)
	for _, id := range o.ids() {
		if a := o.answers[id]; a.exists && table.HashOfEntry(a.entry) == hash {
			o.stored[id] = true
		}
	}
	if !o.level.reads(k.views.bucket(o.bucket), o.agrees) {
		k.m.counts.Repairs++
		s.askMissing(o)
	} else if phase, sealed := k.views.bucket(o.bucket).phaseIn(k.reg.Phase, k.sealed); phase == PhaseJoint || !sealed {
		s.askMissing(o)
	}
}

// ids returns the replicas that have answered a read, sorted.
func (o *op) ids() []ReplicaID {
	return slices.Sorted(maps.Keys(o.answers))
}

// cancel ends an operation, and says how far it came.
func (s *ops) cancel(id OpID) {
	if o := s.open[id]; o != nil {
		s.finish(o, s.overdue(o))
	}
}

// end ends all operations.
func (s *ops) end() {
	for _, o := range s.sorted() {
		s.finish(o, Gone)
	}
}

// tick asks again, and ends operations whose time is over.
func (s *ops) tick() {
	k := s.known
	now := k.m.now.Mono
	for _, o := range s.sorted() {
		switch {
		case now >= o.until:
			s.finish(o, s.overdue(o))
		case o.lost(s.known):
			s.finish(o, HomesLost)
		case !k.cfg.Durable && !s.majorities.goesOn() && o.hopeless(s.known):
			s.finish(o, NoQuorum)
		case now.Sub(o.asked) >= k.m.cfg.Timing.Retry:
			s.askMissing(o)
			s.finishIfComplete(o)
		}
	}
}

// overdue returns the verdict on an operation that was not confirmed in time.
func (s *ops) overdue(o *op) Verdict {
	switch {
	case len(o.refusals) > 0:
		return Refused
	case o.lost(s.known):
		return HomesLost
	case o.hopeless(s.known):
		return NoQuorum
	default:
		return Unconfirmed
	}
}

// hopeless reports whether so many replicas are gone that no winning part of a set is left. As long as the replica of
// some member is not known, it may be one of those that seem to be gone.
func (o *op) hopeless(k *known) bool {
	return o.quorum(k) && !k.unnamed() && !k.views.bucket(o.bucket).current.Wins(func(id ReplicaID) bool { return k.there(id) && !k.isApart(id) })
}

// quorum reports whether an operation waits for a majority, or for all, of known sets.
func (o *op) quorum(k *known) bool {
	return k.reg != nil && (o.level.Name == Majority || o.level.Name == All)
}

// lost reports whether the bucket of an operation is held back, and the homes for which it waits are gone.
func (o *op) lost(k *known) bool {
	return o.quorum(k) && k.lost(k.views.bucket(o.bucket))
}

// finish ends an operation with a verdict.
func (s *ops) finish(o *op, v Verdict) {
	d := Done{Op: o.id, Verdict: v, Refusals: o.refusals}
	if o.read && v == Confirmed && o.exists {
		e := o.entry
		d.Entry = &e
	}
	s.report(o, d)
}

// report ends an operation with d, to which it adds which replicas have answered and which have not.
func (s *ops) report(o *op, d Done) {
	k := s.known
	delete(s.open, o.id)
	o.done = true
	in := func(id ReplicaID) bool { return o.stored[id] || o.has(id) }
	if in(k.self) {
		d.Answered = append(d.Answered, k.m.cfg.Self)
	}
	for _, p := range k.sorted() {
		if in(p.id) {
			d.Answered = append(d.Answered, p.node)
		}
	}
	slices.SortFunc(d.Answered, gossip.NodeID.Compare)
	if k.reg != nil {
		v := k.views.bucket(o.bucket)
		for _, r := range NewSet(slices.Concat(v.current, v.next, v.old)...) {
			if !in(r.ID) && (d.Verdict != HomesLost || !k.there(r.ID)) {
				d.Missing = append(d.Missing, r.ID)
			}
		}
	}
	d.Since = k.m.now.Mono.Sub(o.began)
	if d.Verdict == NoQuorum {
		d.Recovery, _ = s.majorities.recovery()
	}
	if !s.remote.answerServed(d) {
		s.out.done(d)
	}
}

// put takes in whole entries of another replica, and returns the answer.
func (s *ops) put(b Put) PutTaken {
	k := s.known
	answer := PutTaken{Op: b.Op}
	if !k.holds() || b.Stamp < k.reg.fence() {
		k.m.counts.Stale++
		answer.Stale = true
	} else {
		for _, e := range b.Entries {
			if !k.home(k.self, e.Key) {
				k.m.counts.Foreign++
				answer.Stale = true
				continue
			}
			outcome, err := k.table.Join(e)
			switch {
			case err != nil || outcome == table.Refused:
				k.m.counts.Refused++
				answer.Refusals = append(answer.Refusals, Refusal{Key: e.Key, Reason: reason(err)})
			case outcome == table.Known && e.State != table.Deleted && k.deleted(e.Key):
				answer.Deleted = append(answer.Deleted, e.Key)
			case outcome == table.Applied:
				s.lags.receivedEntry(e)
			}
		}
	}
	return answer
}

// keyDeleted ends a write to a key that was found to be deleted, and begins a read of it again.
func (s *ops) keyDeleted(o *op) {
	switch {
	case o.done || o.stage != storing || o.entry.State == table.Deleted:
	case o.read:
		s.restart(o)
	default:
		s.finish(o, WasDeleted)
	}
}

// putTaken counts the answer to entries that were sent for an operation.
func (s *ops) putTaken(p *peer, b PutTaken) {
	o := s.open[b.Op]
	switch {
	case o == nil || b.Stale || !o.asks(s.known, p):
	case len(b.Deleted) > 0:
		s.keyDeleted(o)
	case len(b.Refusals) > 0:
		s.refuse(o, p.id, p.node, b.Refusals[0].Reason)
	default:
		s.heldBy(o, p.id)
	}
}

// ask answers a read of another node.
func (s *ops) ask(b Ask) Answer {
	k := s.known
	answer := Answer{Op: b.Op, Hash: b.Hash}
	if !k.holds() || !k.views.bucket(table.BucketOf(b.Key)).has(k.self) {
		answer.Away = true
	} else if e, ok := k.table.Get(b.Key); ok {
		if answer.Same = b.Hash != 0 && table.HashOfEntry(e) == b.Hash; !answer.Same {
			answer.Entry = &e
		}
	} else {
		answer.Same = b.Hash == 0
	}
	return answer
}
