// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import "slices"

// Deltas: the difference between two states, made from the history of edits (Delta,
// DeltaTo), checked when it comes from another node (Validate), and applied to a state
// that covers its beginning (Apply). When the history does not reach back far enough,
// the delta is the whole state.

// Registers is the part of a state with the key [KeyRegisters].
type Registers struct {
	LastUpNumber UpNumber
	PrunedBefore int64 // Unix milliseconds, 0: nothing pruned.
	Downing      DowningRegister
	EpochBorn    int64 // Unix milliseconds; 0: the birth of the cluster.
	Yielded      Yield // Zero: the cluster goes on.
	Unknown      Unknown
}

// Delta is the difference that takes a receiver from one clock to another: the edits
// between them, each with the keys of the records that it touched, and the present
// value of each of those records. Applying it to a state that covers From has the
// effect of merging the sender's whole state. It is a plain value, immutable by
// contract. A Delta from another node must be validated first, see [Delta.Validate].
type Delta struct {
	Cluster ClusterID
	Full    bool     // The whole state: every receiver can apply it. From is empty.
	From    ClockRef // The clock that the receiver must cover.
	Clock   ClockRef // The sender's clock. Base is the hash of the clock From.
	Version Hash     // Version of the sender's state, as in [Digest].
	Seen    []NodeID // The members that have seen the sender's state, sorted.

	Edits      []Edited // Sorted. Empty if Full.
	Members    []*Member
	Tombstones []Tombstone
	Observers  []*ObserverRows
	Config     *Voters    // Nil: not touched.
	Registers  *Registers // Nil: not touched.

	// whole is the state of a full delta that this process made, so that its parts
	// need no check. It holds no more than the parts say.
	whole *State
}

// Equal reports whether d and o have the same content.
func (d Delta) Equal(o Delta) bool {
	sameKeys := func(a, b Edited) bool { return a.Dot == b.Dot && slices.Equal(a.Keys, b.Keys) }
	sameMember := func(a, b *Member) bool { return a == b || equalMembers(a, b) }
	return d.Cluster == o.Cluster && d.Full == o.Full && d.Version == o.Version &&
		d.From.equal(o.From) && d.Clock.equal(o.Clock) && slices.Equal(d.Seen, o.Seen) &&
		slices.EqualFunc(d.Edits, o.Edits, sameKeys) &&
		slices.EqualFunc(d.Members, o.Members, sameMember) &&
		slices.Equal(d.Tombstones, o.Tombstones) && slices.EqualFunc(d.Observers, o.Observers, equalRows) &&
		equalOrNil(d.Config, o.Config, sameVoters) &&
		equalOrNil(d.Registers, o.Registers, func(a, b *Registers) bool { return *a == *b })
}

func equalOrNil[T any](a, b *T, equal func(a, b *T) bool) bool {
	if a == nil || b == nil {
		return a == b
	}
	return equal(a, b)
}

// Delta returns what a node with the given clock lacks of s. If the history does not
// hold every edit in between, the delta is the whole state.
func (s *State) Delta(theirs VectorClock) Delta {
	return s.delta(theirs, ClockRef{Entries: theirs.Entries()}, s.versionHash())
}

// DeltaTo returns what the node that sent d lacks of s. If s cannot tell, the delta is
// the whole state.
func (s *State) DeltaTo(d Digest) Delta {
	theirs, ok := s.resolve(d.Clock)
	version := s.versionHash()
	if !ok || (d.Version != version && s.compareLive(theirs, d.Clock.Entries) == Same) {
		return s.full()
	}
	return s.delta(theirs, d.Clock, version)
}

// DeltaWithoutBase is [State.DeltaTo] with clocks in full. It is larger, by an entry for each member, and fits
// whichever bases the receiver keeps: it is for the last message of a node, after which nobody can ask.
func (s *State) DeltaWithoutBase(d Digest) Delta {
	theirs, ok := s.resolve(d.Clock)
	if !ok {
		return s.full()
	}
	return s.Delta(theirs)
}

func (s *State) delta(theirs VectorClock, from ClockRef, version Hash) Delta {
	edits, ok := s.history.keys(s.missingFrom(theirs))
	if !ok || !s.orphans.isZero() {
		return s.full()
	}
	d := Delta{
		Cluster: s.cluster.value, From: from, Version: version, Seen: s.SeenBy(), Edits: edits,
		Clock: ClockRef{Base: from.hashOf(theirs), Entries: s.clock.diff(theirs)},
	}
	var keys []Key
	for _, e := range edits {
		keys = append(keys, e.Keys...)
	}
	// The receiver may have missed a removal whose own edit is of a node that
	// was removed as well. The receiver's clock shows that: it still has an entry of the node.
	for _, t := range s.tombs {
		if theirs.Get(t.Node) > 0 {
			keys = append(keys, Key{Type: KeyMember, Node: t.Node})
		}
	}
	for _, key := range sortedKeys(keys) {
		d.take(s, key)
	}
	return d
}

