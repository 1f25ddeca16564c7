// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"

	"github.com/quorate/quorate/ddata/internal/table"
)

// Buckets that have lost a winning part of their homes must not hold up the change of the sets for the others: they are
// held back, which means that they keep their homes, until those are there again or their loss is accepted. First what
// the register says of such buckets ([Held], [Reset]) and how the next register takes that over; then when a bucket is
// held back ([known.losesHomes]) and which are in the next generation ([proposer.heldNext]); last how an operator
// accepts a loss ([proposer.withLossAccepted]).
//
// It is safe to hold a bucket back whether its homes are lost or not. In a joint phase it does to one bucket what going
// back to the stable phase does to all: every write that counts is held by a majority of the current homes. While the
// end of a change is not sealed, a bucket keeps both sets of homes: a coordinator that knows that the end is sealed
// asks the new one, and one that does not know of the end asks the old one.

// Held are buckets that are held back: they keep their homes although the sets change, since no winning part of the
// homes was left.
type Held struct {
	Buckets []uint16 // Sorted.
	Homes   Set
	// Old are the former homes of buckets whose change had ended and was not sealed: writes
	// need a majority of them too, until a winning part of them knows of the end.
	Old Set
	// Moves says that the buckets are held back no longer: a winning part of Homes has come back, and they take part in
	// the change that is under way, from Homes to the homes that the [placement] gives them.
	Moves bool
}

// Reset says that the loss of what some buckets held was accepted in a generation. A replica that knew of an earlier
// generation only, and is not in Spared, drops what it holds of those buckets. The record ends with the next sweep: a
// replica that has missed the sweep drops everything.
type Reset struct {
	Gen     uint64
	Spared  Set      // The homes whose content goes on to count.
	Buckets []uint16 // Sorted.
}

// keptHomes returns the buckets that stay held back in the generation after this one.
func (r *Register) keptHomes() []Held {
	var all []Held
	for _, h := range r.Held {
		switch {
		case !h.Moves:
			all = append(all, h)
		case r.Phase == PhaseJoint: // The change is taken back.
			h.Moves = false
			all = append(all, h)
		}
	}
	return all
}

// again returns the next generation with the same sets, in which other buckets are held back.
func (r *Register) again(held []Held) Register {
	v := *r
	v.Gen++
	v.Held = held
	return v
}

// fence is the generation before which data must not have been read: older data is refused, since what was dropped by a
// sweep or by a [Reset] would come back with it.
func (r *Register) fence() uint64 {
	fence := r.Swept
	for _, x := range r.Resets {
		fence = max(fence, x.Gen)
	}
	return fence
}

// Homes returns the replicas that count for a bucket, in a group that has so many copies of each key; 0: all.
func (r *Register) Homes(bucket, copies int) Set {
	if h := r.heldBuckets()[bucket]; h != nil {
		v := h.view(r, placement{copies}, bucket)
		return v.current
	}
	return placement{copies}.homes(bucket, r.Current)
}

// heldBuckets returns the record of each bucket in r.Held, by the number of the bucket.
func (r *Register) heldBuckets() map[int]*Held {
	all := map[int]*Held{}
	for i := range r.Held {
		for _, bucket := range r.Held[i].Buckets {
			all[int(bucket)] = &r.Held[i]
		}
	}
	return all
}

// heldCount returns how many buckets are in r.Held.
func (r *Register) heldCount() (n int) {
	for _, h := range r.Held {
		n += len(h.Buckets)
	}
	return n
}

// moving reports whether a replica is a home of buckets that were held back and take part in a change now.
func (r *Register) moving(id ReplicaID) bool {
	return slices.ContainsFunc(r.Held, func(h Held) bool { return h.Moves && h.Homes.Has(id) })
}

// resetSince reports whether the loss of what a bucket held was accepted after a generation.
func (r *Register) resetSince(bucket int, gen uint64) bool {
	return slices.ContainsFunc(r.Resets, func(x Reset) bool { return x.Gen > gen && slices.Contains(x.Buckets, uint16(bucket)) })
}

// view returns which replicas count for a bucket that is held back or moves on.
func (h *Held) view(r *Register, p placement, bucket int) view {
	switch {
	case h.Moves && r.Phase == PhaseJoint:
		return view{current: h.Homes, next: p.homes(bucket, r.Next)}
	case h.Moves && r.Phase == PhaseEnded:
		return view{current: p.homes(bucket, r.Current), old: h.Homes}
	default:
		return view{current: h.Homes, old: h.Old, held: true}
	}
}

