// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/ddata/crdt"
)

// First replicas and sets of them, with the two kinds of majority; then the register, which says which sets count; then
// which replicas of a set are the homes of a bucket.

// ReplicaID names a replica by what its state lives in: the uid of its node if it is in
// memory, an id on its disk if it is durable. A replica that has lost its state comes
// back under another id. Zero is none.
type ReplicaID uint64

// Replica is a replica as a [Register] names it.
type Replica struct {
	ID   ReplicaID
	Zone string // The zone of its node when it was taken into the set.
}

// Set is a set of replicas, sorted by id without doubles. It is immutable.
type Set []Replica

// NewSet returns the set of some replicas; of two with one id the first counts.
func NewSet(of ...Replica) Set {
	s := slices.Clone(of)
	slices.SortStableFunc(s, func(a, b Replica) int { return cmp.Compare(a.ID, b.ID) })
	return slices.CompactFunc(s, func(a, b Replica) bool { return a.ID == b.ID })
}

// Has reports whether a replica is in the set.
func (s Set) Has(id ReplicaID) bool {
	low, high := 0, len(s)
	for low < high {
		if middle := (low + high) / 2; s[middle].ID < id {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low < len(s) && s[low].ID == id
}

// Same reports whether two sets have the same ids.
func (s Set) Same(o Set) bool {
	return slices.EqualFunc(s, o, func(a, b Replica) bool { return a.ID == b.ID })
}

// count returns how many of the set are in.
func (s Set) count(in func(ReplicaID) bool) int {
	n := 0
	for _, r := range s {
		if in(r.ID) {
			n++
		}
	}
	return n
}

// Wins reports whether the replicas that are in are a winning part of the set: more than half of it, or half of it and
// among them the lowest id. Any two winning parts of a set have a replica in common.
func (s Set) Wins(in func(ReplicaID) bool) bool {
	n := 2 * s.count(in)
	return n > len(s) || n == len(s) && n > 0 && in(s[0].ID)
}

// Majority reports whether the replicas that are in are more than half of the set. So they have a replica in common
// with each winning part; writes need a majority, so that they are never on half of the replicas only.
func (s Set) Majority(in func(ReplicaID) bool) bool { return 2*s.count(in) > len(s) }

// Phase says which sets of a [Register] count.
type Phase uint8

// The phases of a change of the set, in their order.
const (
	// PhaseStable: reads ask Current, writes Current.
	PhaseStable Phase = iota + 1
	// PhaseJoint: the replicas of Next catch up. Reads ask Current, writes Current and
	// Next.
	PhaseJoint
	// PhaseEnded: Current is the former Next. Reads ask Current, writes Current, and Old
	// until the end is sealed: until a winning part of Old is known to know of it.
	PhaseEnded
)

// String returns the name of the phase.
func (p Phase) String() string {
	switch p {
	case PhaseStable:
		return "stable"
	case PhaseJoint:
		return "joint"
	case PhaseEnded:
		return "ended"
	default:
		return "none"
	}
}

// Lineage names one history of a register. It ends only when an operator accepts a loss, or when the loss is certain in
// a group in memory: the lineage after it has a higher turn.
type Lineage struct {
	Turn uint32
	ID   uint64
}

// IsZero reports whether it is the lineage of no register.
func (l Lineage) IsZero() bool { return l == Lineage{} }

// Register says which replicas of a group count. Its value of each generation is decided
// once. It is immutable.
type Register struct {
	Lineage Lineage
	Gen     uint64 // From 1; 0 is no register.
	// Continues is the ID of the lineage of the turn before with which the group has gone on by itself, without a
	// majority that was lost for good; 0 for none.
	Continues uint64
	Phase     Phase
	Current   Set
	Next      Set // In PhaseJoint.
	Old       Set // In PhaseEnded.

	// Swept is the generation of the last sweep: what was read before it is refused.
	Swept uint64
	// Dropped is the hash of the tombstones that were dropped by that sweep, and Retired are the origins whose updates
	// were folded by it.
	Dropped uint64
	Retired []crdt.Origin

	// Held are the buckets that are held back, and Resets those whose loss was accepted. Each names a bucket at most
	// once.
	Held   []Held
	Resets []Reset

	// Unknown are the fields of a later release, as they came, at most [MaxUnknownBytes]: without them it would be
	// another register of the same generation. They go over into the generations that are made of this one.
	Unknown string
}

// MaxUnknownBytes bounds the fields of a later release in a register. Every replica has them, and durable ones store
// them.
const MaxUnknownBytes = 1024

// Above reports whether r replaces o.
func (r *Register) Above(o *Register) bool {
	if r.Lineage.Turn != o.Lineage.Turn {
		return r.Lineage.Turn > o.Lineage.Turn
	}
	return r.Gen > o.Gen
}

// conflicts reports whether a lineage is another one of the same turn as that of the register; false for no register.
func (r *Register) conflicts(l Lineage) bool {
	return r != nil && !l.IsZero() && l.Turn == r.Lineage.Turn && l.ID != r.Lineage.ID
}

// In reports whether a replica is in any set of the register, or is a home of buckets that are
// held back, so that it holds data.
func (r *Register) In(id ReplicaID) bool {
	return r.Current.Has(id) || r.Next.Has(id) || r.Old.Has(id) ||
		slices.ContainsFunc(r.Held, func(h Held) bool { return h.Homes.Has(id) || h.Old.Has(id) })
}

// Equal reports whether two registers have the same value.
func (r *Register) Equal(o *Register) bool {
	return r.Lineage == o.Lineage && r.Continues == o.Continues && r.Gen == o.Gen && r.Phase == o.Phase &&
		slices.Equal(r.Current, o.Current) && slices.Equal(r.Next, o.Next) && slices.Equal(r.Old, o.Old) &&
		r.Swept == o.Swept && r.Dropped == o.Dropped && slices.Equal(r.Retired, o.Retired) &&
		slices.EqualFunc(r.Held, o.Held, Held.equal) && slices.EqualFunc(r.Resets, o.Resets, Reset.equal) &&
		r.Unknown == o.Unknown
}

// stable returns the next generation, with the same Current and no change under way.
func (r *Register) stable() Register {
	next := *r
	next.Gen++
	next.Held = r.keptHomes()
	next.Phase, next.Next, next.Old = PhaseStable, nil, nil
	return next
}

// joint returns the next generation, in which the replicas of next catch up.
func (r *Register) joint(next Set) Register {
	v := r.stable()
	v.Phase, v.Next = PhaseJoint, next
	return v
}

// ended returns the next generation, in which Next has taken the place of Current.
func (r *Register) ended() Register {
	v := r.stable()
	v.Phase, v.Current, v.Old, v.Held = PhaseEnded, r.Next, r.Current, r.Held
	return v
}

// swept returns the next generation, without the tombstones of a hash and with some
// origins retired.
func (r *Register) swept(dropped uint64, retired []crdt.Origin) Register {
	v := r.stable()
	v.Swept, v.Dropped, v.Retired, v.Resets = v.Gen, dropped, retired, nil
	return v
}

// view says which replicas count for a bucket: its homes among each set of the register or, if it is held back, those
// that it has kept.
type view struct {
	current, next, old Set
	held               bool // The bucket takes no part in the change that is under way.
}

// placement says which replicas of a set are homes of a bucket.
type placement struct{ copies int }

// homes returns the replicas of a set that hold a bucket: all of them, or as many as there
// are to be copies, by rendezvous hashing (Thaler and Ravishankar 1998, §3): each replica
// has a weight for each bucket, and the highest weights win, first one in each zone. When
// one replica comes or goes, only its own share of the buckets moves.
func (p placement) homes(bucket int, of Set) Set {
	if p.copies == 0 || len(of) <= p.copies {
		return of
	}
	homes := make(Set, 0, p.copies)
	for fresh := true; len(homes) < p.copies; {
		best, most := -1, uint64(0)
		for i, r := range of {
			if w := weight(bucket, r.ID); (best < 0 || w > most) && !homes.excludes(r, fresh) {
				best, most = i, w
			}
		}
		if best < 0 {
			fresh = false // Each zone has one.
			continue
		}
		homes = append(homes, of[best])
	}
	slices.SortFunc(homes, func(a, b Replica) int { return cmp.Compare(a.ID, b.ID) })
	return homes
}

// excludes reports whether a replica must not be added to a set, which need not be sorted: it is in it or, with fresh,
// another one of its zone is.
func (s Set) excludes(of Replica, fresh bool) bool {
	for i := range s {
		if s[i].ID == of.ID || fresh && s[i].Zone == of.Zone {
			return true
		}
	}
	return false
}

// weight is the weight of a replica for a bucket: a mix of both (the finaliser of
// SplitMix64, Steele, Lea and Flood 2014, fig. 16).
func weight(bucket int, id ReplicaID) uint64 {
	z := uint64(id) + uint64(bucket+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// views are the views of all buckets of a register. Buckets with the same homes share one, so that what must hold for
// each bucket is checked once for each view.
type views struct {
	all []view
	of  []uint16 // The index in all, by bucket.
}

// newViews returns the views of a register.
func newViews(r *Register, p placement, buckets int) *views {
	if p.copies == 0 {
		return &views{all: []view{{current: r.Current, next: r.Next, old: r.Old}}, of: make([]uint16, buckets)}
	}
	v, held := &views{of: make([]uint16, buckets)}, r.heldBuckets()
	for bucket := range buckets {
		of := view{current: p.homes(bucket, r.Current), next: p.homes(bucket, r.Next), old: p.homes(bucket, r.Old)}
		if h := held[bucket]; h != nil {
			of = h.view(r, p, bucket)
		}
		at := slices.IndexFunc(v.all, of.same)
		if at < 0 {
			at = len(v.all)
			v.all = append(v.all, of)
		}
		v.of[bucket] = uint16(at)
	}
	return v
}

func (v view) same(o view) bool {
	return v.held == o.held && v.current.Same(o.current) && v.next.Same(o.next) && v.old.Same(o.old)
}

// bucket returns the view of a bucket.
func (v *views) bucket(bucket int) *view { return &v.all[v.of[bucket]] }

// has reports whether a replica is a home of the bucket in any set.
func (v *view) has(id ReplicaID) bool {
	return v.current.Has(id) || v.next.Has(id) || v.old.Has(id)
}

// with returns the replicas that reads ask, for all buckets of which a replica is a home.
func (v *views) with(self ReplicaID) Set {
	var all Set
	for i := range v.all {
		if of := &v.all[i]; of.has(self) {
			all = append(all, of.current...)
		}
	}
	return NewSet(all...)
}

// each reports whether something holds for every view.
func (v *views) each(holds func(*view) bool) bool {
	for i := range v.all {
		if !holds(&v.all[i]) {
			return false
		}
	}
	return true
}
