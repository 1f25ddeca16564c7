// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import "slices"

// Merging: Merge joins two states, Accept and AcceptDelta first check what another
// node sent. The join goes record by record over two sorted lists (joinSorted),
// returns the very lists of an operand where that is the result, and then settles the
// clock and the effects of removals.

// Merge returns the join of s and o, which holds everything that either of them holds.
// It is associative, commutative, idempotent and monotone, so that states that were
// merged in any order, any number of times, are equal. A merge is no edit. It returns
// s itself if o adds nothing.
//
// A node that takes part in the cluster calls [State.See] and [State.Restamp] on the
// result before it sends it on. The caller checks first that both are of one cluster,
// by [State.CompareDigest] for instance.
func (s *State) Merge(o *State) *State {
	if s == o {
		return s
	}
	m := &State{history: s.history, bases: s.bases}
	joined := m.join(&s.core, &o.core)
	m.clock, m.orphans = joined.clocks(s, o, &m.core)
	if s.sameVersion(m) {
		m.seen = s.seen.remap(s.members, m.members)
	}
	if o.sameVersion(m) {
		m.seen = m.seen.union(o.seen.remap(o.members, m.members))
	}
	if m.clock.is(s.clock) && m.seen.equal(s.seen) && m.isCore(&s.core) {
		return s
	}
	m.orphans = m.orphans.union(s.orphans).union(o.orphans)
	m.history = s.history.merge(o.history, s.clock, historySize(len(m.members)))
	m.adopt(o.bases)
	m.rebase()
	return m
}

// Accept is [State.Merge] for a state that came from another node. It refuses, with an
// [InvalidError], news that no node makes by the rules:
//
//   - times and counts that are not plausible, see [Raw.ValidateAt];
//   - more members or tombstones than [MaxMembers] in the result;
//   - removals from before PrunedBefore;
//   - voters that are unknown, or without those who vote now and stay;
//   - a downing strategy that the node has not loaded, since a leader chooses only
//     strategies that every member has loaded.
//
// The bounds of counts and times are the same for every node, whatever it knows, so
// that one node accepts what another has accepted and built upon.
func (s *State) Accept(o *State, t Terms) (*State, error) {
	if s == o {
		return s, nil
	}
	if !s.cluster.value.IsZero() && !o.cluster.value.IsZero() && s.cluster != o.cluster {
		return s, ErrOtherCluster
	}
	if err := o.Parts().ValidateAt(t.Now); err != nil {
		return s, err
	}
	return s.accepted(s.Merge(o), t)
}

// AcceptDelta is [State.Apply] for a delta that came from another node and is
// valid by itself. It refuses what [State.Accept] refuses.
func (s *State) AcceptDelta(d Delta, t Terms) (*State, error) {
	p := d.parts()
	if !d.Full {
		p.Clock = d.Clock.Entries
	}
	if err := p.ValidateAt(t.Now); err != nil {
		return s, err
	}
	m, err := s.Apply(d)
	if err != nil {
		return s, err
	}
	return s.accepted(m, t)
}

// accepted returns m, the result of merging news into s, or s and the reason for which
// the news is refused.
func (s *State) accepted(m *State, t Terms) (*State, error) {
	if m == s {
		return s, nil
	}
	if n := max(len(m.members), len(m.tombs)); n > MaxMembers {
		return s, invalid(FaultLimit, NodeID{}, "%d members or tombstones with what is known here, at most %d", n, MaxMembers)
	}
	if err := s.acceptMembers(&m.core); err != nil {
		return s, err
	}
	if err := s.acceptVoters(&m.core, t); err != nil {
		return s, err
	}
	if err := s.acceptDowning(&m.core, t); err != nil {
		return s, err
	}
	return m, nil
}

// joined is the part of the result of joining two cores that the join of the clocks
// needs.
type joined struct {
	tombs   []*Tombstone // Before pruning.
	removed bool         // A tombstone of one side has removed a member of the other.
}

// join sets c to the join of a and b, normalised.
func (s *core) join(a, b *core) joined {
	s.registers = a.registers.join(&b.registers)
	s.rows = joinSorted(a.rows, b.rows, func(x, y *ObserverRows) int {
		return compareNodes(&x.Observer, &y.Observer)
	}, joinRows)
	s.members = joinSorted(a.members, b.members, func(x, y *Member) int {
		return compareNodes(&x.Node, &y.Node)
	}, joinMembers)
	s.tombs = joinSorted(a.tombs, b.tombs, func(x, y *Tombstone) int {
		return compareNodes(&x.Node, &y.Node)
	}, joinTombstones)
	j := joined{tombs: s.tombs}
	if !sameSlice(s.tombs, a.tombs) || !sameSlice(s.tombs, b.tombs) {
		left := withoutTombstones(s.members, s.tombs)
		j.removed = len(left) != len(s.members)
		s.members = left
	}
	if j.removed {
		s.rows = restrictRows(s.rows, s.members)
	}
	s.prune()
	if !sameSlice(s.tombs, a.tombs) || j.removed {
		s.share(b)
		s.share(a)
	}
	return j
}