// putHeld adds a bucket to the record that is equal to h but for its buckets. The caller goes through the buckets in
// ascending order.
func putHeld(all []Held, bucket int, h Held) []Held {
	at := slices.IndexFunc(all, func(o Held) bool { return o.Moves == h.Moves && o.Homes.Same(h.Homes) && o.Old.Same(h.Old) })
	if at < 0 {
		at = len(all)
		h.Buckets = nil
		all = append(all, h)
	}
	all[at].Buckets = append(all[at].Buckets, uint16(bucket))
	return all
}

// putReset is putHeld for resets.
func putReset(all []Reset, bucket int, x Reset) []Reset {
	at := slices.IndexFunc(all, func(o Reset) bool { return o.Spared.Same(x.Spared) })
	if at < 0 {
		at = len(all)
		x.Buckets = nil
		all = append(all, x)
	}
	all[at].Buckets = append(all[at].Buckets, uint16(bucket))
	return all
}

// without returns all without the buckets that are named in others.
func without(all, others []Reset) (rest []Reset) {
	gone := map[uint16]bool{}
	for _, x := range others {
		for _, bucket := range x.Buckets {
			gone[bucket] = true
		}
	}
	for _, x := range all {
		x.Buckets = slices.DeleteFunc(slices.Clone(x.Buckets), func(bucket uint16) bool { return gone[bucket] })
		if len(x.Buckets) > 0 {
			rest = append(rest, x)
		}
	}
	return rest
}

func (h Held) equal(o Held) bool {
	return h.Moves == o.Moves && slices.Equal(h.Homes, o.Homes) && slices.Equal(h.Old, o.Old) && slices.Equal(h.Buckets, o.Buckets)
}

func (x Reset) equal(o Reset) bool {
	return x.Gen == o.Gen && slices.Equal(x.Spared, o.Spared) && slices.Equal(x.Buckets, o.Buckets)
}

// there reports whether a replica is that of a member, and its store is not an older one: what an older store holds
// never counts again.
func (k *known) there(id ReplicaID) bool {
	return (id == k.self || k.peers[id] != nil) && !k.isOlder(id)
}

// unnamed reports whether there are members whose replicas are not known: any of them may have a replica that seems to
// be gone.
func (k *known) unnamed() bool {
	for _, p := range k.nodes { //quorate:unordered any of them
		if p.id == 0 {
			return true
		}
	}
	return false
}

// losesHomes reports whether a bucket that is not held back would hold up the change of the sets until replicas come
// back that belong to no member now: no winning part is left of its homes, or of its former homes while these have yet
// to learn of the end of a change.
func (k *known) losesHomes(v *view) bool {
	if k.cfg.Copies == 0 || v.held {
		return false
	}
	hears := func(id ReplicaID) bool { return k.there(id) || k.knows[id] }
	return !v.current.Wins(k.there) || len(v.old) > 0 && !k.sealed && !v.old.Wins(hears)
}

// lost reports whether a bucket is held back and can be neither read nor written by
// majorities.
func (k *known) lost(v *view) bool {
	return v.held && !k.unnamed() && (!v.current.Wins(k.there) || len(v.old) > 0 && !v.old.Wins(k.there))
}

