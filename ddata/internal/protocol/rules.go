// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

// What holds reads and writes together while the set changes, in the order of a change:
// who has to catch up, which answers count for that, when a joint phase may end, and when
// its end is sealed. With the quorums of levels.go these are all rules on which reads
// depend. They are functions of what a replica knows, so that tests can go through every
// order of events with them.

// stays reports whether a replica that has caught up still has, in a register that is new
// to it: in a joint phase every replica catches up, also one that was there before, and who
// has skipped a generation may have skipped a joint phase.
func (r *Register) stays(caught, next bool) bool { return caught && next && r.Phase != PhaseJoint }

// counted reports whether a replica is, or is to be, one of those that reads ask.
func (r *Register) counted(id ReplicaID) bool { return r.Current.Has(id) || r.Next.Has(id) }

// counts reports whether an answer that was given in a generation counts in the present
// one. An answer is a fence: who has given it takes nothing in any more for a coordinator
// of an earlier generation without telling it of the present one.
func counts(given, present uint64) bool { return given == present }

// confirms reports whether what a replica has acknowledged counts on in a later generation. A
// state only grows as long as its replica is a home, and nobody knows whether that was one in
// generations that were skipped.
func confirms(home, next bool) bool { return home && next }

// source reports whether what a replica held when it was asked is needed by those that
// catch up: it counts, also only for buckets that were held back, or it had caught up itself.
func (r *Register) source(id ReplicaID, caught bool) bool {
	return caught || r.Current.Has(id) || r.moving(id)
}

// enough reports whether a replica has caught up with the copies that it has taken in: for
// each bucket that it holds, with those of a winning part of the homes that reads ask, or
// with a whole one: of another home, which had caught up itself when it was asked. Of a bucket
// that is held back nobody takes anything in.
func (v *views) enough(self ReplicaID, taken, whole func(ReplicaID) bool) bool {
	return v.each(func(v *view) bool { return v.held || !v.has(self) || v.current.Wins(taken) || v.union(whole) > 0 })
}

// ready reports whether a joint phase may end: a majority of the new homes of each bucket that
// takes part has caught up.
func (v *views) ready(caught func(ReplicaID) bool) bool {
	return v.each(func(v *view) bool { return v.held || v.next.Majority(caught) })
}

// sealed reports whether the end of a change is sealed: a winning part of the old homes of
// each bucket that takes part knows of it.
func (v *views) sealed(phase Phase, knows func(ReplicaID) bool) bool {
	return phase != PhaseEnded || v.each(func(v *view) bool { return v.held || v.old.Wins(knows) })
}

// freed reports whether the former homes of a bucket that is held back count no more: a winning
// part of them knows of the end.
func (v *view) freed(knows func(ReplicaID) bool) bool { return v.old.Wins(knows) }
