// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

// The rules by which reads find what was written while the set of replicas changes, in the order of a change: which
// replicas have to catch up, which answers count for that, when a joint phase may end, and when its end is sealed. With
// the quorums of levels.go these are all the rules on which that rests. They are functions of what a replica knows, so
// that tests can go through every order of events with them.

// stays reports whether a replica that had caught up still has when it adopts a register; next says that this is the
// generation after the one that it knew. In a joint phase every replica has to catch up, also one that was there
// before; and a replica that has skipped a generation may have skipped a joint phase.
func (r *Register) stays(next bool) bool { return next && r.Phase != PhaseJoint }

// counted reports whether a replica is one that reads ask, or is to become one.
func (r *Register) counted(id ReplicaID) bool { return r.Current.Has(id) || r.Next.Has(id) }

// counts reports whether an answer that was given in a generation counts in the present one. Catching up relies on
// this: a replica that has answered in a generation takes nothing in for a coordinator of an earlier generation without
// telling it of this one.
func counts(given, present uint64) bool { return given == present }

// confirms reports whether what a replica has acknowledged still counts in a later generation: if it is a home there,
// and no generation was skipped. A replica keeps what it has taken in as long as it is a home, and nobody knows whether
// it was one in a skipped generation.
func confirms(home, next bool) bool { return home && next }

// source reports whether the copy of a replica is of use for catching up: reads ask the replica, if only for buckets
// that were held back, or it had caught up itself when it was asked.
func (r *Register) source(id ReplicaID, caught bool) bool {
	return caught || r.Current.Has(id) || r.moving(id)
}

// enough reports whether a replica has caught up by the copies that it has taken in. For each bucket that it holds it
// needs those of a winning part of the homes that reads ask, or one whole copy: that of a home that had caught up
// itself when it was asked. It needs none for a bucket that is held back.
func (v *views) enough(self ReplicaID, taken, whole func(ReplicaID) bool) bool {
	return v.each(func(v *view) bool { return v.held || !v.has(self) || v.current.Wins(taken) || v.union(whole) > 0 })
}

// ready reports whether a joint phase may end: a majority of the new homes has caught up, for each bucket that is not
// held back.
func (v *views) ready(caught func(ReplicaID) bool) bool {
	return v.each(func(v *view) bool { return v.held || v.next.Majority(caught) })
}

// sealed reports whether the end of a change is sealed: a winning part of the old homes knows of it, for each bucket
// that is not held back.
func (v *views) sealed(phase Phase, knows func(ReplicaID) bool) bool {
	return phase != PhaseEnded || v.each(func(v *view) bool { return v.held || v.old.Wins(knows) })
}

// freed reports whether the former homes of a bucket that is held back count no more, since a winning part of them
// knows of the end of the change.
func (v *view) freed(knows func(ReplicaID) bool) bool { return v.old.Wins(knows) }
