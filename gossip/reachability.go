// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"cmp"
	"slices"
)

// Which members each member cannot reach. Each observer writes its own rows; of two
// copies the newer counts. Below, the questions that the rest of the package asks
// about all rows together, of which rows of Exiting or Down observers are left out.

// Row is the statement of one observer about one subject.
type Row struct {
	Subject NodeID
	Status  ReachStatus
	Version uint64 // The version of the observer's rows in which this row was written.
}

// ObserverRows are all statements of one observer: a row for each member that it
// cannot reach. Only the observer writes them, and raises the version each time, so
// that of two copies the one with the higher version is newer. An observer that
// reaches all members keeps its version without rows. ObserverRows is immutable by
// contract.
type ObserverRows struct {
	Observer NodeID
	Version  uint64
	Rows     []Row // Sorted by subject.
}

// Record is one row together with its observer.
type Record struct {
	Observer, Subject NodeID      // Who makes the statement, and about whom.
	Status            ReachStatus // What the observer says.
	Version           uint64      // The version of the observer's rows in which this row was written.
}

func (r *ObserverRows) find(subject NodeID) (int, bool) {
	return slices.BinarySearchFunc(r.Rows, subject, func(row Row, s NodeID) int {
		return compareNodes(&row.Subject, &s)
	})
}

// joinRows returns the copy with the higher version. Equal versions with different
// rows exist only if two processes have used one identity; then the union is taken,
// which suspects too much rather than too little.
func joinRows(a, b *ObserverRows) *ObserverRows {
	switch {
	case a == b || a.Version > b.Version:
		return a
	case b.Version > a.Version:
		return b
	case slices.Equal(a.Rows, b.Rows):
		return a
	}
	rows := slices.Concat(a.Rows, b.Rows)
	slices.SortFunc(rows, func(x, y Row) int {
		return cmp.Or(compareNodes(&x.Subject, &y.Subject),
			-cmp.Compare(x.Version, y.Version), -cmp.Compare(x.Status, y.Status))
	})
	rows = slices.CompactFunc(rows, func(x, y Row) bool { return x.Subject == y.Subject })
	switch {
	case slices.Equal(rows, a.Rows):
		return a
	case slices.Equal(rows, b.Rows):
		return b
	}
	return &ObserverRows{Observer: a.Observer, Version: a.Version, Rows: rows}
}

func equalRows(a, b *ObserverRows) bool {
	return a == b || (a.Observer == b.Observer && a.Version == b.Version && slices.Equal(a.Rows, b.Rows))
}

// restrictRows drops rows by and about nodes that are not members.
func restrictRows(sets []*ObserverRows, members []*Member) []*ObserverRows {
	isMember := func(id NodeID) bool {
		_, ok := findMember(members, id)
		return ok
	}
	isClean := func(set *ObserverRows) bool {
		return isMember(set.Observer) &&
			!slices.ContainsFunc(set.Rows, func(row Row) bool { return !isMember(row.Subject) })
	}
	if !slices.ContainsFunc(sets, func(set *ObserverRows) bool { return !isClean(set) }) {
		return sets
	}
	kept := make([]*ObserverRows, 0, len(sets))
	for _, set := range sets {
		switch {
		case isClean(set):
			kept = append(kept, set)
		case isMember(set.Observer):
			c := *set
			c.Rows = slices.DeleteFunc(slices.Clone(set.Rows), func(row Row) bool { return !isMember(row.Subject) })
			kept = append(kept, &c)
		}
	}
	return kept
}

// Records returns all rows of all observers, sorted by observer and subject,
// including those of observers that are Down.
func (s *core) Records() []Record {
	var records []Record
	for _, set := range s.rows {
		for _, row := range set.Rows {
			records = append(records, Record{
				Observer: set.Observer, Subject: row.Subject, Status: row.Status, Version: row.Version,
			})
		}
	}
	return records
}

// RowsOf returns the rows of one observer, sorted by subject. The slice must not be
// modified.
func (s *core) RowsOf(observer NodeID) []Row {
	if i, ok := s.findRows(observer); ok {
		return s.rows[i].Rows
	}
	return nil
}

// SharesRows reports whether s and o have their rows in the same memory, and so have
// equal rows. The check costs nothing, and mostly succeeds for a state and the state
// that it was made from when the rows did not change. Equal rows need not be shared.
func (s *core) SharesRows(o *State) bool { return sameSlice(s.rows, o.rows) }

// Reachable reports whether no observer has a row about subject. Rows of members that
// are Exiting or Down do not count.
func (s *core) Reachable(subject NodeID) bool { return !s.isObserved(subject, s.counts) }

// ReachableFrom reports whether observer has no row about subject.
func (s *core) ReachableFrom(observer, subject NodeID) bool {
	i, ok := s.findRows(observer)
	if !ok {
		return true
	}
	_, ok = s.rows[i].find(subject)
	return !ok
}

// Observers returns the members that have a row about subject, sorted. Members that
// are Exiting or Down are left out, as in [State.Reachable].
func (s *core) Observers(subject NodeID) []NodeID {
	var observers []NodeID
	for _, set := range s.rows {
		if _, ok := set.find(subject); ok && s.counts(set.Observer) {
			observers = append(observers, set.Observer)
		}
	}
	return observers
}

// Unreachable returns the members that are not [State.Reachable], sorted.
func (s *core) Unreachable() []NodeID {
	var nodes []NodeID
	for i := range s.unreachable(isBelieved).all(len(s.members)) {
		nodes = append(nodes, s.members[i].Node)
	}
	return nodes
}

// counts reports whether the rows of an observer count, see isBelieved.
func (s *core) counts(observer NodeID) bool {
	m := s.Member(observer)
	return m != nil && isBelieved(m)
}

// isBelieved reports whether the rows of a member count. They do not when the member
// is Down, and not when it is Exiting: no member waits for an Exiting member and none
// downs it, so that if it ended with a row that it did not take back, the cluster
// could not converge any more, and without convergence it would not be removed.
func isBelieved(observer *Member) bool { return observer.Status < Exiting }

func (s *core) isObserved(subject NodeID, counts func(observer NodeID) bool) bool {
	for _, set := range s.rows {
		if len(set.Rows) == 0 {
			continue
		}
		if _, ok := set.find(subject); ok && counts(set.Observer) {
			return true
		}
	}
	return false
}

// unreachable returns, by their index in the list of members, the members about which
// an observer that counts has a row.
func (s *core) unreachable(counts func(observer *Member) bool) bitset {
	var marked bitset
	next := 0 // Observers are sorted as members are.
	for _, set := range s.rows {
		if len(set.Rows) == 0 {
			continue
		}
		place, ok := findMember(s.members[next:], set.Observer)
		next += place
		if !ok || !counts(s.members[next]) {
			continue
		}
		if marked == nil {
			marked = newBitset(len(s.members))
		}
		from := 0 // Rows are sorted as members are.
		for _, row := range set.Rows {
			i, ok := findMember(s.members[from:], row.Subject)
			if ok {
				marked.set(from + i)
			}
			from += i
		}
	}
	return marked
}

func (s *core) findRows(observer NodeID) (int, bool) { return findSet(s.rows, observer) }

func findSet(sets []*ObserverRows, observer NodeID) (int, bool) {
	return slices.BinarySearchFunc(sets, observer, func(set *ObserverRows, id NodeID) int {
		return compareNodes(&set.Observer, &id)
	})
}
