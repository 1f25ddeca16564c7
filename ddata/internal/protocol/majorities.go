// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"
	"time"

	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// The loss of majorities. First what people are told of it: since when, which replicas are missing, and what will or
// must happen ([majorities.tick]). Then how a group in memory goes on by itself when no winning part of its replicas
// can come back. A replica is gone for good, with its memory, when its node was removed and can host nothing any more.
// One of the replicas that are left takes in what the others hold, and proposes a new lineage to all of them
// ([majorities.goOn]). Every one of them has to accept, so that of two such proposals only one can succeed. Where each
// bucket has homes of its own, replicas keep what they hold, and only the buckets begin anew that have lost a winning
// part of their homes; while the group itself has majorities, its leader proposes that ([majorities.bucketsForGood]).

// majorities is the part of a group that watches whether it has majorities, and goes on without them.
type majorities struct {
	*known

	out    *sender
	passes *passes

	since machine.Instant    // Since when majorities are lost, 0 while they are not.
	told  Alarm              // What people were told last.
	from  machine.Instant    // Since when they are known to be lost for good, 0 while they are not.
	took  map[ReplicaID]bool // The replicas whose copies were taken in since then.
}

// Recovery says how a group without majorities comes to have them again.
type Recovery uint8

// The ways of recovery.
const (
	// RecoveryNone: there are majorities.
	RecoveryNone Recovery = iota
	// RecoveryReturn: the missing replicas are those of members that cannot be reached: they come back, or are removed.
	RecoveryReturn
	// RecoveryGoOn: the group goes on by itself with what is left, as soon as all replicas that are left can be
	// reached.
	RecoveryGoOn
	// RecoveryDisks: the missing nodes have to be started again with their disks; or an operator accepts the loss.
	RecoveryDisks
	// RecoveryOperator: an operator has to accept the loss of what the missing replicas held.
	RecoveryOperator
)

// Alarm is the effect that tells people that a group has no majorities, or has them again.
type Alarm struct {
	Group    uint8
	Recovery Recovery
	Missing  []ReplicaID // Sorted; nil for RecoveryNone.
	Since    machine.Instant
}

// ContinuedWithoutMajority is the effect that tells that a group in memory, or buckets of it, have gone on without a
// majority of replicas that was lost.
type ContinuedWithoutMajority struct {
	Group uint8
	Lost  []ReplicaID // Sorted.
}

// alarmAfter is for how long majorities are missing before people are told.
const alarmAfter = time.Second

// tick tells people that the group has lost its majorities, or has them again, if that has changed.
func (l *majorities) tick() {
	fate, missing := l.recovery()
	switch {
	case fate == RecoveryNone:
		l.since = 0
	case l.since == 0:
		l.since = l.m.now.Mono
	}
	if fate == l.told.Recovery && slices.Equal(missing, l.told.Missing) || fate != RecoveryNone && l.m.now.Mono.Sub(l.since) < alarmAfter {
		return
	}
	if l.told.Recovery == RecoveryNone {
		l.m.counts.QuorumsLost++
	}
	l.told = Alarm{Group: l.index, Recovery: fate, Missing: missing, Since: l.since}
	l.m.out.Add(l.told)
}

// recovery says what will or must happen, and which replicas majorities lack. As long as the replica of some member is
// not known, nothing is said: it may be one of those that seem to be missing.
func (l *majorities) recovery() (Recovery, []ReplicaID) {
	if l.reg == nil || l.unnamed() {
		return RecoveryNone, nil
	}
	here := func(id ReplicaID) bool { return l.present(id) && !l.isApart(id) }
	var missing Set
	comes := true
	for i := range l.views.all {
		if v := &l.views.all[i]; !v.current.Wins(here) {
			missing = append(missing, slices.DeleteFunc(slices.Clone(v.current), func(r Replica) bool { return here(r.ID) })...)
			comes = comes && v.current.Wins(l.there)
		}
	}
	var ids []ReplicaID
	for _, r := range NewSet(missing...) {
		ids = append(ids, r.ID)
	}
	switch {
	case len(ids) == 0:
		return RecoveryNone, nil
	case comes:
		return RecoveryReturn, ids
	case l.cfg.Durable:
		return RecoveryDisks, ids
	case l.goesOn():
		return RecoveryGoOn, ids
	default:
		return RecoveryOperator, ids
	}
}

