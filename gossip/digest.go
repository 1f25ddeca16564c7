// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"slices"
	"sync/atomic"
)

// Hashes and digests, by which two nodes find out cheaply which of them lacks edits. A
// clock is sent as the difference from a base, a clock that every member had seen; a
// digest is that difference with hashes of the version and the seen set; CompareDigest
// decides what to send next.

// Hash is a 64-bit FNV-1a hash with a final mix. It detects differences, and does not
// protect against forgery. It is part of the wire.
type Hash uint64

const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

func (h *Hash) uint64(v uint64) {
	x := uint64(*h)
	for range 8 {
		x = (x ^ v&0xff) * fnvPrime
		v >>= 8
	}
	*h = Hash(x)
}

func (h *Hash) node(n *NodeID) {
	x := uint64(*h)
	for i := range len(n.Address.Host) {
		x = (x ^ uint64(n.Address.Host[i])) * fnvPrime
	}
	// A byte that is in no host ends the host.
	x = (x ^ '#') * fnvPrime
	x = (x ^ uint64(n.Address.Port)) * fnvPrime
	x = (x ^ uint64(n.UID)) * fnvPrime
	x ^= x >> 29
	*h = Hash(x)
}

// sum is the splitmix64 finaliser, so that a change of the last input changes all
// bits. The result is never 0, which means no clock.
func (h Hash) sum() Hash {
	x := uint64(h)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	if x == 0 {
		x = 1
	}
	return Hash(x)
}

// Hash returns the hash of the entries. The hash of the empty clock is 0.
func (c VectorClock) Hash() Hash {
	if c.Len() == 0 {
		return 0
	}
	h := Hash(fnvOffset)
	for i := range c.nodes {
		h.node(&c.nodes[i])
		h.uint64(c.counts[i])
	}
	return h.sum()
}

// versionHash is the hash of what [State.sameVersion] compares.
func (s *State) versionHash() Hash {
	if known := atomic.LoadUint64(&s.version); known != 0 {
		return Hash(known)
	}
	h := s.hashVersion()
	atomic.StoreUint64(&s.version, uint64(h))
	return h
}

func (s *State) hashVersion() Hash {
	h := Hash(fnvOffset)
	h.uint64(uint64(s.clock.Hash()))
	h.uint64(uint64(s.pruned.value))
	for _, t := range s.tombs {
		h.node(&t.Node)
		h.uint64(t.Last)
		h.uint64(uint64(t.RemovedAt))
	}
	return h.sum()
}

func (s *State) seenHash() Hash {
	if known := atomic.LoadUint64(&s.seenSum); known != 0 {
		return Hash(known)
	}
	h := s.hashSeen()
	atomic.StoreUint64(&s.seenSum, uint64(h))
	return h
}

func (s *State) hashSeen() Hash {
	h := Hash(fnvOffset)
	for i := range s.seen.all(len(s.members)) {
		h.node(&s.members[i].Node)
	}
	return h.sum()
}

// base is a clock that all members of a state had seen.
type base struct {
	hash  Hash
	clock VectorClock
}

// basesKept is how many bases a state keeps. Two nodes usually have one of the last
// two in common.
const basesKept = 4

// rebase keeps the clock as a base if every member has seen it. Members that are
// Exiting or Down need not have. It is called on states to which no other code has a
// reference yet.
func (s *State) rebase() {
	if len(s.bases) > 0 && s.bases[0].clock.is(s.clock) || s.clock.Len() == 0 {
		return
	}
	if len(s.members)-s.seen.count() > 0 {
		for i, m := range s.members {
			if m.Status < Exiting && !s.seen.has(i) {
				return
			}
		}
	}
	s.adopt([]base{{hash: s.clock.Hash(), clock: s.clock}})
}

// adopt puts the bases that s does not know yet before the known ones.
func (s *State) adopt(bases []base) {
	var news []base
	for _, b := range bases {
		if !slices.ContainsFunc(s.bases, func(k base) bool { return k.hash == b.hash }) {
			news = append(news, b)
		}
	}
	if len(news) > 0 {
		s.bases = slices.Concat(news, s.bases)
		s.bases = s.bases[:min(len(s.bases), basesKept):min(len(s.bases), basesKept)]
	}
}

// ClockRef is a clock written as the difference from another clock, which both sides
// are expected to know.
type ClockRef struct {
	Base    Hash  // The hash of the other clock, 0 for the empty clock.
	Entries []Dot // The entries that differ, sorted by node. Count 0: the clock has no entry.
}

func (r ClockRef) equal(o ClockRef) bool {
	return r.Base == o.Base && slices.Equal(r.Entries, o.Entries)
}

// resolve returns the clock that r refers to, or false if s does not know its base.
func (s *State) resolve(r ClockRef) (VectorClock, bool) {
	b, ok := s.baseOf(r.Base)
	if !ok {
		return VectorClock{}, false
	}
	if b.Len() == 0 {
		c, err := ClockOf(r.Entries)
		return c, err == nil
	}
	return b.overlay(r.Entries), true
}

// baseOf returns the base with the given hash, if s keeps it.
func (s *State) baseOf(h Hash) (VectorClock, bool) {
	if h == 0 {
		return VectorClock{}, true
	}
	for _, b := range s.bases {
		if b.hash == h {
			return b.clock, true
		}
	}
	return VectorClock{}, false
}

// hashOf returns the hash of clock, to which r refers.
func (r ClockRef) hashOf(clock VectorClock) Hash {
	if len(r.Entries) == 0 {
		return r.Base
	}
	return clock.Hash()
}