// missing returns the present and former homes of a bucket that are those of no member.
func (k *known) missing(v *view) (ids []ReplicaID) {
	for _, r := range NewSet(slices.Concat(v.current, v.old)...) {
		if !k.there(r.ID) {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

// heldOn returns the record, for the next generation, of a bucket that is held back. With begins, that generation
// begins a change, in which the bucket takes part if its homes are there again.
func (k *known) heldOn(v *view, begins bool) Held {
	h := Held{Homes: v.current, Old: v.old}
	if v.freed(func(id ReplicaID) bool { return k.knows[id] }) {
		h.Old = nil
	}
	h.Moves = begins && len(h.Old) == 0 && v.current.Wins(k.present)
	return h
}

// returned reports whether some bucket that is held back has its homes again.
func (l *proposer) returned() bool {
	return !l.views.each(func(v *view) bool { return !v.held || !l.heldOn(v, true).Moves })
}

// heldNext returns which buckets are held back in the next generation. With begins, that generation begins a change;
// with names, the buckets are added that would hold the change up.
func (l *proposer) heldNext(begins, names bool) []Held {
	if l.cfg.Copies == 0 {
		return nil
	}
	var all []Held
	of := l.reg.heldBuckets()
	for bucket := range table.Buckets {
		switch v, h := l.views.bucket(bucket), of[bucket]; {
		case v.held:
			all = putHeld(all, bucket, l.heldOn(v, begins))
		case names && l.losesHomes(v):
			all = putHeld(all, bucket, l.holdBack(v))
		case h != nil && !begins:
			all = putHeld(all, bucket, Held{Homes: h.Homes, Moves: true})
		}
	}
	return all
}

// holdBack is the record of a bucket that is to be held back.
func (l *proposer) holdBack(v *view) Held {
	h := Held{Homes: v.current}
	if !l.sealed {
		h.Old = v.old
	}
	return h
}

// holdsBack reports whether buckets are to be held back now. In a durable group a node may soon be started again with
// its disk: the leader waits for that as long as it waits for the replicas of Next.
func (l *proposer) holdsBack() bool {
	if l.cfg.Copies == 0 || l.unnamed() || l.views.each(func(v *view) bool { return !l.losesHomes(v) }) {
		l.homesMissed = 0
		return false
	}
	if l.homesMissed == 0 {
		l.homesMissed = l.m.now.Mono
	}
	return !l.cfg.Durable || l.m.now.Mono.Sub(l.homesMissed) >= l.m.cfg.Timing.Gather
}

// withLossAccepted returns the register in which every bucket that has lost its homes begins anew, with what the homes
// hold that are left; false if there is no such bucket. A bucket of which no home is left begins with nothing.
func (l *proposer) withLossAccepted() (v Register, some bool) {
	v = l.reg.again(nil)
	var fresh []Reset
	of := l.reg.heldBuckets()
	for bucket := range table.Buckets {
		w, h := l.views.bucket(bucket), of[bucket]
		switch on := l.heldOn(w, true); {
		case l.homeless(w):
			left := w.left(l.there)
			if fresh = putReset(fresh, bucket, Reset{Gen: v.Gen, Spared: left}); len(left) > 0 {
				v.Held = putHeld(v.Held, bucket, Held{Homes: left})
			}
		case w.held:
			on.Moves = false
			v.Held = putHeld(v.Held, bucket, on)
		case h != nil:
			v.Held = putHeld(v.Held, bucket, Held{Homes: h.Homes, Moves: true})
		}
	}
	v.Resets = slices.Concat(without(l.reg.Resets, fresh), fresh)
	return v, len(fresh) > 0
}

// homeless reports whether a bucket has lost its homes: it begins anew when the loss of buckets is accepted.
func (k *known) homeless(v *view) bool { return v.held && !k.heldOn(v, true).Moves || k.losesHomes(v) }

// nextWithLoss returns the register that the leader wants since buckets begin anew: an operator has accepted their
// loss, which holds until there are no such buckets any more, or they have lost their homes for good. It returns false
// if there are none.
func (l *proposer) nextWithLoss() (v Register, some bool) {
	if !l.acceptsLoss && !(l.leads() && l.majorities.bucketsForGood()) {
		return Register{}, false
	}
	v, some = l.withLossAccepted()
	l.acceptsLoss = l.acceptsLoss && some
	return v, some
}

// left returns the present homes that are there or, if none is, the former homes that are there.
func (v *view) left(there func(ReplicaID) bool) Set {
	for _, homes := range []Set{v.current, v.old} {
		left := slices.DeleteFunc(slices.Clone(homes), func(r Replica) bool { return !there(r.ID) })
		if len(left) > 0 {
			return left
		}
	}
	return nil
}

// dropBuckets drops what this replica holds of buckets whose loss was accepted after the generation known, which it
// knew before, and of buckets of which it is no home any more.
func (k *known) dropBuckets(known uint64) {
	for _, x := range k.reg.Resets {
		if x.Gen <= known || x.Spared.Has(k.self) {
			continue
		}
		for _, bucket := range x.Buckets {
			k.table.Drop(int(bucket))
		}
	}
	if k.cfg.Copies == 0 || !k.holds() {
		return
	}
	for bucket := range table.Buckets {
		if !k.views.bucket(bucket).has(k.self) {
			k.table.Drop(bucket)
		}
	}
}