// goesOn reports whether the group goes on by itself when majorities are lost for good.
func (l *majorities) goesOn() bool { return l.cfg.GoOn && !l.cfg.Durable }

// goneForGood reports whether a replica in memory is that of a removed member that can host nothing any more.
func (l *majorities) goneForGood(id ReplicaID) bool {
	return id != l.self && l.peers[id] == nil && l.m.fenced[gossip.UID(id)]
}

// forGood reports whether no winning part of the replicas that count can come back.
func (l *majorities) forGood() bool {
	return l.goesOn() && !l.unnamed() && l.cannotWin(l.reg.Current, l.reg.Old, l.sealed)
}

// cannotWin reports whether no winning part of the replicas in current can come back, or of those in old while the end
// of the change is not sealed: then these have yet to learn of it.
func (l *majorities) cannotWin(current, old Set, sealed bool) bool {
	comes := func(id ReplicaID) bool { return !l.goneForGood(id) }
	hears := func(id ReplicaID) bool { return comes(id) || l.knows[id] }
	return !current.Wins(comes) || len(old) > 0 && !sealed && !old.Wins(hears)
}

// bucketCannotWin is [majorities.cannotWin] for the homes of a bucket. The former homes of a bucket that is held back
// have yet to learn of the end of an earlier change.
func (l *majorities) bucketCannotWin(v *view) bool {
	return l.cannotWin(v.current, v.old, l.sealed && !v.held)
}

// bucketsForGood reports whether buckets begin anew by themselves: some have lost their homes, and all of those have
// lost a winning part of them for good. Replicas that are gone for good have to be out of the set before: otherwise a
// bucket of which nothing is left could get them as its new homes.
func (l *majorities) bucketsForGood() (some bool) {
	if !l.goesOn() || l.cfg.Copies == 0 || l.unnamed() || l.reg.Phase == PhaseJoint || !l.sealed ||
		slices.ContainsFunc(l.reg.Current, func(r Replica) bool { return l.goneForGood(r.ID) }) {
		return false
	}
	all := l.views.each(func(v *view) bool {
		if !l.homeless(v) {
			return true
		}
		some = true
		return l.bucketCannotWin(v)
	})
	return some && all
}

// left returns the replicas of the register that are not gone for good.
func (l *majorities) left() Set {
	r := l.reg
	return slices.DeleteFunc(NewSet(slices.Concat(r.Current, r.Next, r.Old)...), func(r Replica) bool { return l.goneForGood(r.ID) })
}

// isFirst reports whether this replica is the one that proposes a new lineage: the first of those that are left, or the
// leader if none is left. Replicas of members that do not leave come first, and of these the ones that counted. This
// saves attempts; it is safe if two replicas believe that they are first.
func (l *majorities) isFirst(left Set) bool {
	if len(left) == 0 {
		return l.leads()
	}
	var first ReplicaID
	best := -1
	for _, r := range left {
		node := l.m.cfg.Self
		if p := l.peers[r.ID]; p != nil {
			node = p.node
		}
		of := l.m.state.Member(node)
		if of == nil || !l.present(r.ID) {
			continue
		}
		score := 0
		if of.Status.IsUp() {
			score += 2
		}
		if l.reg.Current.Has(r.ID) {
			score++
		}
		if score > best {
			first, best = r.ID, score
		}
	}
	return best >= 0 && first == l.self
}

// goOn reports whether majorities are lost for good, so that no other register can be decided. If this replica is the
// one to propose the register with which the group goes on, and is ready to, p is that proposal, else nil.
func (l *majorities) goOn() (lost bool, p *proposal) {
	if !l.forGood() {
		l.from, l.took = 0, nil
		return false, nil
	}
	if l.from == 0 {
		l.from, l.took = l.m.now.Mono, map[ReplicaID]bool{}
	}
	left := l.left()
	if !l.isFirst(left) || l.out.attempting() && l.out.change.attempt.unanimous || l.cfg.Copies == 0 && l.holds() && !l.gathered(left) {
		return true, nil
	}
	return true, &proposal{l.successor(), NewSet(append(slices.Clone(left), Replica{l.self, ""})...), true}
}

// gathered reports whether this replica has taken in what the other replicas that are left hold, and begins passes with
// those that it has not.
func (l *majorities) gathered(left Set) bool {
	all := true
	for _, r := range left {
		if r.ID == l.self || l.took[r.ID] {
			continue
		}
		all = false
		if p := l.peers[r.ID]; p != nil && l.present(r.ID) && !l.passes.with(p) && len(l.passes.open) < 2*sourcesAtOnce {
			l.out.post(l.passes.begin(p, false))
		}
	}
	return all
}

