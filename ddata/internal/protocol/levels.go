// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

// When an operation has enough answers for its level, by the sets of replicas that count for the bucket of its key:
//
//	phase    a read wins in   a write has a majority in
//	stable   Current          Current
//	joint    Current          Current and Next
//	ended    Current          Current, and Old until sealed

// reads reports whether a read has enough answers.
func (l Level) reads(v *view, in func(ReplicaID) bool) bool {
	switch {
	case l.Name == Local:
		return true
	case l.Name == Count:
		return v.union(in) >= min(l.N, len(v.current))
	case l.plain():
		return v.current.Wins(in)
	default:
		return v.current.count(in) >= l.enough(len(v.current))
	}
}

// agreed reports whether a read may return without writing back, if the replicas that are in hold what it returns.
// While other coordinators may still read from another set, it has to write back.
func (l Level) agreed(v *view, phase Phase, sealed bool, in func(ReplicaID) bool) bool {
	phase, sealed = v.phaseIn(phase, sealed)
	return phase != PhaseJoint && sealed && l.reads(v, in)
}

// writes reports whether a write is held by enough replicas.
func (l Level) writes(v *view, phase Phase, sealed bool, in func(ReplicaID) bool) bool {
	met := func(s Set) bool { return s.count(in) >= l.enough(len(s)) }
	phase, sealed = v.phaseIn(phase, sealed)
	switch {
	case l.Name == Local:
		return v.union(in) > 0
	case l.Name == Count:
		return v.union(in) >= min(l.N, len(v.current))
	case !met(v.current):
		return false
	case phase == PhaseJoint:
		return met(v.next)
	case phase == PhaseEnded && !sealed:
		return v.old.Majority(in)
	default:
		return true
	}
}

// phaseIn returns in which phase a bucket is, and whether the end of its change is sealed, given both for the register.
// A bucket that is held back takes no part in the change of the others, and need not be sealed when they are.
func (v *view) phaseIn(phase Phase, sealed bool) (Phase, bool) {
	switch {
	case !v.held:
		return phase, sealed
	case len(v.old) > 0:
		return PhaseEnded, false
	default:
		return PhaseStable, true
	}
}

// union returns how many of the homes, in all sets together, are in.
func (v *view) union(in func(ReplicaID) bool) int {
	n := v.current.count(in)
	n += v.next.count(func(id ReplicaID) bool { return in(id) && !v.current.Has(id) })
	return n + v.old.count(func(id ReplicaID) bool { return in(id) && !v.current.Has(id) && !v.next.Has(id) })
}