// missingFrom returns the edits that s holds and a node with the given clock does not.
// The edits of a removed node that the clock still counts are included up to the last
// edit that its tombstone covers.
func (s *State) missingFrom(theirs VectorClock) []span {
	var spans []span
	zipClocks(s.clock, theirs, func(node *NodeID, mine, other uint64) bool {
		if mine == 0 {
			if i, removed := findTombstone(s.tombs, *node); removed {
				mine = s.tombs[i].Last
			}
		}
		if mine > other {
			spans = append(spans, span{node: *node, above: other, to: mine})
		}
		return true
	})
	return spans
}

// take adds the present value of one record.
func (d *Delta) take(s *State, key Key) {
	switch key.Type {
	case KeyMember:
		if m := s.Member(key.Node); m != nil {
			d.Members = append(d.Members, m)
		} else if t, ok := s.Removed(key.Node); ok {
			d.Tombstones = append(d.Tombstones, t)
		}
	case KeyObserver:
		if i, ok := s.findRows(key.Node); ok {
			d.Observers = append(d.Observers, s.rows[i])
		}
	case KeyVoters:
		config := s.Config()
		d.Config = &config
	case KeyRegisters:
		d.Registers = s.registers()
	case KeyCluster:
		// Every delta carries the cluster.
	}
}

func (s *State) registers() *Registers {
	return &Registers{
		LastUpNumber: s.lastUp.value, PrunedBefore: int64(s.pruned.value), Downing: s.Downing(),
		EpochBorn: int64(s.epochs.value), Yielded: s.yielded.value, Unknown: s.unknown.value,
	}
}

// full returns the whole state as a delta.
func (s *State) full() Delta {
	config := s.Config()
	whole := &State{core: s.core, clock: s.clock, seen: s.seen}
	whole.rebase()
	return Delta{
		whole: whole, Cluster: s.cluster.value, Full: true, Version: s.versionHash(), Seen: s.SeenBy(),
		Clock:   ClockRef{Entries: s.clock.Entries()},
		Members: s.members, Tombstones: s.Tombstones(), Observers: s.rows, Config: &config,
		Registers: s.registers(),
	}
}

// Validate reports whether d is well formed. It is called on deltas from other nodes,
// before [State.Apply]. It checks each value by itself and a full delta as a whole.
// The errors unwrap to [ErrInvalid].
func (d Delta) Validate() error {
	if err := d.From.Validate(); err != nil {
		return err
	}
	if d.Full {
		if d.Clock.Base != 0 || d.From.Base != 0 || len(d.From.Entries) > 0 || len(d.Edits) > 0 {
			return invalid(FaultCounter, NodeID{}, "full delta that builds upon something")
		}
		_, err := FromParts(d.parts())
		return err
	}
	if err := d.Clock.Validate(); err != nil {
		return err
	}
	p := d.parts()
	v := validation{parts: &p, partial: true}
	if err := v.check(); err != nil {
		return err
	}
	return d.validateEdits()
}

func (d Delta) validateEdits() error {
	if len(d.Edits) > historySize(MaxMembers) {
		return invalid(FaultLimit, NodeID{}, "%d edits", len(d.Edits))
	}
	for i, e := range d.Edits {
		if e.Dot.Count == 0 || e.Dot.Count > maxCount {
			return invalid(FaultCounter, e.Dot.Node, "edit %d", e.Dot.Count)
		}
		if i > 0 && d.Edits[i-1].Dot.compare(e.Dot) >= 0 {
			return invalid(FaultDuplicate, e.Dot.Node, "edits out of order")
		}
		if err := e.Dot.Node.Validate(); err != nil {
			return err
		}
		if len(e.Keys) > 4*MaxMembers || !strictlySorted(e.Keys, Key.compare) {
			return invalid(FaultDuplicate, e.Dot.Node, "keys of edit %d out of order", e.Dot.Count)
		}
		for _, k := range e.Keys {
			named := k.Type == KeyMember || k.Type == KeyObserver
			if k.Type < KeyMember || k.Type > KeyRegisters || named == k.Node.IsZero() {
				return invalid(FaultUnknown, k.Node, "key of type %d", k.Type)
			}
		}
	}
	return nil
}

// parts returns the records of d as parts of a state.
func (d Delta) parts() Raw {
	p := Raw{
		Cluster: d.Cluster, Members: d.Members, Tombstones: d.Tombstones, Observers: d.Observers, Seen: d.Seen,
	}
	if d.Full {
		p.Clock = d.Clock.Entries
	}
	if d.Config != nil {
		p.Config = *d.Config
	}
	if d.Registers != nil {
		p.LastUpNumber = d.Registers.LastUpNumber
		p.PrunedBefore = d.Registers.PrunedBefore
		p.Downing = d.Registers.Downing
		p.EpochBorn, p.Yielded, p.Unknown = d.Registers.EpochBorn, d.Registers.Yielded, d.Registers.Unknown
	}
	return p
}