// ended notes that a comparison with another replica has ended.
func (l *majorities) ended(x *pass) {
	if l.from != 0 && x.began >= l.from {
		l.took[x.peer.id] = true
	}
}

// adopted begins again in another generation.
func (l *majorities) adopted() { l.from, l.took = 0, nil }

// successor returns the register with which the group goes on: this replica counts, and the members catch up. Where
// each bucket has homes of its own, all those count that are left.
func (l *majorities) successor() Register {
	v := l.reg.stable()
	v.Lineage, v.Continues = Lineage{Turn: l.reg.Lineage.Turn + 1, ID: l.m.cfg.Rand.Uint64() | 1}, l.reg.Lineage.ID
	zone := ""
	if me := l.m.state.Member(l.m.cfg.Self); me != nil {
		zone = me.Zone
	}
	alone := NewSet(Replica{l.self, zone})
	if l.cfg.Copies > 0 {
		v.Current = slices.DeleteFunc(slices.Clone(l.reg.Current), func(r Replica) bool { return l.goneForGood(r.ID) })
		if len(v.Current) == 0 {
			v.Current = alone
		}
		v.Held, v.Resets = l.homesLeft(v.Gen)
		return v
	}
	v.Current, v.Held = alone, nil
	if want := l.wanted(); len(want) > 0 && !want.Same(v.Current) {
		v.Phase, v.Next = PhaseJoint, want
	}
	return v
}

// homesLeft returns what becomes of each bucket in a generation in which only the replicas count that are left. Either
// it is held back: it keeps its homes until the next change, whichever replicas the placement would choose now. Or it
// has lost a winning part of them, and begins anew with those that are left.
func (l *majorities) homesLeft(gen uint64) (held []Held, resets []Reset) {
	for bucket := range table.Buckets {
		v := l.views.bucket(bucket)
		if !l.bucketCannotWin(v) {
			held = putHeld(held, bucket, l.heldOn(v, false))
			continue
		}
		left := v.left(func(id ReplicaID) bool { return !l.goneForGood(id) })
		resets = putReset(resets, bucket, Reset{Gen: gen, Spared: left})
		if len(left) > 0 {
			held = putHeld(held, bucket, Held{Homes: left})
		}
	}
	return held, slices.Concat(without(l.reg.Resets, resets), resets)
}

// goesOnFrom reports whether a register is the one with which the group has gone on by itself after the register
// before. All replicas that were left have accepted it in the generation of before, so that their copies go on to
// count.
func (r *Register) goesOnFrom(before *Register) bool {
	return before != nil && r.Lineage.Turn == before.Lineage.Turn+1 && r.Continues == before.Lineage.ID && r.Gen == before.Gen+1
}

// wentOn tells people that the group, or buckets of it, have gone on after the register before without some replicas.
func (l *majorities) wentOn(before *Register) {
	if before == nil {
		return
	}
	var lost Set
	switch {
	case l.reg.Lineage != before.Lineage && l.reg.Continues == before.Lineage.ID:
		lost = slices.DeleteFunc(NewSet(slices.Concat(before.Current, before.Next, before.Old)...), func(r Replica) bool {
			return l.reg.Current.Has(r.ID) || l.reg.Next.Has(r.ID)
		})
	case l.reg.Lineage == before.Lineage && l.goesOn():
		lost = l.lostHomes(before)
	}
	if len(lost) == 0 {
		return
	}
	l.m.counts.WentOn++
	e := ContinuedWithoutMajority{Group: l.index}
	for _, r := range lost {
		e.Lost = append(e.Lost, r.ID)
	}
	l.m.out.Add(e)
}

// lostHomes returns the replicas that were homes, in a former register, of buckets that have begun anew since without
// them.
func (l *majorities) lostHomes(before *Register) (lost Set) {
	views := newViews(before, placement{l.cfg.Copies}, table.Buckets)
	for _, x := range l.reg.Resets {
		for _, bucket := range x.Buckets {
			if v := views.bucket(int(bucket)); x.Gen > before.Gen {
				lost = append(lost, slices.DeleteFunc(slices.Clone(v.current), func(r Replica) bool { return x.Spared.Has(r.ID) })...)
			}
		}
	}
	return NewSet(lost...)
}
