// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// The state itself: its invariants, the questions about its members, tombstones and
// registers, the seen set that See extends, and its forms for peers, encoders and
// people. The questions about reachability and leadership are in files of their own.

// State is everything on which the members of a cluster agree: the members and which
// of them reach each other, with the clock that says which edits it holds and the set
// of members that are known to hold the same edits.
//
// A State is immutable: each method that changes something returns another State,
// which shares what did not change. Any number of goroutines may use one. States are
// made by [New], [FromParts] and the methods of other states; the zero State is empty
// and valid.
//
// Invariants, which hold for every State:
//
//	S1  members, tombstones, rows and clock are sorted by node, without doubles
//	S2  a node is not a member and a tombstone at once
//	S3  rows are by and about members only
//	S4  clock entries and the seen set are of members only
//	S5  no tombstone is older than PrunedBefore
type State struct {
	// Hashes of the version and of the seen set, computed on first use, 0 until then.
	// They are the only memory that changes after a State is made, and are read and
	// written atomically: they are first in the struct so that they are aligned on
	// 32-bit machines, and [State.copy] leaves them out.
	version, seenSum uint64

	core
	clock VectorClock
	seen  bitset

	// What follows is auxiliary: it is no part of equality and is not sent as
	// part of a state.

	history history
	bases   []base          // Clocks that all members had seen, the latest first.
	orphans unaccountedKeys // Effects of edits for which the clock has no entry any more.
}

// core is the part of the state that the edits build: a record for each
// [Key]. What follows from it alone, without the clock and the seen set, are its
// methods; a State has them too.
type core struct {
	registers

	members []*Member
	tombs   []*Tombstone
	rows    []*ObserverRows
}

// New returns the empty state of a cluster. The cluster may be zero: it is
// then taken from the first state that is merged in.
func New(cluster ClusterID) *State {
	return &State{core: core{registers: registers{cluster: highest[ClusterID]{cluster}}}}
}

// Cluster returns the cluster that s belongs to, zero if it is not known yet.
func (s *core) Cluster() ClusterID { return s.cluster.value }

// Members returns the members sorted by node id, removed ones not included.
// The slice and the members must not be modified.
func (s *core) Members() []*Member { return s.members }

// Member returns the member with the given id. It is nil if the node is not known or
// was removed; [State.Removed] distinguishes these cases.
func (s *core) Member(id NodeID) *Member {
	if i, ok := findMember(s.members, id); ok {
		return s.members[i]
	}
	return nil
}

// ByAddress returns the member at an address, or nil. Of several incarnations it
// prefers those that are not Down, and of these returns the youngest.
func (s *core) ByAddress(addr Address) *Member {
	i, _ := findMember(s.members, NodeID{Address: addr})
	var best *Member
	for ; i < len(s.members) && s.members[i].Node.Address == addr; i++ {
		m := s.members[i]
		switch {
		case best == nil, best.Status == Down && m.Status != Down:
			best = m
		case (m.Status == Down) == (best.Status == Down) && best.OlderThan(m):
			best = m
		}
	}
	return best
}

// Removed returns the tombstone of a node that was a member once. Tombstones
// are forgotten in the end, see [State.PrunedBefore].
func (s *core) Removed(id NodeID) (Tombstone, bool) {
	if i, ok := findTombstone(s.tombs, id); ok {
		return *s.tombs[i], true
	}
	return Tombstone{}, false
}

// Tombstones returns the tombstones sorted by node id, as a new slice.
func (s *core) Tombstones() []Tombstone {
	all := make([]Tombstone, len(s.tombs))
	for i, t := range s.tombs {
		all[i] = *t
	}
	return all
}

// TombstonesSince returns the tombstones that s has and o does not, sorted by node id.
// It costs nothing when both share their tombstones.
func (s *core) TombstonesSince(o *State) []Tombstone {
	if sameSlice(s.tombs, o.tombs) {
		return nil
	}
	var news []Tombstone
	for _, t := range s.tombs {
		if _, known := findTombstone(o.tombs, t.Node); !known {
			news = append(news, *t)
		}
	}
	return news
}

// Clock returns the clock: which edits s holds.
func (s *State) Clock() VectorClock { return s.clock }

// Seen reports whether a member is known to hold the edits that s holds.
func (s *State) Seen(id NodeID) bool {
	i, ok := findMember(s.members, id)
	return ok && s.seen.has(i)
}

// SeenBy returns the members that are known to hold the edits that s holds,
// sorted, as a new slice.
func (s *State) SeenBy() []NodeID {
	nodes := make([]NodeID, 0, s.seen.count())
	for i := range s.seen.all(len(s.members)) {
		nodes = append(nodes, s.members[i].Node)
	}
	return nodes
}

// Config returns the voters.
func (s *core) Config() Voters { return s.config.get() }

// LastUpNumber returns the up-number that the next one is above: the highest that
// was given, or that a removed member can have given, see [Edit.Remove].
func (s *core) LastUpNumber() UpNumber { return s.lastUp.value }

// PrunedBefore returns the wall time before which tombstones are forgotten,
// the zero Time if none were.
func (s *core) PrunedBefore() time.Time {
	if s.pruned.value == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(s.pruned.value)).UTC()
}