// refTo returns c relative to the base with the given hash if s keeps it, otherwise in
// full.
func (s *State) refTo(c VectorClock, h Hash) ClockRef {
	b, ok := s.baseOf(h)
	if !ok {
		h = 0
	}
	return ClockRef{Base: h, Entries: c.diff(b)}
}

// Digest is a summary of a state for comparison: which edits the state holds, and a
// hash of its seen set. It stays small at any number of members, because it has only
// the entries that changed since all members last agreed.
type Digest struct {
	Cluster ClusterID
	Clock   ClockRef
	Version Hash // Hash of the clock and the tombstones.
	Seen    Hash // Hash of the seen set.
}

// Digest returns the summary of s, relative to the last clock that, as far as s knows,
// every member has seen.
func (s *State) Digest() Digest {
	h := Hash(0)
	if len(s.bases) > 0 {
		h = s.bases[0].hash
	}
	return s.digest(h)
}

// FullDigest returns a summary that every node understands, at the cost of
// the whole clock.
func (s *State) FullDigest() Digest { return s.digest(0) }

// DigestFor returns a summary of s that the sender of d is sure to understand:
// relative to the base of d if s keeps it, in full otherwise. A node sends it in
// answer to [Older], [Concurrent] and [Undecided], and with [ErrNotCovered]. Full
// digests are answered by full ones, so that every repair ends when both nodes have
// the same state.
func (s *State) DigestFor(d Digest) Digest { return s.digest(d.Clock.Base) }

// Fingerprint returns a hash of all that two states are compared by: two nodes with equal
// fingerprints have nothing to tell each other. It is never 0. It says nothing of which of
// two states has more, so nothing but a comparison may be begun because of it.
func (s *State) Fingerprint() Hash {
	h := Hash(fnvOffset)
	h.uint64(uint64(s.cluster.value.Born))
	h.uint64(s.cluster.value.Nonce)
	h.uint64(uint64(s.versionHash()))
	h.uint64(uint64(s.seenHash()))
	return h.sum()
}

func (s *State) digest(h Hash) Digest {
	return Digest{Cluster: s.cluster.value, Clock: s.refTo(s.clock, h), Version: s.versionHash(), Seen: s.seenHash()}
}

// CompareDigest returns the relation of s to the state that d summarises, and so what
// to send to the sender of d:
//
//	Same          nothing
//	SeenDiffers   send DeltaTo(d), which carries the seen set
//	Newer         send DeltaTo(d)
//	Older         send DigestFor(d), which asks for the news
//	Concurrent    send DeltaTo(d) and then DigestFor of the result
//	Undecided     send DigestFor(d), so that the sender can decide
//	OtherCluster  refuse the sender
//
// Clock entries of nodes that s knows to be removed are ignored, and so are entries
// that the sender has dropped.
func (s *State) CompareDigest(d Digest) Ordering {
	if !s.cluster.value.IsZero() && !d.Cluster.IsZero() && s.cluster.value != d.Cluster {
		return OtherCluster
	}
	if d.Version == s.versionHash() {
		if d.Seen == s.seenHash() {
			return Same
		}
		return SeenDiffers
	}
	theirs, ok := s.resolve(d.Clock)
	if !ok {
		return Undecided
	}
	// Clocks that are equal except for removed nodes do not tell which side has
	// the tombstones: both send, and the merges agree.
	if order := s.compareLive(theirs, d.Clock.Entries); order != Same {
		return order
	}
	return Concurrent
}

// compareLive compares the clock of s with the clock of a peer, without the nodes that
// either of them knows to be removed.
func (s *State) compareLive(theirs VectorClock, entries []Dot) Ordering {
	less, more := false, false
	zipClocks(s.clock, theirs, func(node *NodeID, mine, other uint64) bool {
		switch {
		case mine < other:
			_, removed := findTombstone(s.tombs, *node)
			less = less || !removed
		case mine > other:
			more = more || !isDropped(entries, *node)
		}
		return !(less && more)
	})
	return orderingOf(less, more)
}

// isDropped reports whether entries have the node with count 0: the clock has no entry
// of it any more.
func isDropped(entries []Dot, node NodeID) bool {
	i, ok := slices.BinarySearchFunc(entries, node, func(e Dot, id NodeID) int { return compareNodes(&e.Node, &id) })
	return ok && entries[i].Count == 0
}

// Validate reports whether d can be the summary of a state. It is called on digests
// from other nodes. The errors unwrap to [ErrInvalid].
func (d Digest) Validate() error { return d.Clock.Validate() }

// Validate reports whether r can be part of a digest or delta: sorted entries
// of valid nodes, without doubles, in bounds.
func (r ClockRef) Validate() error {
	if len(r.Entries) > 2*MaxMembers {
		return invalid(FaultLimit, NodeID{}, "%d clock entries, at most %d", len(r.Entries), 2*MaxMembers)
	}
	for i, e := range r.Entries {
		switch {
		case e.Count > maxCount:
			return invalid(FaultCounter, e.Node, "clock entry %d", e.Count)
		case e.Count == 0 && r.Base == 0:
			return invalid(FaultCounter, e.Node, "clock entry 0 in a full clock")
		case i > 0 && compareNodes(&r.Entries[i-1].Node, &e.Node) >= 0:
			return invalid(FaultDuplicate, e.Node, "clock entries out of order")
		}
		if err := e.Node.Validate(); err != nil {
			return err
		}
	}
	return nil
}