// Apply returns s with the news of a delta, as if the sender's whole state were
// merged. It returns s itself if the delta has no news. The delta must be valid, see
// [Delta.Validate].
//
// It returns [ErrNotCovered] if s does not cover From, or cannot tell; the receiver
// then answers with [State.DigestFor] or [State.FullDigest], from which the sender
// makes a delta that fits. It returns [ErrOtherCluster] for a delta of another
// cluster, and an [InvalidError] for edits that the sender's clock does not cover.
func (s *State) Apply(d Delta) (*State, error) {
	if !s.cluster.value.IsZero() && !d.Cluster.IsZero() && s.cluster.value != d.Cluster {
		return s, ErrOtherCluster
	}
	if d.Full {
		o, err := d.state()
		if err != nil {
			return s, err
		}
		return s.Merge(o), nil
	}
	clock, ok := s.clockOf(d)
	if !ok {
		return s, ErrNotCovered
	}
	if err := d.validateDots(s, clock); err != nil {
		return s, err
	}
	o := d.partial(clock)
	m := &State{history: s.history, bases: s.bases}
	joined := m.join(&s.core, &o.core)
	if len(d.Observers) > 0 || joined.removed || len(m.members) < len(s.members) {
		m.rows = restrictRows(m.rows, m.members) // Rows of the delta may be about other nodes.
	}
	joined.removed = true // The records of the delta need not form a state.
	m.clock, m.orphans = joined.clocks(s, o, &m.core)
	if !m.knows(clock, joined.tombs) {
		return s, ErrNotCovered
	}
	if s.sameVersion(m) {
		m.seen = s.seen.remap(s.members, m.members)
	}
	if d.Version == m.versionHash() {
		m.seen = m.seen.union(bitsOf(d.Seen, m.members))
	}
	if m.clock.is(s.clock) && m.seen.equal(s.seen) && m.equalCore(&s.core) {
		return s, nil
	}
	m.orphans = m.orphans.union(s.orphans)
	m.history = s.history.merge(o.history, s.clock, historySize(len(m.members)))
	m.rebase()
	return m, nil
}

// validateDots refuses edits that the sender's clock does not cover. The history would
// later mistake them for edits with those counts that their node makes later, and
// deltas made from the history would lack the records that those touch.
func (d Delta) validateDots(s *State, clock VectorClock) error {
	for _, e := range d.Edits {
		last := clock.Get(e.Dot.Node)
		if last == 0 { // Removed, or made up.
			if t, ok := s.Removed(e.Dot.Node); ok {
				last = t.Last
			}
			if i, ok := slices.BinarySearchFunc(d.Tombstones, e.Dot.Node, func(t Tombstone, id NodeID) int { return compareNodes(&t.Node, &id) }); ok {
				last = max(last, d.Tombstones[i].Last)
			}
		}
		if e.Dot.Count > last {
			return invalid(FaultCounter, e.Dot.Node, "edit %d, where the clock says %d", e.Dot.Count, last)
		}
	}
	return nil
}

// state returns the whole state of a full delta.
func (d Delta) state() (*State, error) {
	if d.whole != nil {
		return d.whole, nil
	}
	return FromParts(d.parts())
}

// clockOf returns the sender's clock if s covers the clock from which d starts.
func (s *State) clockOf(d Delta) (VectorClock, bool) {
	from, ok := s.resolve(d.From)
	if !ok || d.Clock.Base != d.From.hashOf(from) {
		return VectorClock{}, false
	}
	if order := s.compareLive(from, d.From.Entries); order == Before || order == Concurrent {
		return VectorClock{}, false
	}
	return from.overlay(d.Clock.Entries), true
}

// partial returns the records of d in the form of a State, which need not be valid:
// rows may be about members that only the receiver knows.
func (d Delta) partial(clock VectorClock) *State {
	o := &State{clock: clock}
	o.cluster.value, o.members, o.rows = d.Cluster, d.Members, d.Observers
	for i := range d.Tombstones {
		o.tombs = append(o.tombs, &d.Tombstones[i])
	}
	if d.Config != nil {
		o.config = o.config.write(d.Config)
	}
	if r := d.Registers; r != nil {
		o.lastUp.value, o.pruned.value, o.epochs.value, o.yielded.value = r.LastUpNumber, millis(r.PrunedBefore), millis(r.EpochBorn), r.Yielded
		o.downing, o.unknown.value = o.downing.write(&r.Downing), r.Unknown
	}
	o.history = o.history.add(len(d.Edits)+chunkSize, d.Edits...)
	return o
}

// knows reports whether every node in clock is or was a member of s.
func (s *State) knows(clock VectorClock, tombs []*Tombstone) bool {
	if s.clock.Covers(clock) {
		return true
	}
	return !slices.ContainsFunc(clock.nodes, func(node NodeID) bool {
		if _, ok := findMember(s.members, node); ok {
			return false
		}
		_, removed := findTombstone(tombs, node)
		return !removed
	})
}