// EpochBorn returns the birth with which the epochs of the cluster begin, in unix
// milliseconds: that of the cluster, or a later one if a node joined that had been
// in a cluster with later epochs.
func (s *core) EpochBorn() int64 { return max(s.cluster.value.Born, int64(s.epochs.value)) }

// Yielded returns to which cluster this one has yielded, the zero Yield if it goes on.
// Nothing is hosted in a cluster that has yielded.
func (s *core) Yielded() Yield { return s.yielded.value }

// Downing returns the downing strategy of the cluster.
func (s *core) Downing() DowningRegister { return s.downing.get() }

// See returns s with self in the seen set, and s itself if self is in it already or is
// not a member. It is no edit. A node calls it for each state that it adopts.
func (s *State) See(self NodeID) *State {
	i, ok := findMember(s.members, self)
	if !ok || s.seen.has(i) {
		return s
	}
	c := s.copy()
	c.version = atomic.LoadUint64(&s.version) // The clock stays as it is.
	c.seen = newBitset(len(s.members))
	copy(c.seen, s.seen)
	c.seen.set(i)
	c.rebase()
	return &c
}

// Unsee returns s without self in the seen set, and s itself if self is not in it. It
// is for a state that self has just made by an edit or a merge, and has not sent:
// other nodes may count on self's having seen the state only once it is on the disk of
// self.
func (s *State) Unsee(self NodeID) *State {
	i, ok := findMember(s.members, self)
	if !ok || !s.seen.has(i) {
		return s
	}
	c := s.copy()
	c.version = atomic.LoadUint64(&s.version) // The clock stays as it is.
	c.seen = newBitset(len(s.members))
	copy(c.seen, s.seen)
	c.seen.clear(i)
	return &c
}

// Peers returns up to n different members to gossip with, in random order, without
// self and without members that self has marked as unreachable. Members that only
// others cannot reach are included, since news may reach them through self.
//
// Each pick prefers members that have not seen s with a probability of 0.8 up to 400
// members. Above, the probability falls linearly to 0.08 at 1,200 members, so that a
// large cluster does not send everything to the few that lag behind.
func (s *State) Peers(self NodeID, rnd *rand.Rand, n int) []NodeID {
	return s.PeersAmong(self, rnd, n, func(NodeID) bool { return true })
}

// PeersAmong is [State.Peers] restricted to the members for which among returns true.
// Among is called once for each member except self, in the order of node ids.
func (s *State) PeersAmong(self NodeID, rnd *rand.Rand, n int, among func(NodeID) bool) []NodeID {
	return peersAmong(&s.core, s.seen, self, rnd, n, among)
}

// Parts returns the content of s, in sorted lists, which must not be modified.
func (s *State) Parts() Raw {
	return Raw{
		Cluster:      s.cluster.value,
		Members:      s.members,
		Tombstones:   s.Tombstones(),
		Clock:        s.clock.Entries(),
		Seen:         s.SeenBy(),
		Observers:    s.rows,
		Config:       s.Config(),
		LastUpNumber: s.lastUp.value,
		PrunedBefore: int64(s.pruned.value),
		Downing:      s.Downing(),
		EpochBorn:    int64(s.epochs.value),
		Yielded:      s.yielded.value,
		Unknown:      s.unknown.value,
	}
}

// Describe returns s as text: one line a record, sorted, the same for equal
// states. It is meant for people, golden files and comparison, not for
// parsing.
func (s *State) Describe() string {
	var b strings.Builder
	s.describe(&b, s.seen)
	fmt.Fprintf(&b, "clock %v\n", s.clock)
	return b.String()
}

// copy returns the fields of s, without those that change after a State is made.
func (s *State) copy() State {
	return State{core: s.core, clock: s.clock, seen: s.seen, history: s.history, bases: s.bases, orphans: s.orphans}
}

// Equal reports whether s and o hold the same members, tombstones, rows and
// registers, and have equal clocks and seen sets.
func (s *State) Equal(o *State) bool {
	return s == o || (s.equalCore(&o.core) && s.clock.Equal(o.clock) && s.seen.equal(o.seen))
}

func (s *core) equalCore(o *core) bool {
	return s.equalRegisters(&o.registers) &&
		slices.EqualFunc(s.members, o.members, func(a, b *Member) bool { return a == b || equalMembers(a, b) }) &&
		slices.EqualFunc(s.tombs, o.tombs, func(a, b *Tombstone) bool { return a == b || *a == *b }) &&
		slices.EqualFunc(s.rows, o.rows, equalRows)
}

// findMember is a binary search, written out because it is the most frequent operation
// in a step of a node: without a call and a copy of the id for each comparison it
// takes half the time.
func findMember(members []*Member, id NodeID) (int, bool) {
	low, high := 0, len(members)
	for low < high {
		middle := int(uint(low+high) >> 1)
		order := compareNodes(&members[middle].Node, &id)
		if order == 0 {
			return middle, true
		}
		if order < 0 {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low, false
}

func findTombstone(tombs []*Tombstone, id NodeID) (int, bool) {
	return slices.BinarySearchFunc(tombs, id, func(t *Tombstone, id NodeID) int {
		return compareNodes(&t.Node, &id)
	})
}