// share replaces lists of s by equal lists of o, so that memory is shared even after
// something was dropped.
func (s *core) share(o *core) {
	if slices.Equal(s.members, o.members) {
		s.members = o.members
	}
	if slices.Equal(s.tombs, o.tombs) {
		s.tombs = o.tombs
	}
	if slices.EqualFunc(s.rows, o.rows, equalRows) {
		s.rows = o.rows
	}
}

// prune drops the tombstones from before PrunedBefore.
func (s *core) prune() {
	old := func(t *Tombstone) bool { return t.RemovedAt < int64(s.pruned.value) }
	if slices.ContainsFunc(s.tombs, old) {
		s.tombs = slices.DeleteFunc(slices.Clone(s.tombs), old)
	}
}

// clocks returns the join of the clocks of s and o for the joined core m, and the
// edits of removed nodes for which the join has no entry any more.
func (j joined) clocks(s, o *State, m *core) (VectorClock, unaccountedKeys) {
	clock := s.clock.Merge(o.clock)
	if !j.removed {
		return clock, unaccountedKeys{}
	}
	var lost []span
	for _, t := range j.tombs {
		if n := clock.Get(t.Node); n > t.Last {
			lost = append(lost, span{node: t.Node, above: t.Last, to: n})
		}
	}
	return clock.only(m.members), unaccountedOf(lost, s.history, o.history)
}

// sameVersion reports whether s and o hold the same edits: their clocks are equal, and
// so are PrunedBefore and the tombstones, which say of which nodes the clocks no
// longer have entries. It is equality in a lattice, of which [State.Merge] computes
// the join; that makes the rule for the seen set associative.
func (s *State) sameVersion(o *State) bool {
	return s.pruned == o.pruned && s.clock.is(o.clock) &&
		(sameSlice(s.tombs, o.tombs) || slices.EqualFunc(s.tombs, o.tombs, sameRemoval))
}

// isCore reports whether c is o as far as a join can tell: a join returns the
// very slices of an operand when that operand is the result.
func (s *core) isCore(o *core) bool {
	return s.registers == o.registers &&
		sameSlice(s.members, o.members) && sameSlice(s.tombs, o.tombs) && sameSlice(s.rows, o.rows)
}

// is reports whether c and o are equal, which is cheap if they share memory.
func (c VectorClock) is(o VectorClock) bool {
	return sameSlice(c.counts, o.counts) && sameSlice(c.nodes, o.nodes) || c.Equal(o)
}

// joinSorted joins two sorted lists element by element. It returns a itself if a is
// the result, otherwise b itself if b is. The join of two elements must return the
// first if the second adds nothing to it, otherwise the second if the first adds
// nothing.
func joinSorted[T any](a, b []*T, compare func(x, y *T) int, join func(x, y *T) *T) []*T {
	if len(b) == 0 || sameSlice(a, b) {
		return a
	}
	if len(a) == 0 {
		return b
	}
	var out []*T // Nil while the result is a up to i.
	isB := true  // The result is b up to j.
	i, j := 0, 0
	put := func(element *T, fromA bool) {
		if out == nil && !fromA {
			out = append(make([]*T, 0, len(a)+len(b)-j), a[:i]...)
		}
		if out != nil {
			out = append(out, element)
		}
	}
	for i < len(a) || j < len(b) {
		order := 0
		switch {
		case j == len(b):
			order = -1
		case i == len(a):
			order = 1
		case a[i] != b[j]:
			order = compare(a[i], b[j])
		}
		switch {
		case order < 0:
			put(a[i], true)
			isB = false
			i++
		case order > 0:
			put(b[j], false)
			j++
		default:
			element := a[i]
			if b[j] != element {
				element = join(a[i], b[j])
			}
			put(element, element == a[i])
			isB = isB && element == b[j]
			i, j = i+1, j+1
		}
	}
	switch {
	case out == nil:
		return a
	case isB:
		return b
	}
	return out
}

// withoutTombstones drops the members that have a tombstone. Both lists are
// sorted.
func withoutTombstones(members []*Member, tombs []*Tombstone) []*Member {
	j := 0
	dead := func(m *Member) bool {
		for j < len(tombs) && compareNodes(&tombs[j].Node, &m.Node) < 0 {
			j++
		}
		return j < len(tombs) && tombs[j].Node == m.Node
	}
	first := slices.IndexFunc(members, dead)
	if first < 0 {
		return members
	}
	kept := append(make([]*Member, 0, len(members)-1), members[:first]...)
	for _, m := range members[first+1:] {
		if !dead(m) {
			kept = append(kept, m)
		}
	}
	return kept
}
